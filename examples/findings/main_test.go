package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"koine/client"
	"koine/internal/servertest"
	"koine/internal/slowtest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

func TestFindings(t *testing.T) {
	slowtest.Long(t)
	s := servertest.Start(t, "--demo")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, s.URL, client.Options{}, &out); err != nil {
		t.Fatal(err)
	}
	const want = "agent://bob says: I doubt that \"Water in the crystal costs capacity\"\nWater in the crystal costs capacity: doubtful\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

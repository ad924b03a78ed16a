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

func TestContradictions(t *testing.T) {
	slowtest.Long(t)
	s := servertest.Start(t, "--demo")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out strings.Builder
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s.URL, client.Options{}, 1, &out) }()
	c, err := client.Open(ctx, s.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range []client.Patch{
		client.Add("lab:status", "rdf:type", client.Resource("owl:FunctionalProperty")),
		client.Add("finding:1", "lab:status", client.Text("settled")).From("ann"),
		client.Add("finding:1", "lab:status", client.Text("doubtful")).From("bob"),
	} {
		if _, err := c.Update(ctx, client.Update{Patches: []client.Patch{patch}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 4 || !strings.Contains(got, "  https://koine.example/demo/finding/1  https://koine.example/demo/status  doubtful, says agent://bob\n") || !strings.Contains(got, "agent://ann") || !strings.Contains(got, "agent://bob") {
		t.Errorf("got %s", got)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"koine/client"
	"koine/internal/servertest"
	"koine/internal/slowtest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

func TestLibrarian(t *testing.T) {
	slowtest.Long(t)
	s := servertest.Start(t, "--demo")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ready, out := io.Pipe()
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(working, s.URL, client.Options{}, out) }()
	if _, err := ready.Read(make([]byte, 1000)); err != nil { // it is registered
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, ready) }()
	at, err := client.OpenAgent(ctx, s.URL, name, client.Options{Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := at.A2A(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{"finding:1": "Water in the crystal costs capacity", "finding:none": "it has no name here"} {
		answer, err := ann.SendMessage(ctx, &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(asked))})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(answer); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %s %v", text, err)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

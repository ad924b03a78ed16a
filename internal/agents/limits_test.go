package agents_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"koine/internal/agents"
	"koine/kg"
)

// Limits that koine enforces are whole numbers; others belong to the agent, and are
// returned unchanged. The last ones hold, and none for a deregistered agent.
func TestLimits(t *testing.T) {
	store, g := newRegistry(t, kg.Options{})
	load(t, g, store)
	d := agents.NewDirectory(store, agents.DirectoryOptions{})
	const id = kg.AgentID("agent://bot")
	for _, row := range []struct {
		limits string
		want   agents.Limits
		code   kg.Code
	}{
		{`{"tasks":1,"messagesPerMinute":2,"messageBytes":3}`, agents.Limits{Tasks: 1, MessagesPerMinute: 2, MessageBytes: 3}, ""},
		{fmt.Sprintf(`{"tasks":%d}`, agents.MaxLimit), agents.Limits{Tasks: agents.MaxLimit}, ""},
		{fmt.Sprintf(`{"tasks":%d}`, agents.MaxLimit+1), agents.Limits{}, kg.CodeInvalid},
		{`{"tasks":0}`, agents.Limits{}, kg.CodeInvalid},
		{`{"messagesPerMinute":-1}`, agents.Limits{}, kg.CodeInvalid},
		{`{"messageBytes":1.5}`, agents.Limits{}, kg.CodeInvalid},
		{`{"tasks":"3"}`, agents.Limits{}, kg.CodeInvalid},
		{`{"tasks":null,"own":{"a":9007199254740993}}`, agents.Limits{}, ""},
		{`{}`, agents.Limits{}, ""},
	} {
		record := agents.Record{ID: id, Registration: &agents.Registration{Limits: json.RawMessage(row.limits)}}
		now, err := d.Register(t.Context(), by(id), record)
		if kg.CodeOf(err) != row.code {
			t.Errorf("%s: %v, want %s", row.limits, err, row.code)
		}
		if row.code != "" {
			continue
		}
		if got := g.Limits(id); got != row.want || string(now.Registration.Limits) != row.limits {
			t.Errorf("%s: got %+v, and %s is shown", row.limits, got, now.Registration.Limits)
		}
	}
	if _, err := d.Register(t.Context(), by(id), agents.Record{ID: id, Registration: &agents.Registration{Limits: json.RawMessage(`{"tasks":1}`)}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Deregister(t.Context(), by(id), id); err != nil {
		t.Fatal(err)
	}
	if got := g.Limits(id); got != (agents.Limits{}) {
		t.Errorf("who has left takes %+v", got)
	}
}

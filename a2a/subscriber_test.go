package a2a_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"koine/kg"
)

// subscriber reads a stream block by block.
type subscriber struct {
	t      *testing.T
	cancel context.CancelFunc
	resp   *http.Response
	body   *bufio.Reader
}

func (s *testServer) open(t *testing.T, method, path, body string, headers ...string) *subscriber {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &subscriber{t, cancel, resp, bufio.NewReader(resp.Body)}
}

// subscribe opens a knowledge/subscribe for everything, with this metadata.
func (s *testServer) subscribe(t *testing.T, metadata string, headers ...string) *subscriber {
	t.Helper()
	return s.subscribeTo(t, `subscription { statementChanged { __typename } }`, metadata, headers...)
}

func (s *testServer) subscribeTo(t *testing.T, query, metadata string, headers ...string) *subscriber {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"sub 1","method":"knowledge/subscribe","params":{"subscriptionQuery":%q,"metadata":%s}}`, query, metadata)
	sub := s.open(t, http.MethodPost, "/", body, headers...)
	sub.established()
	return sub
}

func (s *testServer) changes(t *testing.T, query string, headers ...string) *subscriber {
	t.Helper()
	sub := s.open(t, http.MethodGet, "/changes"+query, "", headers...)
	sub.established()
	return sub
}

func (s *subscriber) established() {
	s.t.Helper()
	if s.resp.StatusCode != 200 || s.resp.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(s.resp.Body)
		s.t.Fatalf("got %s %s", s.resp.Status, body)
	}
}

// block returns the next block with its empty line; "" at the end of the stream. It
// skips heartbeats without an id.
func (s *subscriber) block() string {
	s.t.Helper()
	var b strings.Builder
	for {
		line, err := s.body.ReadString('\n')
		if err == io.EOF && b.Len() == 0 && line == "" {
			return ""
		}
		if err != nil {
			s.t.Fatalf("%v after %q", err, b.String()+line)
		}
		b.WriteString(line)
		if line != "\n" {
			continue
		}
		if b.String() != ": \n\n" {
			return b.String()
		}
		b.Reset()
	}
}

// event is a parsed block.
type event struct {
	id, name string
	JSONRPC  string
	Result   *change
	Error    *struct {
		Code    int
		Message string
		Data    map[string]any
	}
	change // of a feed, which has no JSON-RPC around it
}

type change struct {
	Op        string
	Statement struct {
		Subject, Object struct {
			ID, Type string
			Value    any
		}
		Graph      string
		Certainty  *float64
		Provenance json.RawMessage
	}
	ChangeID       string
	ChangeMetadata struct {
		Position         string
		Revision         uint64
		Source           string
		Snapshot         bool
		SnapshotEnd      bool
		StatementRemains bool
	}
}

func (s *subscriber) event() event {
	s.t.Helper()
	block := s.block()
	var e event
	for line := range strings.SplitSeq(strings.TrimSuffix(block, "\n\n"), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				s.t.Fatalf("%v: %s", err, block)
			}
		}
	}
	if e.Result != nil {
		e.change = *e.Result
	}
	return e
}

// say formats an event.
func (e event) say() string {
	switch {
	case e.Error != nil:
		return fmt.Sprintf("%d %v", e.Error.Code, e.Error.Data["reason"])
	case e.Op == "":
		return "position"
	}
	return fmt.Sprintf("%s %s %v%s", e.Op, e.Statement.Subject.ID, e.Statement.Object.Value, e.Statement.Object.ID)
}

func (s *subscriber) expect(want ...string) []event {
	s.t.Helper()
	var events []event
	for _, w := range want {
		e := s.event()
		if got := e.say(); got != w {
			s.t.Fatalf("got %s, want %s", got, w)
		}
		events = append(events, e)
	}
	return events
}

// set commits one patch of the statement (subject, urn:p, value).
func (s *testServer) set(t *testing.T, op kg.Op, subject string, value kg.Term, source kg.AgentID) kg.Receipt {
	t.Helper()
	receipt, err := s.store.Update(t.Context(), kg.Meta{Justification: "because"}, func(tx *kg.Tx) error {
		return tx.Apply(patch(op, subject, value, source))
	})
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

func patch(op kg.Op, subject string, value kg.Term, source kg.AgentID) kg.Patch {
	return kg.Patch{Op: op, Source: source, Quad: kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:p"), Object: value}}
}

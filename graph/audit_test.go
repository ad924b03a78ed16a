package graph_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/audit"
	"koine/kg"
)

var admin = kg.Principal{ID: "agent://admin", Roles: []string{kg.RoleAdmin}, Method: "test"}

// audited requests the audit list as a principal.
func (b *bench) audited(who kg.Principal, args string) (answer struct {
	Audit struct {
		Nodes []struct {
			Kind, Principal, Actor string
			Accepted               bool
			Revision               *int
			Added, Removed         *int
			Justification, Reason  *string
			Count                  *int
		}
		PageInfo struct {
			HasNextPage, HasPreviousPage bool
			EndCursor                    *string
		}
	}
}, code string) {
	b.t.Helper()
	req := b.request("{ audit"+args+` { nodes { time kind accepted principal: principalId actor: actorId revision added removed justification proposalId reason path address requestId count lastTime }
		pageInfo { hasNextPage hasPreviousPage endCursor } } }`, "")
	req.Principal = who
	result := b.engine.Execute(b.t.Context(), req)
	if len(result.Errors) > 0 {
		code, _ = result.Errors[0].Extensions["code"].(string)
		return answer, code
	}
	if err := json.Unmarshal(result.Data, &answer); err != nil {
		b.t.Fatal(err)
	}
	return answer, ""
}

func TestAudit(t *testing.T) {
	b := newBench(t, graph.Options{})
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.engine = graph.NewEngine(graph.Deps{
		Store: b.store, Prefixes: prefixes, Logger: slog.New(slog.DiscardHandler), Trail: audit.NewTrail(audit.Options{}),
	}, graph.Options{})
	b.update(add(iri("a"), iri("p"), iri("b")), add(iri("a"), iri("p"), iri("c")))
	b.update(kg.Patch{Op: kg.Remove, Quad: kg.Quad{Subject: iri("a"), Predicate: iri("p"), Object: iri("b"), Graph: kg.DefaultGraph}})
	for range 2 { // refusals are in the list as well, and are counted
		if _, code := b.audited(reader, ""); code != string(kg.CodePermissionDenied) {
			t.Fatalf("somebody who is no administrator got %q", code)
		}
	}
	got, code := b.audited(admin, "")
	if code != "" {
		t.Fatal(code)
	}
	var told []string
	for _, e := range got.Audit.Nodes {
		line := fmt.Sprint(e.Kind, " ", e.Accepted, " ", e.Principal)
		if e.Accepted {
			line += fmt.Sprint(" r", *e.Revision, " +", *e.Added, " -", *e.Removed, " ", *e.Justification)
		} else {
			line += fmt.Sprint(" ", *e.Reason, " x", *e.Count)
		}
		told = append(told, line)
	}
	want := "DENIED false agent://anonymous PERMISSION_DENIED x2\nUPDATE true agent://writer r2 +0 -1 test\nUPDATE true agent://writer r1 +2 -0 test"
	if text := strings.Join(told, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}

	first, _ := b.audited(admin, `(first: 1, kinds: [UPDATE], principalId: "writer")`)
	if n := first.Audit.Nodes; len(n) != 1 || *n[0].Revision != 2 || !first.Audit.PageInfo.HasNextPage || first.Audit.PageInfo.HasPreviousPage {
		t.Fatalf("the first page: %+v", first)
	}
	second, _ := b.audited(admin, fmt.Sprintf(`(first: 1, kinds: [UPDATE], principalId: "agent://writer", after: %q)`, *first.Audit.PageInfo.EndCursor))
	if n := second.Audit.Nodes; len(n) != 1 || *n[0].Revision != 1 || second.Audit.PageInfo.HasNextPage || !second.Audit.PageInfo.HasPreviousPage {
		t.Errorf("the second page: %+v", second)
	}
	if none, _ := b.audited(admin, `(until: "2000-01-01T00:00:00Z")`); len(none.Audit.Nodes) != 0 {
		t.Errorf("before everything: %+v", none)
	}
	for args, want := range map[string]kg.Code{
		`(first: -1)`: kg.CodeInvalid, `(first: 1001)`: kg.CodeLimitExceeded, `(after: "x")`: kg.CodeCursorForeign, `(since: "yesterday")`: kg.CodeInvalid,
	} {
		if _, code := b.audited(admin, args); code != string(want) {
			t.Errorf("%s: got %q, want %s", args, code, want)
		}
	}
}

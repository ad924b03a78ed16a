package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/policy"
	"koine/internal/slowtest"
	"koine/kg"
)

// guest is the caller of twins with policies.
var guest = kg.Principal{ID: "agent://reader", Roles: []string{"guest"}, ActFor: []kg.AgentID{kg.Anybody}, Method: "key"}

// settled are final policies, and whether guest reads under them. The zero Policy stands
// for none at all.
var settled = []struct {
	policy policy.Policy
	reads  bool
}{
	{policy.Policy{}, false}, // and otherwise, where the server says so
	{policy.Policy{Public: true}, true},
	{policy.Policy{Readers: []policy.Grantee{"reader"}}, true},
	{policy.Policy{Readers: []policy.Grantee{"role:guest", "other"}}, true},
	{policy.Policy{Readers: []policy.Grantee{"*"}}, true},
	{policy.Policy{Writers: []policy.Grantee{"role:guest"}}, true},
	{policy.Policy{Owners: []policy.Grantee{"reader", "other"}}, true},
	{policy.Policy{Owners: []policy.Grantee{"other"}}, false},
	{policy.Policy{Readers: []policy.Grantee{"role:guests", "read"}, Writers: []policy.Grantee{"role:admin"}, Owners: []policy.Grantee{"role:reader"}}, false},
	{policy.Policy{Deleted: true, Public: true, Owners: []policy.Grantee{"reader"}}, false},
}

// newPolicedTwins are twins one of which has random policies: the final ones after settle,
// which is called before any query.
func newPolicedTwins(t testing.TB, r *random) (w *twins, settle func()) {
	modes := []policy.Mode{policy.Private, policy.ReadOnly, policy.ReadWrite}
	options := policy.Options{DefaultGraph: pick(r, modes...), NewGraphs: pick(r, modes...)}
	final := map[kg.Term]policy.Policy{}
	hidden := map[kg.Term]bool{}
	for _, g := range []kg.Term{kg.DefaultGraph, iri("g1"), iri("g2"), kg.IRI(kg.OwnGraphPrefix + "x")} {
		s := settled[r.IntN(len(settled))]
		s.policy.Graph = g
		if s.policy.Public || s.policy.Owners != nil || s.policy.Writers != nil || s.policy.Readers != nil {
			final[g] = s.policy
		} else {
			s.reads = g == kg.DefaultGraph && options.DefaultGraph != policy.Private ||
				g != kg.DefaultGraph && !kg.IsOwnGraph(g) && options.NewGraphs != policy.Private
		}
		hidden[g] = !s.reads
	}
	w = &twins{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), hides: func(g kg.Term) bool { return hidden[g] }, meeting: iri("meeting")}
	clock := func(o *kg.Options) { o.Clock = func() time.Time { return w.now } }
	w.whole = newPoliced(t, options, clock)
	w.seen = newBench(t, graph.Options{}, clock, func(o *kg.Options) { o.Access = secrecy{w.meeting} })
	w.whole.reading, w.seen.reading = &guest, &guest
	write := func(p policy.Policy) {
		_, err := w.whole.store.Update(context.Background(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error { return policy.Write(tx, p) })
		if err != nil {
			t.Fatal(err)
		}
	}
	w.meet()
	write(policy.Policy{Graph: w.meeting, Owners: []policy.Grantee{"other"}})
	for g := range final { // policies in force meanwhile do not matter
		p := settled[1+r.IntN(len(settled)-2)].policy
		p.Graph = g
		write(p)
	}
	return w, func() {
		for _, p := range final {
			write(p)
		}
	}
}

// pagedQueries are walked to their end, page by page.
var pagedQueries = []string{
	`{ e: entities(first: 4, after: $after, where: $filter, view: $view) { nodes { iri degree } pageInfo { hasNextPage endCursor } } }`,
	`{ e: entities(first: 4, after: $after, where: $filter, view: $view, orderBy: [{by: DEGREE, direction: DESC}]) { nodes { iri degree } pageInfo { hasNextPage endCursor } } }`,
	`{ e: statements(first: 7, after: $after, where: $where, view: $view) { nodes { subject { iri } predicate graph } pageInfo { hasNextPage endCursor } } }`,
	`{ e: match(first: 5, after: $after, pattern: $pattern, view: $view) { nodes { values } pageInfo { hasNextPage endCursor } } }`,
	`{ e: diff(first: 5, after: $after, from: $then, where: $where) { nodes { op statement { predicate graph } } pageInfo { hasNextPage endCursor } } }`,
	`@budget(maxTokens: 400) { e: entities(first: 50, after: $after, where: $filter, view: $view) { nodes { iri out(first: 3) { nodes { predicate } } } pageInfo { hasNextPage endCursor truncated } } }`,
	`@budget(maxStatements: 60) { e: statements(first: 50, after: $after, where: $where, view: $view) { nodes { subject { iri } predicate } pageInfo { hasNextPage endCursor truncated } } }`,
}

// Under any policies, hidden content does not exist: every answer equals that of a store
// that holds only the readable part.
func TestUnseenUnderPolicies(t *testing.T) {
	slowtest.Long(t)
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 5))}
	for range max(4, *rounds/100) {
		w, settle := newPolicedTwins(t, r)
		r.moment = w.now
		for range 6 {
			var patches []kg.Patch
			for range 1 + r.IntN(25) {
				patches = append(patches, r.hiding())
			}
			w.update(patches...)
		}
		settle()
		for range 2 {
			variables := r.unseenVariables()
			for _, query := range unseenQueries {
				w.compare(t, query, variables)
			}
			for _, query := range pagedQueries {
				got, want := w.whole.walked(t, query, variables), w.seen.walked(t, query, variables)
				if got != want {
					t.Errorf("%s\n%v\ngot  %s\nwant %s", query, variables, got, want)
				}
			}
		}
	}
}

// walked is the content of all pages of a query, in the order of the pages; the elements of
// one are sorted.
func (b *bench) walked(t *testing.T, query string, variables map[string]any) string {
	types := map[string]string{"where": "StatementFilter", "filter": "EntityFilter", "pattern": "PatternInput!", "view": "ViewInput", "then": "Moment!", "after": "Cursor"}
	used, declared := map[string]any{}, []string{}
	for name, typ := range types {
		if strings.Contains(query, "$"+name) {
			declared = append(declared, "$"+name+": "+typ)
			if v, ok := variables[name]; ok {
				used[name] = v
			}
		}
	}
	query = "query (" + strings.Join(declared, ", ") + ") " + query
	var out strings.Builder
	for page := 0; ; page++ {
		text, err := json.Marshal(used)
		if err != nil || page > 1000 {
			t.Fatal(page, err)
		}
		result := b.execute(query, string(text))
		var data struct {
			E *struct {
				Nodes    []any
				PageInfo struct {
					HasNextPage bool
					Truncated   bool
					EndCursor   *string
				}
			}
		}
		if err := json.Unmarshal(result.Data, &data); err != nil && len(result.Errors) == 0 {
			t.Fatal(err)
		}
		if len(result.Errors) > 0 || data.E == nil {
			errs, _ := json.Marshal(result.Errors)
			fmt.Fprintf(&out, "%s", errs)
			return out.String()
		}
		var nodes []string
		for _, n := range data.E.Nodes {
			nodes = append(nodes, canonical(n, false))
		}
		slices.Sort(nodes)
		fmt.Fprintln(&out, nodes, data.E.PageInfo.HasNextPage, data.E.PageInfo.Truncated, readFor(query, result))
		if !data.E.PageInfo.HasNextPage || data.E.PageInfo.EndCursor == nil {
			return out.String()
		}
		used["after"] = *data.E.PageInfo.EndCursor
	}
}

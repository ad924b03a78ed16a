package graph_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/slowtest"
	"koine/kg"
)

// shownStatement is a statement as these tests ask for it.
type shownStatement struct {
	Subject    struct{ IRI string }
	Predicate  string
	Object     struct{ IRI, Lexical string }
	Graph      string
	Assertions []struct {
		Source    string
		Certainty *float64
		Revision  kg.Revision
	}
}

const shownFields = `{ subject { iri } predicate object { ... on Entity { iri } ... on Literal { lexical } } graph assertions { source: sourceId certainty revision } }`

func (s shownStatement) name() string {
	return fmt.Sprint(s.Subject.IRI, " ", s.Predicate, " ", s.Object.IRI, s.Object.Lexical, " ", s.Graph)
}

// backing is the sources of a statement with certainty and revision.
type backing map[string]string

func (s shownStatement) backing() backing {
	b := backing{}
	for _, a := range s.Assertions {
		certainty := "none"
		if a.Certainty != nil {
			certainty = fmt.Sprint(*a.Certainty)
		}
		b[a.Source] = fmt.Sprint(certainty, " in ", a.Revision)
	}
	return b
}

// state is the content of a view: statements by name.
type state map[string]backing

func (s state) text() string {
	lines := make([]string, 0, len(s))
	for name, b := range s {
		lines = append(lines, fmt.Sprint(name, " ", b)) // fmt sorts maps
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (s state) clone() state {
	out := maps.Clone(s)
	for name := range out {
		out[name] = maps.Clone(out[name])
	}
	return out
}

// of is the part about the entity, as subject or as object too.
func (s state) of(entity string, in bool) state {
	out := state{}
	for name, b := range s {
		if parts := strings.Fields(name); parts[0] == entity || in && parts[2] == entity {
			out[name] = b
		}
	}
	return out
}

// shownChange is a change as these tests ask for it.
type shownChange struct {
	Op               string
	Statement        shownStatement
	Previous         []shownStatement
	StatementRemains bool
	Position         string
	ChangeID         string
	Commit           struct{ Revision kg.Revision }
}

const shownChangeFields = `{ op statement ` + shownFields + ` previous ` + shownFields + ` statementRemains position changeId commit { revision } }`

func (c shownChange) text() string {
	text, _ := json.Marshal(c)
	return string(text)
}

// apply applies the change to the state.
func (s state) apply(c shownChange) {
	drop := func(st shownStatement) {
		b := s[st.name()]
		for source := range st.backing() {
			delete(b, source)
		}
		if len(b) == 0 {
			delete(s, st.name())
		}
	}
	for _, st := range c.Previous {
		drop(st)
	}
	name := c.Statement.name()
	switch {
	case c.Op == "remove" && !c.StatementRemains:
		delete(s, name)
	case c.Op == "remove":
		drop(c.Statement)
	case s[name] == nil:
		s[name] = c.Statement.backing()
	default:
		maps.Copy(s[name], c.Statement.backing())
	}
}

// changePage is a ChangeConnection.
type changePage struct {
	Edges []struct {
		Node   shownChange
		Cursor string
	}
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor, EndCursor       *string
	}
}

const changePageFields = `{ edges { cursor node ` + shownChangeFields + ` } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }`

// walkChanges reads all pages of a list of changes, this many at a time. Its query has
// the variables $after and $first, and shows the list as c.
func (b *bench) walkChanges(query string, first int) (all []shownChange) {
	b.t.Helper()
	after := "null"
	for range 1000 {
		var data struct{ C *changePage }
		b.data(query, fmt.Sprintf(`{"first": %d, "after": %s}`, first, after), &data)
		for _, e := range data.C.Edges {
			all = append(all, e.Node)
		}
		if !data.C.PageInfo.HasNextPage {
			return all
		}
		after = fmt.Sprintf("%q", *data.C.PageInfo.EndCursor)
	}
	b.t.Fatalf("%s does not end", query)
	return nil
}

func (b *bench) stateAt(r kg.Revision, view string) state {
	b.t.Helper()
	s := state{}
	if r == 0 {
		return s
	}
	var data struct {
		Statements struct{ Nodes []shownStatement }
	}
	b.data(fmt.Sprintf(`{ statements(first: 1000, view: {at: %d %s}) { nodes %s } }`, r, view, shownFields), "", &data)
	for _, st := range data.Statements.Nodes {
		s[st.name()] = st.backing()
	}
	return s
}

// somePast makes commits that add, change, withdraw and replace.
func somePast(b *bench, r *rand.Rand, commits int) {
	b.t.Helper()
	pick := func(names ...string) kg.Term { return iri(names[r.IntN(len(names))]) }
	for range commits {
		var patches []kg.Patch
		for range 1 + r.IntN(5) {
			object := kg.Integer(int64(r.IntN(4)))
			if r.IntN(2) == 0 {
				object = pick("a", "b", "c")
			}
			p := add(pick("a", "b", "c"), pick("p", "q"), object)
			p.Op = []kg.Op{kg.Add, kg.Add, kg.Remove, kg.Replace}[r.IntN(4)]
			if r.IntN(4) == 0 {
				p = in(iri("g"), p)
			}
			if p.Op != kg.Remove || r.IntN(2) == 0 {
				p.Source = []kg.AgentID{"agent://x", "agent://y"}[r.IntN(2)]
			}
			if p.Op != kg.Remove && r.IntN(2) == 0 {
				p.Certainty, p.HasCertainty = float64(r.IntN(5))/4, true
			}
			patches = append(patches, p)
		}
		b.update(patches...)
	}
}

// TestHistoryAgrees proves, on random histories and under several views: diff(a, b) applied
// to the state at a gives the state at b, and so do the changes between a and b, read in
// either direction and in pages of any size; and the history of an entity, replayed, equals
// its state at every revision, and is the part of the changes that is about it.
func TestHistoryAgrees(t *testing.T) {
	slowtest.Long(t)
	s := cmp.Or(*seed, rand.Uint64())
	t.Logf("repeat with -seed %d", s)
	r := rand.New(rand.NewPCG(s, 3))
	b := newBench(t, graph.Options{})
	somePast(b, r, 40)
	head := b.store.Head().Revision
	for _, view := range []string{"", "minCertainty: 0.6", `believedBy: ["x"]`, `graphs: [null]`, `recordedAt: {from: "2026-01-01T00:00:20Z", until: "2026-01-01T00:01:00Z"}`} {
		states := make([]state, head+1)
		for at := range states {
			states[at] = b.stateAt(kg.Revision(at), view)
		}
		for range 12 {
			from, to := kg.Revision(r.IntN(int(head))), kg.Revision(1+r.IntN(int(head)))
			if from > to {
				from, to = to, from
			}
			diffAgrees(b, states, from, to, view, 1+r.IntN(20))
			changesAgree(b, states, from, to, view, 1+r.IntN(20))
		}
		for _, entity := range []string{"a", "b", "c"} {
			for _, direction := range []string{"OUT", "IN", "BOTH"} {
				historyAgrees(b, states, ex+entity, direction, view, 1+r.IntN(20))
			}
		}
	}
}

func diffAgrees(b *bench, states []state, from, to kg.Revision, view string, first int) {
	b.t.Helper()
	got, after := states[from].clone(), ""
	for range 100 {
		var data struct {
			Diff struct {
				From, To kg.Revision
				Edges    []struct {
					Node struct {
						Op        string
						Statement shownStatement
						Previous  *shownStatement
					}
				}
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		b.data(fmt.Sprintf(`{ diff(from: %d, to: %d, first: %d %s, view: {%s}) { from to edges { node { op statement %s previous %s } } pageInfo { hasNextPage endCursor } } }`,
			from, to, first, after, view, shownFields, shownFields), "", &data)
		if data.Diff.From != from || data.Diff.To != to {
			b.t.Fatalf("diff from %d to %d says from %d to %d", from, to, data.Diff.From, data.Diff.To)
		}
		for _, e := range data.Diff.Edges {
			name, d := e.Node.Statement.name(), e.Node
			before, stood := got[name]
			if stood != (d.Previous != nil) || stood && fmt.Sprint(before) != fmt.Sprint(d.Previous.backing()) {
				b.t.Fatalf("diff from %d to %d: %s %s, previously %v, but it was %v", from, to, d.Op, name, d.Previous, before)
			}
			if want := map[bool]string{true: "replace", false: "add"}[stood]; d.Op != want && d.Op != "remove" {
				b.t.Fatalf("diff from %d to %d: %s %s, want %s", from, to, d.Op, name, want)
			}
			if got[name] = d.Statement.backing(); d.Op == "remove" {
				delete(got, name)
			}
		}
		if !data.Diff.PageInfo.HasNextPage {
			break
		}
		after = fmt.Sprintf(", after: %q", data.Diff.PageInfo.EndCursor)
	}
	if got, want := got.text(), states[to].text(); got != want {
		b.t.Fatalf("diff from %d to %d under {%s} leads to\n%s\nwant\n%s", from, to, view, got, want)
	}
}

func changesAgree(b *bench, states []state, from, to kg.Revision, view string, first int) {
	b.t.Helper()
	query := `query ($first: Int, $after: Cursor) { c: changes(since: %d, until: %d, order: %s, first: $first, after: $after, view: {%s}) %s }`
	ascending := b.walkChanges(fmt.Sprintf(query, from, to, "ASC", view, changePageFields), first)
	descending := b.walkChanges(fmt.Sprintf(query, from, to, "DESC", view, changePageFields), first)
	slices.Reverse(descending)
	same := func(a, c shownChange) bool { return a.text() == c.text() }
	if !slices.EqualFunc(ascending, descending, same) {
		b.t.Fatalf("changes from %d to %d under {%s}: %d from the oldest on, %d from the newest, and they differ", from, to, view, len(ascending), len(descending))
	}
	past := b.walkChanges(fmt.Sprintf(query, from, to, "ASC", fmt.Sprintf("at: %d %s", to, view), changePageFields), first)
	if !slices.EqualFunc(ascending, past, same) {
		b.t.Fatalf("changes from %d to %d under {%s}: %d, and %d as of %d", from, to, view, len(ascending), len(past), to)
	}
	got := states[from].clone()
	for _, c := range ascending {
		got.apply(c)
	}
	if got, want := got.text(), states[to].text(); got != want {
		b.t.Fatalf("the changes from %d to %d under {%s} lead to\n%s\nwant\n%s", from, to, view, got, want)
	}
}

func historyAgrees(b *bench, states []state, entity, direction, view string, first int) {
	b.t.Helper()
	query := func(order string) string {
		return fmt.Sprintf(`query ($first: Int, $after: Cursor) { e: entity(iri: %q, view: {%s}) { c: history(direction: %s, order: %s, first: $first, after: $after) %s } }`,
			entity, view, direction, order, changePageFields)
	}
	ascending, descending := b.walkHistory(query("ASC"), first), b.walkHistory(query("DESC"), first)
	slices.Reverse(descending)
	if !slices.EqualFunc(ascending, descending, func(a, c shownChange) bool { return a.text() == c.text() }) {
		b.t.Fatalf("the history of %s: %d from the oldest on, %d from the newest, and they differ", entity, len(ascending), len(descending))
	}
	got := state{}
	rest := ascending
	part := func(s state) state {
		switch direction {
		case "OUT":
			return s.of(entity, false)
		case "BOTH":
			return s.of(entity, true)
		}
		in := state{}
		for name, backed := range s {
			if strings.Fields(name)[2] == entity {
				in[name] = backed
			}
		}
		return in
	}
	for r := 1; r < len(states); r++ {
		told := false
		for len(rest) > 0 && rest[0].Commit.Revision == kg.Revision(r) {
			got.apply(rest[0])
			rest, told = rest[1:], true
		}
		want := part(states[r])
		if got.text() != want.text() {
			b.t.Fatalf("the history of %s %s under {%s} up to %d leads to\n%s\nwant\n%s", entity, direction, view, r, got.text(), want.text())
		}
		if changed := want.text() != part(states[r-1]).text(); changed != told {
			b.t.Fatalf("the history of %s %s under {%s}: commit %d changed it: %v, is told: %v", entity, direction, view, r, changed, told)
		}
	}
	// As of an older revision it is the history until then.
	at := len(states) / 2
	older := b.walkHistory(strings.Replace(query("ASC"), "view: {", fmt.Sprintf("view: {at: %d ", at), 1), first)
	n, _ := slices.BinarySearchFunc(ascending, kg.Revision(at+1), func(c shownChange, r kg.Revision) int { return cmp.Compare(c.Commit.Revision, r) })
	if !slices.EqualFunc(older, ascending[:n], func(a, c shownChange) bool { return a.text() == c.text() }) {
		b.t.Fatalf("the history of %s under {%s} as of %d has %d changes, want %d", entity, view, at, len(older), n)
	}
	// The entry of a commit equals the changes of the entity in that commit.
	if direction == "OUT" {
		all := b.walkChanges(fmt.Sprintf(`query ($first: Int, $after: Cursor) { c: changes(where: {subject: {eq: %q}}, first: $first, after: $after, view: {%s}) %s }`, entity, view, changePageFields), 100)
		all = slices.DeleteFunc(all, func(c shownChange) bool {
			return part(states[c.Commit.Revision]).text() == part(states[c.Commit.Revision-1]).text()
		})
		if !slices.EqualFunc(all, ascending, func(a, c shownChange) bool { return a.text() == c.text() }) {
			b.t.Fatalf("the history of %s under {%s} has %d changes, the log %d", entity, view, len(ascending), len(all))
		}
	}
}

// walkHistory is walkChanges for the history of one entity, shown as e.
func (b *bench) walkHistory(query string, first int) (all []shownChange) {
	b.t.Helper()
	after := "null"
	for range 1000 {
		var data struct{ E *struct{ C *changePage } }
		b.data(query, fmt.Sprintf(`{"first": %d, "after": %s}`, first, after), &data)
		if data.E == nil {
			return nil
		}
		for _, e := range data.E.C.Edges {
			all = append(all, e.Node)
		}
		if !data.E.C.PageInfo.HasNextPage {
			return all
		}
		after = fmt.Sprintf("%q", *data.E.C.PageInfo.EndCursor)
	}
	b.t.Fatalf("%s does not end", query)
	return nil
}

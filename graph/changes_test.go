package graph_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// values shows changes in short: operation and value.
func (c changePage) values() string {
	var out []string
	for _, e := range c.Edges {
		text := e.Node.Op + " " + e.Node.Statement.Object.Lexical
		for _, p := range e.Node.Previous {
			text += " for " + p.Object.Lexical
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestChanges(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1), set("q", 10))
	b.update(set("p", 2))
	b.update(set("q", 20))
	b.update(set("p", 3), kg.Patch{Op: kg.Remove, Quad: set("q", 20).Quad})
	at := func(r kg.Revision, index uint32) string {
		return b.store.FormatPosition(kg.Position{Epoch: b.store.Epoch(), Revision: r, Index: index})
	}
	for _, row := range []struct {
		args       string
		want       string
		more       bool
		end        string // "" for none
		hasEarlier bool
	}{
		{"", "add 1, add 10, replace 2 for 1, replace 20 for 10, replace 3 for 2, remove 20", false, at(4, kg.EndOfCommit), false},
		{"order: DESC", "remove 20, replace 3 for 2, replace 20 for 10, replace 2 for 1, add 10, add 1", false, at(0, kg.EndOfCommit), false},
		{"first: 1", "add 1", true, at(1, 0), false},
		{"first: 1, order: DESC", "remove 20", true, at(4, 1), false},
		{"first: 0", "", true, at(0, kg.EndOfCommit), false},
		{fmt.Sprintf("first: 1, after: %q", at(1, 0)), "add 10", true, at(1, kg.EndOfCommit), true},
		{fmt.Sprintf("first: 1, after: %q, order: DESC", at(1, 0)), "add 1", false, at(0, kg.EndOfCommit), true},
		{`after: "latest"`, "", false, at(4, kg.EndOfCommit), true},
		{`after: "earliest", order: DESC`, "", false, at(0, kg.EndOfCommit), true},
		{`after: "earliest", first: 1`, "add 1", true, at(1, 0), true},
		{`after: "latest", order: DESC, first: 1`, "remove 20", true, at(4, 1), true},
		{"since: 2", "replace 20 for 10, replace 3 for 2, remove 20", false, at(4, kg.EndOfCommit), false},
		{"until: 2", "add 1, add 10, replace 2 for 1", false, at(2, kg.EndOfCommit), false},
		{"since: 1, until: 2", "replace 2 for 1", false, at(2, kg.EndOfCommit), false},
		{"since: 3, until: 2", "", false, at(3, kg.EndOfCommit), false},
		{fmt.Sprintf("since: 3, after: %q", at(1, 0)), "replace 3 for 2, remove 20", false, at(4, kg.EndOfCommit), true},
		{`since: "2026-01-01T00:00:00Z", until: 1`, "add 1, add 10", false, at(1, kg.EndOfCommit), false},
		{`until: "2199-01-01T00:00:00Z", since: 3`, "replace 3 for 2, remove 20", false, at(4, kg.EndOfCommit), false},
		{"view: {at: 2}, order: DESC, first: 1", "replace 2 for 1", true, at(1, kg.EndOfCommit), false},
		{"ops: [remove]", "remove 20", false, at(4, kg.EndOfCommit), false},
		{"ops: []", "", false, at(4, kg.EndOfCommit), false},
		{`where: {predicate: {eq: "ex:q"}}, order: DESC`, "remove 20, replace 20 for 10, add 10", false, at(0, kg.EndOfCommit), false},
		{`where: {object: {gt: 2}}, first: 2`, "add 10, replace 20 for 10", true, at(3, kg.EndOfCommit), false},
		{`view: {graphs: ["ex:nowhere"]}`, "", false, at(4, kg.EndOfCommit), false},
		{`view: {recordedAt: {until: "2026-01-01T00:00:00Z"}}`, "", false, at(4, kg.EndOfCommit), false},
	} {
		var data struct{ C changePage }
		args := row.args
		if args != "" {
			args = "(" + args + ")"
		}
		result := b.data(`{ c: changes`+args+changePageFields+` }`, "", &data)
		end := ""
		if e := data.C.PageInfo.EndCursor; e != nil {
			end = *e
		}
		if got := data.C.values(); got != row.want || data.C.PageInfo.HasNextPage != row.more || end != row.end || data.C.PageInfo.HasPreviousPage != row.hasEarlier {
			p, _ := b.store.ParsePosition(end)
			t.Errorf("%s: got %q, more %v, earlier %v, up to %d.%d, want %q, %v, %v", row.args, got, data.C.PageInfo.HasNextPage, data.C.PageInfo.HasPreviousPage, p.Revision, p.Index, row.want, row.more, row.hasEarlier)
		}
		if said := len(data.C.Edges) > 0; said != slices.Contains(result.Sources, "agent://writer") {
			t.Errorf("%s: the sources are %v", row.args, result.Sources)
		}
		if want := kg.Revision(4); result.Position.Revision != want && !strings.Contains(row.args, "at: 2") {
			t.Errorf("%s: extensions.revision is %d, want %d", row.args, result.Position.Revision, want)
		}
	}
}

// The cursor of any change leads to the rest, in either order, and a subscription that
// resumes there receives the next changes.
func TestChangeCursors(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1), set("q", 10))
	b.update(set("p", 2), set("q", 20), set("r", 30))
	b.update(set("p", 3))
	for _, order := range []string{"ASC", "DESC"} {
		for _, list := range []string{`c: changes(order: %s, after: $after) %s`, `e: entity(iri: "ex:s") { c: history(order: %s, after: $after) %s }`} {
			page := func(after string) changePage {
				var data struct {
					C changePage
					E struct{ C changePage }
				}
				b.data(`query ($after: Cursor) { `+fmt.Sprintf(list, order, changePageFields)+` }`, after, &data)
				if data.E.C.PageInfo.EndCursor != nil {
					return data.E.C
				}
				return data.C
			}
			all := page(`{}`)
			for i, e := range all.Edges {
				rest := all
				rest.Edges = all.Edges[i+1:]
				if got := page(fmt.Sprintf(`{"after": %q}`, e.Cursor)); got.values() != rest.values() {
					t.Errorf("%s: behind %q comes %q, want %q", list, e.Node.Op, got.values(), rest.values())
				}
			}
			if got := *all.PageInfo.StartCursor; got != all.Edges[0].Cursor {
				t.Errorf("%s: the start cursor is not that of the first edge", list)
			}
		}
	}
}

func TestChangesRefused(t *testing.T) {
	b := newBench(t, graph.Options{})
	for i := range 6 {
		b.update(set("p", int64(i)))
	}
	early := b.store.FormatPosition(kg.Position{Epoch: b.store.Epoch(), Revision: 1, Index: kg.EndOfCommit})
	if err := b.store.Maintenance().CutLog(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	oldest := b.store.FormatPosition(b.store.Oldest())
	for _, row := range []struct {
		query, code, field string
		oldest             bool
	}{
		{`{ changes(after: "%s") { nodes { op } } }`, "POSITION_GONE", "after", true},
		{`{ changes(after: "%s", order: DESC) { nodes { op } } }`, "POSITION_GONE", "after", true},
		{`{ changes(after: "nonsense") { nodes { op } } }`, "POSITION_GONE", "after", true},
		{`{ changes(after: "snapshot") { nodes { op } } }`, "POSITION_GONE", "after", true},
		{`{ changes(since: 1) { nodes { op } } }`, "POSITION_GONE", "since", true},
		{`{ changes(since: "2026-01-01T00:00:01Z") { nodes { op } } }`, "REVISION_GONE", "since", true},
		{`{ changes(until: 1) { nodes { op } } }`, "POSITION_GONE", "until", true},
		{`{ changes(since: 7) { nodes { op } } }`, "REVISION_AHEAD", "since", false},
		{`{ changes(until: 7) { nodes { op } } }`, "REVISION_AHEAD", "until", false},
		{`{ changes(view: {maxAgeSeconds: 5}) { nodes { op } } }`, "INVALID", "view.maxAgeSeconds", false},
		{`{ changes(first: 1001) { nodes { op } } }`, "LIMIT_EXCEEDED", "", false},
		{`{ changes(since: "soon") { nodes { op } } }`, "INVALID", "since", false},
		{`{ entity(iri: "ex:s") { history(after: "%s") { nodes { op } } } }`, "POSITION_GONE", "after", true},
		{`{ entity(iri: "ex:s", view: {maxAgeSeconds: 5}) { history { nodes { op } } } }`, "INVALID", "view.maxAgeSeconds", false},
		{`{ diff(from: 3, to: 2) { nodes { op } } }`, "INVALID", "from", false},
		{`{ diff(from: 1, to: 7) { nodes { op } } }`, "REVISION_AHEAD", "to", false},
		{`{ diff(from: 0, to: 0) { nodes { op } } }`, "REVISION_GONE", "to", false},
		{`{ diff(from: "2026-01-01T00:00:01Z") { nodes { op } } }`, "REVISION_GONE", "from", true},
		{`{ diff(from: 1, after: "nonsense") { nodes { op } } }`, "CURSOR_FOREIGN", "after", false},
	} {
		query := strings.Replace(row.query, "%s", early, 1)
		result := b.execute(query, "")
		if len(result.Errors) != 1 {
			t.Errorf("%s: got the errors %v and %s", row.query, result.Errors, result.Data)
			continue
		}
		e := result.Errors[0].Extensions
		if e["code"] != row.code || row.field != "" && e["field"] != row.field || (e["oldest"] == oldest) != row.oldest {
			t.Errorf("%s: got %v %v, want %s %s, with the oldest position: %v", row.query, result.Errors[0], e, row.code, row.field, row.oldest)
		}
	}
	// Reads that need no log work without it, and the rest of the log is reported.
	var data struct {
		Diff    struct{ Nodes []struct{ Op string } }
		Changes changePage
		Entity  struct{ History changePage }
	}
	b.data(`{ diff(from: 1) { nodes { op } } changes `+changePageFields+` entity(iri: "ex:s") { history `+changePageFields+` } }`, "", &data)
	if len(data.Diff.Nodes) != 2 {
		t.Errorf("diff without the log: got %v", data.Diff.Nodes)
	}
	if got, want := data.Changes.values(), "replace 3 for 2, replace 4 for 3, replace 5 for 4"; got != want {
		t.Errorf("changes: got %s, want %s", got, want)
	}
	if got, want := data.Entity.History.values(), "replace 5 for 4, replace 4 for 3, replace 3 for 2"; got != want {
		t.Errorf("history: got %s, want %s", got, want)
	}
}

// A position of a list is one of a subscription, and the other way round.
func TestChangesThenFollow(t *testing.T) {
	b := newBench(t, graph.Options{})
	for i := range 3 {
		b.update(set("p", int64(i)))
	}
	var data struct{ C changePage }
	b.data(`{ c: changes(first: 2) `+changePageFields+` }`, "", &data)
	query := `subscription ($from: Position) { e: statementChanged(resume: $from) { ` + changeFields + ` } }`
	f := b.follow(t, query, fmt.Sprintf(`{"from": %q}`, *data.C.PageInfo.EndCursor), operation.Resume{})
	third := f.want(change("replace", "p", "2"))
	b.update(set("p", 3))
	f.want(change("replace", "p", "3"))
	b.data(fmt.Sprintf(`{ c: changes(after: %q) %s }`, b.store.FormatPosition(third.Position), changePageFields), "", &data)
	if got, want := data.C.values(), "replace 3 for 2"; got != want {
		t.Errorf("behind an event: got %s, want %s", got, want)
	}
	b.data(fmt.Sprintf(`{ c: changes(after: %q, order: DESC) %s }`, b.store.FormatPosition(third.Position), changePageFields), "", &data)
	if got, want := data.C.values(), "replace 2 for 1, replace 1 for 0, add 0"; got != want {
		t.Errorf("up to an event: got %s, want %s", got, want)
	}
}

// A page reads a bounded number of commits, and its cursor continues.
func TestChangesLookAtSoManyCommits(t *testing.T) {
	const commits = 4
	b := newBench(t, graph.Options{Limits: limit.Limits{Commits: commits}})
	b.update(set("p", 0))
	for i := range 3 * commits {
		b.update(set("q", int64(i)))
	}
	b.update(set("p", 1))
	for _, order := range []string{"ASC", "DESC"} {
		for _, where := range []string{`predicate: {eq: "ex:p"}`, `predicate: {eq: "ex:p"}, not: {predicate: {eq: "ex:q"}}`} {
			for _, list := range []string{`c: changes(%s) %s`, `e: entity(iri: "ex:s") { c: history(%s) %s }`} {
				query := `query ($first: Int, $after: Cursor) { ` + fmt.Sprintf(list, `first: $first, after: $after, order: `+order+`, where: {`+where+`}`, changePageFields) + ` }`
				walk := b.walkChanges
				if strings.HasPrefix(list, "e:") {
					walk = b.walkHistory
				}
				if got := walk(query, 10); len(got) != 2 {
					t.Errorf("%s: got %d changes, want 2", query, len(got))
				}
			}
		}
	}
	var data struct{ C changePage }
	b.data(`{ c: changes(where: {predicate: {eq: "ex:p"}}, since: 1) `+changePageFields+` }`, "", &data)
	p, err := b.store.ParsePosition(*data.C.PageInfo.EndCursor)
	if len(data.C.Edges) != 0 || !data.C.PageInfo.HasNextPage || err != nil || p.Revision != 1+commits {
		t.Errorf("got %d changes up to %d, more %v, want none up to %d, and more", len(data.C.Edges), p.Revision, data.C.PageInfo.HasNextPage, 1+commits)
	}
	// A history with a selective condition reads as many commits too.
	b.data(`{ c: changes(where: {object: {lt: 0}}) `+changePageFields+` }`, "", &data)
	var e struct{ E struct{ C changePage } }
	b.data(`{ e: entity(iri: "ex:s") { c: history(where: {object: {lt: 0}}) `+changePageFields+` } }`, "", &e)
	p, err = b.store.ParsePosition(*e.E.C.PageInfo.EndCursor)
	if want := b.store.Head().Revision - commits; !e.E.C.PageInfo.HasNextPage || err != nil || p.Revision != want {
		t.Errorf("history: up to %d, more %v, want %d, and more", p.Revision, e.E.C.PageInfo.HasNextPage, want)
	}
}

// The history of an entity reads its own statements, also for one without statements left.
func TestHistoryCostsItsOwn(t *testing.T) {
	b := newBench(t, graph.Options{})
	for i := range 50 {
		b.update(add(iri(fmt.Sprint("other", i)), iri("p"), kg.Integer(int64(i))), add(iri("gone"), iri("q"), kg.Integer(int64(i))))
		if i%10 == 0 {
			b.update(set("p", int64(i)))
		}
	}
	for i := range 50 {
		b.update(kg.Patch{Op: kg.Remove, Quad: add(iri("gone"), iri("q"), kg.Integer(int64(i))).Quad})
	}
	var data struct{ Entity *struct{ History changePage } }
	result := b.data(`{ entity(iri: "ex:s") { history `+changePageFields+` } }`, "", &data)
	if got, want := data.Entity.History.values(), "replace 40 for 30, replace 30 for 20, replace 20 for 10, replace 10 for 0, add 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if result.StatementsRead > 10 {
		t.Errorf("%d statements were read of an entity that had five", result.StatementsRead)
	}
	data.Entity = nil
	b.data(`{ entity(iri: "ex:gone") { history(first: 1) `+changePageFields+` } }`, "", &data)
	if data.Entity == nil || data.Entity.History.values() != "remove 49" {
		t.Errorf("of an entity that is gone: got %+v", data.Entity)
	}
	for _, query := range []string{`{ entity(iri: "ex:gone") { iri } }`, `{ entity(iri: "ex:never") { history { nodes { op } } } }`, `{ entity(iri: "ex:gone", view: {believedBy: ["nobody"]}) { history { nodes { op } } } }`} {
		if result := b.execute(query, ""); string(result.Data) != `{"entity":null}` {
			t.Errorf("%s: got %s, %v", query, result.Data, result.Errors)
		}
	}
}

// interfering is an Access that writes a commit when a reader's operation calls it: between
// the reads of the operation others have written.
type interfering struct {
	mu    sync.Mutex
	asked int
	left  int // how often it will write
	write func()
}

func (a *interfering) Allowed(p kg.Principal, _ kg.Term, _ kg.Right) bool {
	if p.ID == reader.ID {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.asked++; a.left > 0 && a.asked%2 == 1 {
			a.left--
			a.write()
		}
	}
	return true
}

// TestOneOperationReadsOneRevision proves that all reads of an operation, at any depth, are
// of one revision during concurrent writes, and that the answer has that revision.
func TestOneOperationReadsOneRevision(t *testing.T) {
	access := &interfering{}
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = access })
	n := int64(0)
	write := func() {
		n++
		p := add(iri("o"), iri("n"), kg.Integer(n))
		p.Op = kg.Replace
		b.update(set("n", n), p, add(iri("s"), iri("knows"), iri("o")))
	}
	for range 3 {
		write()
	}
	access.write = write
	for range 10 {
		before := b.store.Head().Revision
		access.left = 12
		var data struct {
			Revision kg.Revision
			S        struct {
				N int64
				O struct {
					Nodes []struct{ Object struct{ N int64 } }
				}
				H changePage
			}
			C    changePage
			Deep struct {
				Nodes []struct {
					Statement struct {
						Subject struct {
							N int64
							H changePage
						}
					}
				}
			}
			D, E  struct{ To kg.Revision }
			Stats struct{ Revision kg.Revision }
			At    struct{ N int64 }
		}
		result := b.data(`{
			s: entity(iri: "ex:s") { n: value(predicate: "ex:n") o: out(where: {predicate: {eq: "ex:knows"}}) { nodes { object { ... on Entity { n: value(predicate: "ex:n") } } } } h: history(first: 1) `+changePageFields+` }
			c: changes(first: 1, order: DESC) `+changePageFields+`
			deep: changes(first: 3) { nodes { statement { subject { n: value(predicate: "ex:n") h: history(first: 1) `+changePageFields+` } } } }
			d: diff(from: 1, to: "2199-01-01T00:00:00Z") { to }
			e: diff(from: 1) { to nodes { statement { subject { iri } } } }
			stats { revision }
			at: entity(iri: "ex:s", view: {at: "2199-01-01T00:00:00Z"}) { n: value(predicate: "ex:n") }
			revision
		}`, "", &data)
		r := int64(result.Position.Revision) // commit r made all the numbers r
		got := []int64{int64(data.Revision), data.S.N, int64(data.S.H.Edges[0].Node.Commit.Revision), int64(data.C.Edges[0].Node.Commit.Revision), int64(data.D.To), int64(data.E.To), int64(data.Stats.Revision), data.At.N}
		for _, o := range data.S.O.Nodes {
			got = append(got, o.Object.N)
		}
		for _, d := range data.Deep.Nodes {
			got = append(got, d.Statement.Subject.N, int64(d.Statement.Subject.H.Edges[0].Node.Commit.Revision))
		}
		if slices.ContainsFunc(got, func(n int64) bool { return n != r }) {
			t.Errorf("extensions.revision is %d, the answer reads the revisions %v", r, got)
		}
		if b.store.Head().Revision < before+6 {
			t.Fatalf("only %d commits were made meanwhile: the test says little", b.store.Head().Revision-before)
		}
	}
}

func TestMomentsInViews(t *testing.T) {
	b := newBench(t, graph.Options{})
	var times []string
	for i := range 3 {
		times = append(times, b.update(set("p", int64(i+1))).Time.Format("2006-01-02T15:04:05.000Z"))
	}
	for _, row := range []struct{ view, want string }{
		{`at: 2`, "2"}, {`at: "2"`, "2"},
		{fmt.Sprintf("at: %q", times[0]), "1"}, {fmt.Sprintf("at: %q", times[2]), "3"}, {`at: "2199-01-01T00:00:00Z"`, "3"},
		{fmt.Sprintf("at: 2, recordedAt: {from: %q}", times[1]), "2"},
		{fmt.Sprintf("at: 2, recordedAt: {until: %q}", times[1]), "null"},
		{fmt.Sprintf("recordedAt: {from: %q}", times[2]), "3"}, {fmt.Sprintf("recordedAt: {from: %q, until: %q}", times[2], times[2]), "null"},
		{"at: 1, minRevision: 3", "1"}, {"minRevision: 3", "3"}, {"minRevision: null", "3"},
	} {
		got := string(b.execute(`{ entity(iri: "ex:s", view: {`+row.view+`}) { value(predicate: "ex:p") } }`, "").Data)
		want := `{"entity":{"value":` + row.want + `}}`
		if row.want == "null" {
			want = `{"entity":null}`
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", row.view, got, want)
		}
	}
	for _, row := range []struct{ view, code, field string }{
		{`at: 0`, "REVISION_GONE", "view.at"}, {`at: 4`, "REVISION_AHEAD", ""}, {`at: "2020-01-01T00:00:00Z"`, "REVISION_GONE", "view.at"},
		{`at: "yesterday"`, "INVALID", "view.at"}, {`at: true`, "INVALID", ""},
		{`recordedAt: {from: "2026-01-02T00:00:00Z", until: "2026-01-01T00:00:00Z"}`, "INVALID", "view.recordedAt"},
		{`minRevision: "x"`, "INVALID", "view.minRevision"},
	} {
		result := b.execute(`{ statements(view: {`+row.view+`}) { nodes { id } } }`, "")
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != row.code || row.field != "" && result.Errors[0].Extensions["field"] != row.field {
			t.Errorf("%s: got %v, want %s at %s", row.view, result.Errors, row.code, row.field)
		}
	}
	// A span of the request is narrowed by that of a field.
	req := b.request(`{ statements(view: {recordedAt: {until: "2199-01-01T00:00:00Z"}}) { totalCount } }`, "")
	for year, want := range map[int]string{2026: `{"statements":{"totalCount":1}}`, 2198: `{"statements":{"totalCount":0}}`, 2200: `{"statements":{"totalCount":0}}`} {
		req.View.Recorded.From = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if got := b.engine.Execute(t.Context(), req); string(got.Data) != want {
			t.Errorf("from %d: got %s, %v, want %s", year, got.Data, got.Errors, want)
		}
	}
}

// Cursors of pages under one span do not fit the pages under another.
func TestCursorsAreBoundToSpans(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1), set("q", 1))
	page := func(view, after string) operation.Result {
		return b.execute(fmt.Sprintf(`{ statements(first: 1, view: {recordedAt: {%s}} %s) { pageInfo { endCursor } } }`, view, after), "")
	}
	first := page(`from: "2026-01-01T00:00:00Z"`, "")
	_, cursor, _ := strings.Cut(string(first.Data), `"endCursor":`)
	cursor = `, after: ` + strings.TrimRight(cursor, "}")
	if again := page(`from: "2026-01-01T01:00:00+01:00"`, cursor); len(again.Errors) > 0 {
		t.Errorf("the same span: %v", again.Errors)
	}
	for _, other := range []string{"", `from: "2026-01-01T00:00:00.001Z"`, `until: "2026-01-01T00:00:00Z"`, `from: "2026-01-01T00:00:00Z", until: "2199-01-01T00:00:00Z"`} {
		if got := page(other, cursor); len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "CURSOR_FOREIGN" {
			t.Errorf("{%s}: got %v", other, got.Errors)
		}
	}
}

// minRevision waits for the revision before anything is read, and not for ever.
func TestMinRevisionWaits(t *testing.T) {
	b := newBench(t, graph.Options{Limits: limit.Limits{Wait: 50 * time.Millisecond}})
	b.update(set("p", 1))
	query := `query ($view: ViewInput) { other: stats { revision } entity(iri: "ex:s", view: $view) { value(predicate: "ex:p") } }`
	result := b.execute(query, `{"view": {"minRevision": 2}}`)
	if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "TIMEOUT" || result.Errors[0].Extensions["field"] != "view.minRevision" || result.Data != nil {
		t.Errorf("got %s, %v, want TIMEOUT", result.Data, result.Errors)
	}
	patient := graph.NewEngine(graph.Deps{Store: b.store, Prefixes: new(kg.Prefixes)}, graph.Options{})
	done := make(chan operation.Result)
	go func() {
		req := operation.Request{Query: strings.ReplaceAll(query, "ex:", ex), Variables: map[string]any{"view": map[string]any{"minRevision": "2"}}, Principal: reader}
		done <- patient.Execute(context.Background(), req)
	}()
	b.update(set("p", 2))
	if got, want := <-done, `{"other":{"revision":2},"entity":{"value":2}}`; string(got.Data) != want || got.Position.Revision != 2 {
		t.Errorf("got %s at %d, %v, want %s", got.Data, got.Position.Revision, got.Errors, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := b.request(`subscription { statementChanged(view: {minRevision: 3}) { __typename } }`, "")
	if _, err := patient.Subscribe(ctx, req); err == nil {
		t.Error("a subscription does not wait")
	}
}

// A walk over differences keeps the moments that it began with.
func TestDiffPagesKeepTheirMoments(t *testing.T) {
	b := newBench(t, graph.Options{})
	for i := range 4 {
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(i))))
	}
	query := `query ($after: Cursor) { diff(from: "2026-01-01T00:00:01Z", to: "2199-01-01T00:00:00Z", first: 2, after: $after) { from to nodes { op statement { object { ... on Literal { value } } } } pageInfo { endCursor hasNextPage } } }`
	var data struct {
		Diff struct {
			From, To kg.Revision
			Nodes    []struct{ Op string }
			PageInfo struct {
				EndCursor   string
				HasNextPage bool
			}
		}
	}
	b.data(query, "", &data)
	first := data.Diff
	for i := range 4 {
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(10+i))))
	}
	result := b.data(query, fmt.Sprintf(`{"after": %q}`, first.PageInfo.EndCursor), &data)
	if d := data.Diff; d.From != first.From || d.To != 4 || first.To != 4 || len(first.Nodes)+len(d.Nodes) != 4-int(first.From) || d.PageInfo.HasNextPage || result.Position.Revision != 4 {
		t.Errorf("got %+v, then %+v at %d", first, d, result.Position.Revision)
	}
}

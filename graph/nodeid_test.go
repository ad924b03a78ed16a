package graph_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph"
	"koine/graph/internal/views"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// shownNode is an entity or a statement with the fields that depend on its view.
type shownNode struct {
	Typename   string `json:"__typename"`
	ID         string
	Value      any
	Certainty  *float64
	AssertedBy []string
	Out        struct {
		Nodes []struct {
			ID, Graph string
			Certainty *float64
			Subject   struct{ ID string }
		}
	}
}

const nodePart = ` { __typename id ... on Entity { value(predicate: "ex:p") out { nodes { id graph certainty subject { id } } } } ... on Statement { certainty assertedBy } } `

// dated is a bench whose entity ex:s differs from view to view.
func dated(t *testing.T, configure ...func(*kg.Options)) *bench {
	b := newBench(t, graph.Options{}, configure...)
	change := func(source kg.AgentID, certainty float64, value int64) {
		p := by(source, certainty, add(iri("s"), iri("p"), kg.Integer(value)))
		p.Op = kg.Replace
		b.update(p)
	}
	change("agent://ann", 0.2, 1)
	change("agent://ann", 0.9, 1)
	change("agent://bob", 0.5, 1)
	b.update(in(iri("g"), by("agent://ann", 0.3, add(iri("s"), iri("p"), kg.Integer(1)))))
	change("agent://ann", 0.9, 2)
	return b
}

// Two views have one id exactly if they have the same conditions, in any notation.
func TestIDsOfViews(t *testing.T) {
	b := dated(t)
	head := b.store.Head().Revision
	at := func(r kg.Revision) string { return b.timeOf(r) }
	for name, row := range map[string]struct {
		one, other string
		same       bool
	}{
		"no view":                         {``, `{}`, true},
		"nothing said in a view":          {``, `{graphs: null, minCertainty: 0, allGraphs: false, recordedAt: {}, includePending: false, minRevision: 1}`, true},
		"the past":                        {``, `{at: 1}`, false},
		"the newest revision":             {``, fmt.Sprintf(`{at: %d}`, head), false},
		"a time and its revision":         {`{at: 2}`, `{at: "` + at(2) + `"}`, true},
		"a time in another zone":          {`{validAt: "2026-01-01T00:00:00Z"}`, `{validAt: "2026-01-01T02:00:00+02:00"}`, true},
		"two times of one revision":       {`{at: "` + at(2) + `"}`, `{at: "` + strings.Replace(at(2), ".000Z", ".001Z", 1) + `"}`, true},
		"a time to come":                  {`{at: "2099-01-01T00:00:00Z"}`, fmt.Sprintf(`{at: %d}`, head), true},
		"two revisions":                   {`{at: 1}`, `{at: 2}`, false},
		"a certainty":                     {``, `{minCertainty: 0.5}`, false},
		"a certainty in two ways":         {`{minCertainty: 0.5}`, `{minCertainty: 5e-1}`, true},
		"two certainties":                 {`{minCertainty: 0.5}`, `{minCertainty: 0.25}`, false},
		"the order of graphs":             {`{graphs: ["ex:g", null]}`, `{graphs: [null, "https://example.org/g", "ex:g"]}`, true},
		"other graphs":                    {`{graphs: ["ex:g"]}`, `{graphs: [null]}`, false},
		"named graphs and all of them":    {`{graphs: ["ex:g"]}`, `{graphs: ["ex:g"], allGraphs: true}`, true},
		"all graphs":                      {``, `{allGraphs: true}`, false},
		"all graphs and the pending ones": {`{allGraphs: true}`, `{allGraphs: true, includePending: true}`, true},
		"pending graphs":                  {``, `{includePending: true}`, false},
		"the order of agents":             {`{believedBy: ["ann", "bob"]}`, `{believedBy: ["agent://bob", "agent://ann", "bob"]}`, true},
		"a span":                          {``, `{recordedAt: {from: "2026-01-01T00:00:01Z"}}`, false},
		"the ends of a span":              {`{recordedAt: {until: "2099-01-01T00:00:00Z"}}`, `{recordedAt: {from: "2026-01-01T00:00:01Z"}}`, false},
		"an age":                          {``, `{maxAgeSeconds: 3600}`, false},
		"ages of one evaluation":          {`{maxAgeSeconds: 3600}`, `{maxAgeSeconds: 3600}`, true},
		"years of other zones":            {`{validAt: "9999-12-31T23:59:59-01:00"}`, `{validAt: "9999-12-31T23:59:59Z"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.of(t)
			argument := func(view string) string {
				if view == "" {
					return ""
				}
				return ", view: " + view
			}
			var data struct{ One, Other shownNode }
			b.data(`{ one: entity(iri: "ex:s"`+argument(row.one)+`) { id } other: entity(iri: "ex:s"`+argument(row.other)+`) { id } }`, "", &data)
			if data.One.ID == "" || data.Other.ID == "" {
				t.Fatalf("got %+v", data)
			}
			if (data.One.ID == data.Other.ID) != row.same {
				t.Errorf("the ids are %s and %s", data.One.ID, data.Other.ID)
			}
		})
	}
}

// viewsOfS are views that show ex:s, each in its own way.
func (b *bench) viewsOfS() []string {
	return []string{
		``, `{at: 1}`, `{at: "` + b.timeOf(2) + `"}`, fmt.Sprintf(`{at: %d}`, b.store.Head().Revision), `{minCertainty: 0.4}`, `{graphs: ["ex:g"]}`, `{graphs: [null]}`,
		`{allGraphs: true}`, `{includePending: true}`, `{believedBy: ["ann"]}`, `{recordedAt: {from: "` + b.timeOf(3) + `", until: "` + b.timeOf(5) + `"}}`,
		`{validAt: "2026-01-01T00:00:00Z"}`, `{maxAgeSeconds: 600}`, `{at: 4, minCertainty: 0.25, graphs: [null, "ex:g"], believedBy: ["ann", "bob"], maxAgeSeconds: 3600}`,
	}
}

// An id leads back to its object: the same thing in the same view, with the same id.
func TestNodeReadsInTheViewOfItsID(t *testing.T) {
	b := dated(t)
	seen := map[string]string{}
	for _, view := range b.viewsOfS() {
		argument := ""
		if view != "" {
			argument = ", view: " + view
		}
		var data struct{ Entity shownNode }
		b.data(`{ entity(iri: "ex:s"`+argument+`)`+strings.Replace(nodePart, "... on Statement { certainty assertedBy }", "", 1)+`}`, "", &data)
		if data.Entity.ID == "" || len(data.Entity.Out.Nodes) == 0 {
			t.Fatalf("%s shows %+v", view, data)
		}
		if other, known := seen[data.Entity.ID]; known {
			t.Errorf("%s and %s have one id", view, other)
		}
		seen[data.Entity.ID] = view
		if view == "" && data.Entity.ID != "urn:koine:entity:https://example.org/s" {
			t.Errorf("in the present the id is %s", data.Entity.ID)
		}
		var again struct{ Node shownNode }
		b.data(`query ($id: ID!) { node(id: $id)`+nodePart+`}`, fmt.Sprintf(`{"id": %q}`, data.Entity.ID), &again)
		if diff := cmp.Diff(data.Entity, again.Node); diff != "" {
			t.Errorf("%s: node differs (-entity +node):\n%s", view, diff)
		}
		for _, st := range data.Entity.Out.Nodes {
			if st.Subject.ID != data.Entity.ID {
				t.Errorf("%s: the subject of a statement has the id %s", view, st.Subject.ID)
			}
			var again struct{ Node shownNode }
			b.data(`query ($id: ID!) { node(id: $id)`+nodePart+`}`, fmt.Sprintf(`{"id": %q}`, st.ID), &again)
			if diff := cmp.Diff(st.Certainty, again.Node.Certainty); again.Node.ID != st.ID || diff != "" {
				t.Errorf("%s: statement %s is %+v: %s", view, st.ID, again.Node, diff)
			}
		}
	}
}

// A bare IRI names the entity in the present.
func TestNodeOfAnIRI(t *testing.T) {
	b := dated(t)
	var data struct{ Node shownNode }
	b.data(`{ node(id: "https://example.org/s")`+nodePart+`}`, "", &data)
	if data.Node.ID != "urn:koine:entity:https://example.org/s" || data.Node.Value != 2. {
		t.Errorf("got %+v", data.Node)
	}
	for _, id := range []string{"", "no id at all", "urn:koine:entity:", "urn:koine:entity:no iri", "urn:koine:statement:AAAA", "urn:koine:commit:0", "urn:koine:commit:01", "urn:koine:commit:99", "agent://", "chan:direct:3d0dd91bae166f8dd520d8f4", "01a201b4-6b1f-7be5-b409-5d2bfd7667e3", "i2qthUAdEsn6", "urn:koine:artifact:01a201b4-6b1f-7be5-b409-5d2bfd7667e3/x"} {
		if r := b.execute(`query ($id: ID!) { node(id: $id) { id } }`, fmt.Sprintf(`{"id": %q}`, id)); len(r.Errors) > 0 || strings.TrimSpace(string(r.Data)) != `{"node":null}` {
			t.Errorf("%q: got %s, %v", id, r.Data, r.Errors)
		}
	}
}

// The view of a whole operation counts like that of a field, and bounds that of an id.
func TestIDsUnderTheViewOfTheOperation(t *testing.T) {
	b := dated(t)
	ask := func(view kg.View, query string) (shownNode, operation.Result) {
		result := b.engine.Execute(t.Context(), operation.Request{Query: query, Principal: reader, View: view})
		var data struct{ X shownNode }
		if len(result.Errors) == 0 {
			if err := json.Unmarshal(result.Data, &data); err != nil {
				t.Fatal(err)
			}
		}
		return data.X, result
	}
	for field, view := range map[string]kg.View{
		"{at: 2}": {At: 2}, "{minCertainty: 0.4}": {MinCertainty: 0.4}, `{graphs: ["ex:g"]}`: {Graphs: []kg.Term{iri("g")}},
	} {
		whole, _ := ask(view, `{ x: entity(iri: "ex:s") { id value(predicate: "ex:p") } }`)
		one, _ := ask(kg.View{}, `{ x: entity(iri: "ex:s", view: `+field+`) { id value(predicate: "ex:p") } }`)
		if whole.ID == "" || whole.ID != one.ID {
			t.Errorf("%s: as the view of the operation %s, of the field %s", field, whole.ID, one.ID)
		}
		// In the operation's view the present is not to be had.
		if n, _ := ask(view, `{ x: node(id: "urn:koine:entity:https://example.org/s") { id } }`); n.ID != whole.ID {
			t.Errorf("%s: the id of the present is shown as %s", field, n.ID)
		}
		if n, r := ask(view, `{ x: node(id: "`+whole.ID+`") { id } }`); n.ID != whole.ID {
			t.Errorf("%s: got %s, %v", field, n.ID, r.Errors)
		}
	}
	aged, _ := ask(kg.View{MaxAge: time.Hour}, `{ x: entity(iri: "ex:s") { id } }`)
	if !strings.HasPrefix(aged.ID, "urn:koine:entity@") {
		t.Errorf("under an age the id is %s", aged.ID)
	}
	past, _ := ask(kg.View{}, `{ x: entity(iri: "ex:s", view: {at: 1}) { id } }`)
	_, r := ask(kg.View{At: 2}, `{ x: node(id: "`+past.ID+`") { id } }`)
	if len(r.Errors) != 1 || r.Errors[0].Extensions["field"] != "id" || r.Errors[0].Extensions["code"] != "INVALID" {
		t.Errorf("an id of revision 1 in an operation of revision 2: %s, %v", r.Data, r.Errors)
	}
}

// An age is kept as the moment from which on it admitted assertions.
func TestAnAgeKeepsItsEvaluationTime(t *testing.T) {
	b := dated(t)
	var data struct{ Entity shownNode }
	b.data(`{ entity(iri: "ex:s", view: {maxAgeSeconds: 2}) { id value(predicate: "ex:p") } }`, "", &data)
	for range 10 { // the clock goes on
		b.update(add(iri("x"), iri("y"), iri("z")))
	}
	var later struct {
		Entity *shownNode
		Node   shownNode
	}
	b.data(`query ($id: ID!) { entity(iri: "ex:s", view: {maxAgeSeconds: 2}) { id } node(id: $id) { id ... on Entity { value(predicate: "ex:p") } } }`, fmt.Sprintf(`{"id": %q}`, data.Entity.ID), &later)
	if later.Entity != nil || later.Node.ID != data.Entity.ID || later.Node.Value != data.Entity.Value {
		t.Errorf("first %+v, later %+v", data, later)
	}
}

func viewToken(view string) string { return base64.RawURLEncoding.EncodeToString([]byte(view)) }

// An invented id is refused with the reason.
func TestForgedIDs(t *testing.T) {
	b := dated(t)
	many := func(n int, each string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(each, i)
		}
		return `"` + strings.Join(list, `","`) + `"`
	}
	for name, row := range map[string]struct{ view, code string }{
		"not base64":         {"!", "INVALID"},
		"no view":            {"", "INVALID"},
		"padded":             {viewToken(`{"at":10}`) + "==", "INVALID"},
		"not JSON":           {viewToken("nothing"), "INVALID"},
		"the present":        {viewToken(`{}`), "INVALID"},
		"null":               {viewToken(`null`), "INVALID"},
		"another order":      {viewToken(`{"minCertainty":0.5,"at":1}`), "INVALID"},
		"with spaces":        {viewToken(`{"at": 1}`), "INVALID"},
		"more behind":        {viewToken(`{"at":1}{}`), "INVALID"},
		"an unknown part":    {viewToken(`{"at":1,"principal":"agent://root"}`), "INVALID"},
		"another case":       {viewToken(`{"AT":1}`), "INVALID"},
		"a part twice":       {viewToken(`{"at":1,"at":1}`), "INVALID"},
		"unsorted graphs":    {viewToken(`{"graphs":["https://example.org/g",""]}`), "INVALID"},
		"a graph twice":      {viewToken(`{"graphs":["",""]}`), "INVALID"},
		"no graph":           {viewToken(`{"graphs":["no iri"]}`), "INVALID"},
		"a bare agent":       {viewToken(`{"believedBy":["ann"]}`), "INVALID"},
		"an uncertainty":     {viewToken(`{"minCertainty":1.5}`), "INVALID"},
		"no time":            {viewToken(`{"validAt":"now"}`), "INVALID"},
		"a time in words":    {viewToken(`{"validAt":"1.5"}`), "INVALID"},
		"a span backwards":   {viewToken(`{"recordedFrom":"20.000000000","recordedUntil":"10.000000000"}`), "INVALID"},
		"a revision to come": {viewToken(`{"at":99}`), "REVISION_AHEAD"},
		"too many agents":    {viewToken(`{"believedBy":[` + many(1025, "a:%04d") + `]}`), "INVALID"},
		"deep":               {viewToken(strings.Repeat("[", 10000)), "INVALID"},
		"quarantined":        {viewToken(`{"includeQuarantined":true}`), "PERMISSION_DENIED"},
	} {
		for _, id := range []string{"urn:koine:entity@" + row.view + ":https://example.org/s", "urn:koine:statement@" + row.view + ":AAAA"} {
			r := b.execute(`query ($id: ID!) { node(id: $id) { id } }`, fmt.Sprintf(`{"id": %q}`, id))
			if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != row.code || strings.TrimSpace(string(r.Data)) != `{"node":null}` {
				t.Errorf("%s: got %s, %v; want %s", name, r.Data, r.Errors, row.code)
			}
		}
	}
	long := "urn:koine:entity:https://example.org/" + strings.Repeat("x", views.MaxNodeIDBytes)
	for _, id := range []string{"urn:koine:entity@e30", long, "urn:koine:entity:#" + strings.Repeat("x", 43)} {
		if r := b.execute(`query ($id: ID!) { node(id: $id) { id } }`, fmt.Sprintf(`{"id": %q}`, id)); len(r.Errors) != 1 {
			t.Errorf("%.60s: got %s", id, r.Data)
		}
	}
}

// An id grants nothing: any view in it is read with the rights of the caller.
func TestIDsGrantNothing(t *testing.T) {
	hidden := iri("hidden")
	b := dated(t, func(o *kg.Options) { o.Access = hidingGraph{hidden} })
	b.update(in(hidden, add(iri("s"), iri("p"), kg.String("secret"))), in(hidden, add(iri("ghost"), iri("p"), kg.String("secret"))))
	for _, view := range []string{`{"allGraphs":true}`, `{"graphs":["https://example.org/hidden"]}`, `{"at":6}`, `{"at":6,"allGraphs":true}`} {
		for _, name := range []string{"s", "ghost"} {
			r := b.execute(`query ($id: ID!) { node(id: $id) { ... on Entity { values(predicate: "ex:p") out { nodes { id } } } } }`, fmt.Sprintf(`{"id": %q}`, "urn:koine:entity@"+viewToken(view)+":"+ex+name))
			if len(r.Errors) > 0 || strings.Contains(string(r.Data), "secret") || name == "ghost" && strings.TrimSpace(string(r.Data)) != `{"node":null}` {
				t.Errorf("%s of %s: %s, %v", name, view, r.Data, r.Errors)
			}
		}
	}
}

// hidingGraph shows a graph to administrators only.
type hidingGraph struct{ graph kg.Term }

func (h hidingGraph) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != h.graph || p.IsAdmin()
}

// Every id is bounded: a view that is too long for one is an error where an id is
// requested, and a name that is too long is replaced by its hash.
func TestIDsAreBounded(t *testing.T) {
	slowtest.Long(t)
	b := dated(t)
	graphs := func(n int) string {
		list := []string{"null"}
		for i := range n {
			list = append(list, fmt.Sprintf(`"urn:g:%04d"`, i))
		}
		return "{graphs: [" + strings.Join(list, ", ") + "]}"
	}
	ask := func(n int, selection string) operation.Result {
		return b.execute(`{ entity(iri: "ex:s", view: `+graphs(n)+`) { `+selection+` } }`, "")
	}
	most := 0
	for n := 700; n < 1000; n++ {
		r := ask(n, "id")
		if len(r.Errors) > 0 {
			if r.Errors[0].Extensions["code"] != "LIMIT_EXCEEDED" {
				t.Fatal(r.Errors)
			}
			break
		}
		var data struct{ Entity shownNode }
		if err := json.Unmarshal(r.Data, &data); err != nil || len(data.Entity.ID) > views.MaxNodeIDBytes {
			t.Fatal(err, len(data.Entity.ID))
		}
		most = n
		if most%100 == 0 { // and it is taken
			var again struct{ Node shownNode }
			if b.data(`query ($id: ID!) { node(id: $id) { id } }`, fmt.Sprintf(`{"id": %q}`, data.Entity.ID), &again); again.Node.ID != data.Entity.ID {
				t.Fatal(again)
			}
		}
	}
	if most < 800 || most > 990 {
		t.Errorf("views may name %d graphs", most)
	}
	if r := ask(most+1, "iri"); len(r.Errors) > 0 {
		t.Errorf("without id: %v", r.Errors)
	}

	exact := ex + strings.Repeat("x", views.MaxNodeIDBytes-len("urn:koine:entity:_:")-len(ex))
	for name, found := range map[string]bool{exact: true, exact + "xxx": false, exact + "xxxx": false} {
		b.update(add(kg.IRI(name), iri("long"), iri("o")))
		var data struct{ Entity, Node shownNode }
		b.data(`query ($iri: IRI!) { entity(iri: $iri) { id } }`, fmt.Sprintf(`{"iri": %q}`, name), &data)
		if len(data.Entity.ID) > views.MaxNodeIDBytes {
			t.Errorf("an id has %d bytes", len(data.Entity.ID))
		}
		r := b.execute(`query ($id: ID!) { node(id: $id) { id } }`, fmt.Sprintf(`{"id": %q}`, data.Entity.ID))
		if found != (len(r.Errors) == 0 && strings.Contains(string(r.Data), data.Entity.ID)) {
			t.Errorf("an IRI of %d bytes: %.200s, %v", len(name), r.Data, r.Errors)
		}
	}
}

// A change shows the assertion of one agent; its statements are not those of the present.
func TestIDsInChanges(t *testing.T) {
	b := dated(t)
	type change struct {
		Op        string
		Statement shownNode
		Previous  []shownNode
	}
	var data struct {
		Changes struct{ Nodes []change }
		Entity  struct {
			History struct{ Nodes []change }
			Out     struct{ Nodes []shownNode }
		}
	}
	const part = `{ nodes { op statement { id certainty assertedBy } previous { id certainty assertedBy } } }`
	b.data(`{ changes(after: "earliest") `+part+` entity(iri: "ex:s") { history `+part+` out { nodes { id certainty assertedBy } } } }`, "", &data)
	shown := map[string]shownNode{}
	note := func(n shownNode) {
		if before, known := shown[n.ID]; known && !cmp.Equal(before, n) {
			t.Errorf("one id for %+v and %+v", before, n)
		}
		shown[n.ID] = n
	}
	for _, c := range append(data.Changes.Nodes, data.Entity.History.Nodes...) {
		note(c.Statement)
		for _, p := range c.Previous {
			note(p)
		}
	}
	for _, n := range data.Entity.Out.Nodes {
		note(n)
	}
	if len(shown) < 7 {
		t.Errorf("only %d statements were shown: %v", len(shown), shown)
	}
	for id, n := range shown {
		var again struct{ Node shownNode }
		b.data(`query ($id: ID!) { node(id: $id) { id ... on Statement { certainty assertedBy } } }`, fmt.Sprintf(`{"id": %q}`, id), &again)
		if diff := cmp.Diff(n, again.Node); diff != "" {
			t.Errorf("%s as a node (-shown +node):\n%s", id, diff)
		}
	}
}

// A statement that differs at the earlier revision has another id there.
func TestIDsInDifferences(t *testing.T) {
	b := dated(t)
	b.update(kg.Patch{Op: kg.Remove, Quad: kg.Quad{Subject: iri("s"), Predicate: iri("p"), Object: kg.Integer(1), Graph: iri("g")}})
	for _, query := range []string{`{ diff(from: 1, to: 4) { nodes { op statement { id certainty } previous { id certainty } } } }`, `{ diff(from: 4) { nodes { op statement { id certainty } previous { id certainty } } } }`,
		`query @budget(maxBytes: 100000) { diff(from: 4) { nodes { op statement { id certainty } previous { id certainty } } } }`} {
		var data struct {
			Diff struct {
				Nodes []struct {
					Op        string
					Statement shownNode
					Previous  *shownNode
				}
			}
		}
		b.data(query, "", &data)
		if len(data.Diff.Nodes) < 2 {
			t.Fatalf("%s: got %+v", query, data)
		}
		for _, d := range data.Diff.Nodes {
			nodes := []shownNode{d.Statement}
			if d.Previous != nil {
				nodes = append(nodes, *d.Previous)
			}
			for _, n := range nodes {
				var again struct{ Node shownNode }
				b.data(`query ($id: ID!) { node(id: $id) { id ... on Statement { certainty } } }`, fmt.Sprintf(`{"id": %q}`, n.ID), &again)
				if diff := cmp.Diff(n, again.Node); diff != "" {
					t.Errorf("%s: %s as a node (-shown +node):\n%s", query, d.Op, diff)
				}
			}
		}
	}
}

// Removed rows are shown as of the revision before, and have its ids.
func TestIDsOfRowsThatWent(t *testing.T) {
	b := newBench(t, graph.Options{})
	f := b.follow(t, `subscription { matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}) { ... on MatchChange { added { entity(var: "s") { id value(predicate: "ex:p") } } removed { entity(var: "s") { id value(predicate: "ex:p") } } } } }`, "", operation.Resume{})
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	f.event()
	p := add(iri("s"), iri("p"), kg.Integer(2))
	p.Op = kg.Replace
	b.update(p)
	_, got := f.event()
	var data struct {
		MatchChanged struct {
			Added, Removed []struct{ Entity shownNode }
		}
	}
	if err := json.Unmarshal([]byte(got), &data); err != nil {
		t.Fatal(err)
	}
	added, removed := data.MatchChanged.Added[0].Entity, data.MatchChanged.Removed[0].Entity
	if added.ID != "urn:koine:entity:https://example.org/s" || removed.ID == added.ID || added.Value == removed.Value {
		t.Errorf("got %s", got)
	}
}

// namedOtherwise are the types whose `id` is not a GraphQL ID but a name in the form of
// patches, or of the caller.
var namedOtherwise = []string{"ObjectRecord", "Principal", "ResourceRecord"}

// Each type with an id is a Node, and each Node can be found.
func TestEveryTypeWithAnIDIsFound(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	s := loadSchema(t, c.engine.SDL())
	if n := s.Query.Fields.ForName("node"); len(n.Arguments) != 1 || n.Arguments[0].Type.String() != "ID!" {
		t.Errorf("node has the arguments %v", n.Arguments)
	}
	var nodes, others []string
	for name, def := range s.Types {
		f := def.Fields.ForName("id")
		if def.Kind != ast.Object || f == nil {
			continue
		}
		if slices.Contains(def.Interfaces, "Node") {
			nodes = append(nodes, name)
		} else {
			others = append(others, name)
			if f.Type.Name() == "ID" {
				t.Errorf("%s has an id and is no Node", name)
			}
		}
	}
	slices.Sort(others)
	if diff := cmp.Diff(namedOtherwise, others); diff != "" {
		t.Errorf("types with an id that are no Node (-want +got):\n%s", diff)
	}

	ids := map[string]string{}
	channel := c.lab("PUBLIC")
	ids["Channel"] = channel
	ids["Message"] = c.say("ann", channel, "hello", "")
	ids["Scope"] = c.id("ann", `mutation { createScope(input: {title: "t"}) { scope { id } } }`)
	ids["Task"], _ = c.asks("x", "")
	c.reports(ids["Task"], `, artifacts: [{id: "a/1", parts: [{text: "4"}]}]`)
	var task struct {
		Task struct{ Artifacts []struct{ ID string } }
	}
	c.decode(c.told("ann", `{ task(id: "%s") { artifacts { id } } }`, ids["Task"]), &task)
	ids["Artifact"] = task.Task.Artifacts[0].ID
	var held struct{ R struct{ ProposalID string } }
	c.decode(c.told("ann", `mutation { r: applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:pay"}, object: {value: 1}}}]}) { proposalId } }`), &held)
	ids["Proposal"] = held.R.ProposalID
	var made struct {
		K struct{ Key struct{ ID string } }
	}
	c.dataAs(root, `mutation { k: createApiKey(input: {agentId: "dora"}) { key { id } } }`, &made)
	ids["ApiKey"], ids["Agent"] = made.K.Key.ID, "agent://dora"
	c.update(add(iri("s"), iri("p"), iri("o")))
	var rest struct {
		Statements struct {
			Nodes []struct {
				ID      string
				Subject struct{ ID string }
			}
		}
		Changes struct {
			Nodes []struct{ Commit struct{ ID string } }
		}
	}
	c.decode(c.told("ann", `{ statements(first: 1) { nodes { id subject { id } } } changes(order: DESC, first: 1) { nodes { commit { id } } } }`), &rest)
	ids["Statement"], ids["Entity"], ids["Commit"] = rest.Statements.Nodes[0].ID, rest.Statements.Nodes[0].Subject.ID, rest.Changes.Nodes[0].Commit.ID

	// Entities that are named as the others are: they are found by ids of their own.
	var entities []string
	for _, id := range ids {
		if kg.IsAbsoluteIRI(id) {
			c.update(add(kg.IRI(id), iri("p"), iri("o")))
			entities = append(entities, "urn:koine:entity:"+id)
		}
	}
	direct := "chan:direct:" + strings.Repeat("0", 24)
	c.update(add(kg.IRI(direct), iri("p"), iri("o")))
	entities = append(entities, "urn:koine:entity:"+direct)
	if len(entities) < 6 {
		t.Errorf("only %v", entities)
	}

	find := func(who kg.Principal, id string) (n shownNode) {
		t.Helper()
		var data struct{ Node *shownNode }
		c.dataAs(who, `{ node(id: "`+id+`") { __typename id } }`, &data)
		if data.Node == nil {
			return n
		}
		return *data.Node
	}
	ann := kg.Principal{ID: "agent://ann", Method: "key"}
	for _, kind := range nodes {
		who := ann
		if kind == "ApiKey" {
			who = root
		}
		if n := find(who, ids[kind]); n.Typename != kind || n.ID != ids[kind] {
			t.Errorf("%s %q is %+v", kind, ids[kind], n)
		}
	}
	for _, id := range entities {
		if n := find(ann, id); n.Typename != "Entity" || n.ID != id {
			t.Errorf("the entity %q is %+v", id, n)
		}
	}
	// A caller without the right to see it finds nothing.
	eve := kg.Principal{ID: "agent://eve", Method: "key"}
	private := c.lab("PRIVATE")
	for kind, id := range map[string]string{"Channel": private, "Message": c.say("ann", private, "psst", ""), "Scope": ids["Scope"], "Task": ids["Task"], "Proposal": ids["Proposal"], "ApiKey": ids["ApiKey"]} {
		if n := find(eve, id); n.ID != "" {
			t.Errorf("%s is shown as %+v to who may not see it", kind, n)
		}
	}
	if n := find(eve, ids["Artifact"]); n.Typename == "Artifact" {
		t.Errorf("an artifact is shown as %+v to who may not see it", n)
	}
}

func (c *conversing) decode(text string, into any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		c.t.Fatal(err)
	}
}

// specified are the directives of GraphQL itself, which a schema does not define.
var specified = []string{"deprecated", "include", "oneOf", "skip", "specifiedBy"}

// Introspection offers only what is in the file, or in the specification.
func TestIntrospectedDirectives(t *testing.T) {
	b := newBench(t, graph.Options{})
	file, err := os.ReadFile("../schema.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Schema struct{ Directives []struct{ Name string } } `json:"__schema"`
	}
	b.data(`{ __schema { directives { name } } }`, "", &data)
	want := slices.Clone(specified)
	for line := range strings.Lines(string(file)) {
		if rest, ok := strings.CutPrefix(line, "directive @"); ok {
			want = append(want, strings.TrimRight(strings.FieldsFunc(rest, func(r rune) bool { return r == '(' || r == ' ' || r == '\n' })[0], " "))
		}
	}
	var got []string
	for _, d := range data.Schema.Directives {
		got = append(got, d.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directives (-file +introspection):\n%s", diff)
	}
	r := b.execute(`{ stats { ... @defer { statements } } }`, "")
	if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "GRAPHQL_VALIDATION_FAILED" {
		t.Errorf("a directive that is not offered: %s, %v", r.Data, r.Errors)
	}
}

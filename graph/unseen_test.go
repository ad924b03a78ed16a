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

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// secrecy hides one graph from all principals but its writer.
type secrecy struct{ graph kg.Term }

func (s secrecy) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != s.graph || p.ID == "agent://writer" || p.ID == kg.System
}

// twins are two stores: whole has all writes, and hides some graphs; seen has only the
// visible part.
type twins struct {
	whole, seen *bench
	now         time.Time
	hides       func(graph kg.Term) bool
	meeting     kg.Term // the graph in which both learn terms
}

// newTwins are twins one of which hides the graph g2.
func newTwins(t testing.TB) *twins {
	w := &twins{
		now:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		hides: func(graph kg.Term) bool { return graph == iri("g2") }, meeting: kg.DefaultGraph,
	}
	configure := func(o *kg.Options) {
		o.Clock = func() time.Time { return w.now }
		o.Access = secrecy{iri("g2")}
	}
	w.whole, w.seen = newBench(t, graph.Options{}, configure), newBench(t, graph.Options{}, configure)
	w.meet()
	return w
}

// meet lets both stores learn the public terms, in the same order: then their ids compare
// alike, and so do plans, which sample the first rows.
func (w *twins) meet() {
	var come, gone []kg.Patch
	r := &random{Rand: rand.New(rand.NewPCG(1, 1))}
	for range 300 {
		for _, t := range []kg.Term{r.literal(), iri("leaf"), iri("bud"), r.resource(), iri("g1"), kg.IRI(kg.OwnGraphPrefix + "x"), iri("g2")} {
			p := in(w.meeting, add(r.resource(), r.predicate(), t))
			q := p
			q.Op = kg.Remove
			come, gone = append(come, p), append(gone, q)
		}
	}
	w.update(come...)
	w.update(gone...)
}

func (w *twins) update(patches ...kg.Patch) {
	w.now = w.now.Add(time.Second)
	patches = append(patches, in(w.meeting, add(iri("round"), iri("at"), kg.String(w.now.String())))) // a commit in both
	w.whole.update(patches...)
	hidden := func(graph kg.Term) bool { return w.hides(graph) && graph != w.meeting }
	seen := slices.DeleteFunc(slices.Clone(patches), func(p kg.Patch) bool { return hidden(p.Quad.Graph) })
	why := "test"
	if c, err := w.whole.store.Commit(context.Background(), kg.SystemPrincipal(), w.whole.store.Head().Revision); err != nil {
		w.whole.t.Fatal(err)
	} else if slices.ContainsFunc(c.Changes, func(ch kg.Change) bool { return hidden(ch.Quad.Graph) }) {
		why = "" // it may contain hidden terms
	}
	w.seen.updateFor(why, seen...)
}

// whispered is a text that is nowhere but in the hidden graph.
const whispered = "a text that only ghosts know"

// hiding makes patches, a third of them in the hidden graph, some of which have terms that
// occur nowhere else.
func (r *random) hiding() kg.Patch {
	p := r.patch()
	p.Op = pick(r, kg.Add, kg.Add, kg.Add, kg.Add, kg.Replace, kg.Remove)
	if p.Op == kg.Remove && r.IntN(2) == 0 {
		p.Source, p.Certainty, p.HasCertainty = "", 0, false
	}
	if p.Quad.Graph != iri("g2") && r.IntN(5) > 0 {
		return p
	}
	p.Quad.Graph = iri("g2")
	switch r.IntN(6) {
	case 4:
		p.Quad.Object = kg.String(whispered)
	case 0:
		p.Quad.Subject = iri("ghost")
	case 1:
		p.Quad.Predicate = iri("haunts")
	case 2:
		p.Quad.Object = iri("ghost")
	case 3:
		p.Quad.Predicate, p.Quad.Object = kg.IRI(kg.RDFType), iri("Spectre")
	}
	return p
}

// unseenQueries cover everything that reads. Results with an order are compared with it,
// the others are sorted.
var unseenQueries = []string{
	`{ s: statements(first: 1000, where: $where, view: $view) { totalCount nodes { subject { iri label } predicate object { ... on Entity { iri degree } ... on Literal { lexical datatype language } } graph certainty assertedBy assertions { source: sourceId certainty recordedAt } recordedAt }
		groups(first: 1000, by: [{as: "p", by: PREDICATE}, {as: "g", by: GRAPH}], compute: [{as: "n", fn: COUNT_DISTINCT, of: OBJECT}, {as: "max", fn: MAX, of: RECORDED_AT}]) { keys values count }
		sources: groups(first: 1000, by: [{as: "s", by: SOURCE}, {as: "d", by: DAY}]) { keys count } } }`,
	`{ s: statements(first: 1000, where: $where, view: $view, orderBy: [{by: OBJECT}, {by: CERTAINTY}, {by: RECORDED_AT}]) { nodes { object { ... on Entity { iri } ... on Literal { lexical } } } } }`,
	`{ e: entities(first: 1000, where: $filter, view: $view, orderBy: [{by: DEGREE, direction: DESC}, {path: $path}, {by: IRI}]) { totalCount nodes { iri types label degree in: degree(direction: IN) predicates { iri count } values(predicate: "ex:p") ends: values(path: $path) }
		groups(first: 1000, by: [{as: "q", property: "ex:q"}, {as: "path", path: $path}], compute: [{as: "n", fn: SUM, property: "ex:p"}, {as: "m", fn: COUNT_DISTINCT, path: $path}]) { keys values count } } }`,
	`{ e: entities(first: 1000, where: $filter, view: $view) { nodes { iri follow(path: $path, first: 1000, where: $filter) { totalCount nodes { iri } } out(first: 1000, where: $where) { totalCount nodes { object { __typename ... on Entity { iri } } graph } } in(first: 1000) { totalCount } } } }`,
	`{ one: entity(iri: $from, view: $view) { iri types label degree predicates { iri count } ends: values(path: $path) follow(path: $path) { nodes { iri } } in { totalCount } } node(id: $id) { id } }`,
	`{ one: entity(iri: $from, view: $view) { neighborhood(depth: 2, direction: BOTH) { entities { iri } statements { subject { iri } predicate graph } depth truncated } near: neighborhood(predicates: ["ex:haunts", "ex:p"], direction: OUT) { entities { iri } truncated } } }`,
	`{ ways: shortestPaths(from: $from, to: $to, k: 100, maxDepth: 2, view: $view) { length entities { iri } statements { graph predicate } } one: shortestPaths(from: $from, to: $to, view: $view) { length } self: shortestPaths(from: $from, to: $from, view: $view) { length } }`,
	`{ one: entity(iri: $from, view: $view) { history(first: 1000, direction: BOTH, where: $where) { nodes { op statement { predicate graph } previous { object { __typename } } statementRemains commit { time actor: actorId } } } } }`,
	`{ m: match(first: 1000, pattern: $pattern, view: $view, explain: true) { columns totalCount nodes { values } groups(first: 1000, compute: [{as: "n", fn: COUNT}]) { keys values count } explanation { steps { depth operation pattern index estimate rows } } } }`,
	`{ c: changes(first: 1000, where: $where, order: $order) { nodes { op statement { subject { iri } predicate object { ... on Entity { iri } ... on Literal { lexical } } graph certainty } previous { object { ... on Entity { iri } ... on Literal { lexical } } } statementRemains commit { time actor: actorId justification } } pageInfo { hasNextPage hasPreviousPage truncated } } }`,
	`{ d: diff(first: 1000, from: $then, where: $where) { nodes { op statement { subject { iri } predicate object { ... on Entity { iri } ... on Literal { lexical } } graph certainty } previous { certainty } } } }`,
	`{ v: vocabulary(view: $view) { classes { nodes { iri count } } predicates { nodes { iri count } } graphs { nodes { graph count } } } s: stats(view: $view) { statements graphs predicates classes } }`,
	`{ h: entities(where: {or: [{type: {eq: $class}}, {property: {predicate: $word, exists: true}}]}, view: $view) { totalCount nodes { iri } } s: statements(where: {graph: {eq: $graph}}, view: $view) { totalCount } }`,
	`@budget(maxStatements: 100000, maxTokens: 100000) { e: entities(first: 1000, where: $filter, view: $view, orderBy: [{by: IRI}]) { nodes { iri out(first: 1000) { nodes { predicate } pageInfo { truncated hasNextPage } } } pageInfo { truncated hasNextPage } } }`,
}

// Hidden content does not exist: every query to a store that hides a graph is answered as
// by one that never had it.
func TestUnseenDoesNotExist(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 3))}
	w := newTwins(t)
	r.moment = w.now
	for range 8 {
		var patches []kg.Patch
		for range 1 + r.IntN(25) {
			patches = append(patches, r.hiding())
		}
		w.update(patches...)
	}
	rounds := max(2, *rounds/20)
	for range rounds {
		variables := r.unseenVariables()
		for _, query := range unseenQueries {
			w.compare(t, query, variables)
		}
	}
}

// unseenVariables are those of all queries.
func (r *random) unseenVariables() map[string]any {
	name := func() string { return pick(r, r.resource(), r.resource(), iri("ghost"), iri("nobody")).Name() }
	then := r.moment.Add(time.Duration(r.IntN(10)) * time.Second).Format(time.RFC3339)
	v := map[string]any{
		"where": r.statementFilter(2), "filter": r.entityFilter(2), "from": name(), "to": name(), "id": name(), "then": then,
		"path": pick[any](r, r.path(2), r.path(2), "ex:haunts", "^ex:haunts", "(ex:p|ex:haunts)*", "!(ex:p)", "(ex:q|^ex:q){0,2}"), "pattern": r.unseenPattern(), "order": pick(r, "ASC", "DESC"),
		"class": pick(r, iri("Spectre"), iri("leaf")).Name(), "word": pick(r, iri("haunts"), iri("p")).Name(), "graph": pick(r, iri("g2"), iri("g1"), iri("g3")).Name(),
	}
	switch r.IntN(5) {
	case 0:
		v["view"] = map[string]any{"at": then}
	case 1:
		v["view"] = map[string]any{"graphs": []any{nil, ex + "g2"}}
	case 2:
		v["view"] = map[string]any{"allGraphs": true, "minCertainty": pick(r, 0, 0.5)}
	case 3:
		v["view"] = map[string]any{"believedBy": []any{"a1", "a2"}, "recordedAt": map[string]any{"until": then}}
	}
	withoutRevisions(v)
	return v
}

// withoutRevisions takes conditions on revisions away: the stores count
// differently.
func withoutRevisions(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "revision")
		for _, e := range v {
			withoutRevisions(e)
		}
	case []any:
		for _, e := range v {
			withoutRevisions(e)
		}
	}
}

func (r *random) unseenPattern() map[string]any {
	triple := func() any {
		t := map[string]any{"s": "?a", "p": pick[any](r, r.predicate().Name(), "ex:haunts", r.path(1), "?p", "(ex:p|ex:q)*"), "o": pick(r, "?b", "?a", "?c", ex+"ghost", ex+"b")}
		if r.IntN(3) == 0 {
			t["s"] = pick(r, "?b", ex+"ghost", ex+"a")
		}
		if r.IntN(4) == 0 {
			delete(t, "o")
			t["value"] = pick[any](r, whispered, 1, "a")
		}
		if r.IntN(4) == 0 {
			if p, ok := t["p"].(string); ok && !strings.ContainsAny(p, "*|") {
				t["g"] = pick(r, "?g", ex+"g2", ex+"g1")
			}
		}
		return t
	}
	p := map[string]any{"triples": []any{triple(), map[string]any{"s": "?a", "p": "ex:p", "o": "?b"}}}
	if r.IntN(3) == 0 { // so that a path of length zero finds all that it can
		p["triples"] = []any{map[string]any{"s": pick(r, "?a", ex+"ghost", ex+"b"), "p": "(ex:p|ex:haunts)*", "o": pick(r, "?a", "?b", ex+"ghost")}, map[string]any{"s": "?c", "p": "ex:p", "o": "?a"}}[:1+r.IntN(2)]
	}
	for _, part := range []string{"optional", "union", "notExists"} {
		if r.IntN(3) == 0 {
			p[part] = []any{map[string]any{"triples": []any{triple()}}}
		}
	}
	return p
}

func (w *twins) compare(t *testing.T, query string, variables map[string]any) {
	t.Helper()
	types := map[string]string{
		"where": "StatementFilter", "filter": "EntityFilter", "from": "IRI!", "to": "IRI!", "id": "ID!", "then": "Moment!", "path": "Path!",
		"pattern": "PatternInput!", "order": "SortDirection!", "class": "IRI!", "word": "IRI!", "graph": "IRI!", "view": "ViewInput",
	}
	used, declared := map[string]any{}, []string{}
	for name, typ := range types {
		if strings.Contains(query, "$"+name) {
			declared = append(declared, "$"+name+": "+typ)
			if v, ok := variables[name]; ok {
				used[name] = v
			}
		}
	}
	text, err := json.Marshal(used)
	if err != nil {
		t.Fatal(err)
	}
	query = "query (" + strings.Join(declared, ", ") + ") " + query
	if len(declared) == 0 {
		query = "query " + query
	}
	got, want := w.whole.told(query, string(text)), w.seen.told(query, string(text))
	if got != want {
		t.Errorf("%s\n%s\ngot  %s\nwant %s", query, text, got, want)
	}
}

// told is the whole answer except for the order of unordered results.
func (b *bench) told(query, variables string) string {
	result := b.execute(query, variables)
	var data any
	if len(result.Data) > 0 {
		if err := json.Unmarshal(result.Data, &data); err != nil {
			b.t.Fatal(err)
		}
	}
	slices.SortFunc(result.Errors, func(a, b *gqlerror.Error) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	errs, _ := json.Marshal(result.Errors)
	hints, _ := json.Marshal(result.Hints)
	return fmt.Sprintf("%s errors %s hints %s read %d", canonical(data, strings.Contains(query, "orderBy")), errs, hints, readFor(query, result))
}

// canonical is JSON with the members of lists sorted.
func canonical(v any, ordered bool) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for k, e := range v {
			parts = append(parts, fmt.Sprintf("%q:%s", k, canonical(e, ordered && (k == "e" || k == "s" || k == "nodes"))))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, canonical(e, false))
		}
		if !ordered {
			slices.Sort(parts)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// Nor is anything delivered about it while it changes.
func TestUnseenIsNotFollowed(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 4))}
	const statement = `{ subject { iri } predicate object { ... on Entity { iri } ... on Literal { lexical } } graph certainty assertedBy }`
	const changed = `op statement ` + statement + ` previous ` + statement + ` statementRemains commit { time actor: actorId }`
	for _, query := range []string{
		`subscription ($where: StatementFilter, $from: IRI!, $pattern: PatternInput!, $resume: Position) { e: statementChanged(where: $where, resume: $resume) { ... on StatementChange { ` + changed + ` } } }`,
		`subscription ($where: StatementFilter, $from: IRI!, $pattern: PatternInput!, $resume: Position) { e: entityChanged(iri: $from, depth: 0, resume: $resume) { ... on EntityChange { entity { iri degree label } changes { ` + changed + ` } } } }`,
		`subscription ($where: StatementFilter, $from: IRI!, $pattern: PatternInput!, $resume: Position) { e: entityChanged(iri: $from, depth: 2, resume: $resume) { ... on EntityChange { entity { iri degree label } changes { ` + changed + ` } } } }`,
		`subscription ($where: StatementFilter, $from: IRI!, $pattern: PatternInput!, $resume: Position) { e: matchChanged(pattern: $pattern, resume: $resume) { ... on MatchChange { added { values } removed { values } changes { ` + changed + ` } commit { time } } } }`,
	} {
		for _, v := range []string{"$where: StatementFilter, ", "$from: IRI!, ", "$pattern: PatternInput!, "} {
			if name, _, _ := strings.Cut(v, ":"); strings.Count(query, name) == 1 {
				query = strings.Replace(query, v, "", 1)
			}
		}
		for i := range 2 * max(1, *rounds/100) {
			w := newTwins(t)
			var settle func()
			if i%2 == 1 { // a reader that is to see the end must read the default graph
				for settle == nil || w.hides(kg.DefaultGraph) {
					w, settle = newPolicedTwins(t, r)
				}
			}
			r.moment = w.now
			v := r.unseenVariables()
			withoutAges(v["where"])
			v["resume"] = "earliest"
			for range 6 {
				var patches []kg.Patch
				for range 1 + r.IntN(6) {
					patches = append(patches, r.hiding())
				}
				w.update(patches...)
			}
			end := []kg.Patch{add(iri("end"), iri("ends"), kg.String("the end"))}
			if name, ok := v["from"].(string); ok {
				end[0].Quad.Subject = kg.IRI(name)
				if strings.HasPrefix(name, "_:") {
					end[0].Quad.Subject = kg.Blank(name[2:])
				}
			}
			w.update(end...)
			if settle != nil {
				settle()
			}
			if _, ok := v["where"]; ok {
				v["where"] = map[string]any{"or": []any{v["where"], map[string]any{"object": map[string]any{"eq": "the end"}}}}
			}
			v["pattern"] = map[string]any{"union": []any{v["pattern"], map[string]any{"triples": []any{map[string]any{"s": "?end", "p": "ex:ends", "o": "?z"}}}}}
			for name := range v {
				if !strings.Contains(query, "$"+name) {
					delete(v, name)
				}
			}
			text, _ := json.Marshal(v)
			got, want := w.whole.followed(t, query, string(text)), w.seen.followed(t, query, string(text))
			if got != want {
				t.Errorf("%s\n%s\ngot  %s\nwant %s", query, text, got, want)
			}
		}
	}
}

func withoutAges(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "ageSeconds")
		for _, e := range v {
			withoutAges(e)
		}
	case []any:
		for _, e := range v {
			withoutAges(e)
		}
	}
}

// followed is the output of a subscription for the present log.
func (b *bench) followed(t *testing.T, query, variables string) string {
	f := b.follow(t, query, variables, operation.Resume{})
	defer f.stop()
	var out []string
	for {
		_, data := f.event()
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, canonical(v, false))
		if strings.Contains(data, "the end") {
			return strings.Join(out, "\n")
		}
	}
}

// readFor is the number of statements read for an answer. That of a diff is left out: its
// direction of reading depends on the number of revisions, which is public.
func readFor(query string, result operation.Result) int64 {
	if strings.Contains(query, ": diff(") {
		return 0
	}
	return result.StatementsRead
}

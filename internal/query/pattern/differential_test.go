package pattern_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/query/path"
	"koine/internal/query/pattern"
	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

var (
	seedFlag   = flag.Uint64("pattern.seed", 0, "seed of the differential test; 0 takes a new one")
	roundsFlag = flag.Int("pattern.rounds", 800, "patterns of the differential test")
)

func spotOf(n pattern.Node) spot {
	name, terms := n.Parts()
	return spot{name, terms}
}

var (
	predicates = []kg.Term{kg.IRI("urn:p0"), kg.IRI("urn:p1"), kg.IRI("urn:p2"), kg.IRI(kg.RDFType)}
	graphs     = []kg.Term{kg.DefaultGraph, kg.IRI("urn:g1"), kg.IRI("urn:g2")}
	names      = []string{"a", "b", "c", "d", "e"}

	pathRelations = map[string]way{}
	paths         []*path.Path
)

func init() {
	for text, r := range map[string]way{
		"<urn:p0>/<urn:p1>":             sequence(step(0, false), step(1, false)),
		"<urn:p0>/^<urn:p0>":            sequence(step(0, false), step(0, true)),
		"^(<urn:p0>/<urn:p1>)":          sequence(step(1, true), step(0, true)),
		"<urn:p0>+":                     repeated(step(0, false), 1, -1),
		"<urn:p0>*":                     repeated(step(0, false), 0, -1),
		"^<urn:p1>?":                    repeated(step(1, true), 0, 1),
		"^<urn:p1>":                     step(1, true),
		"<urn:p0>|^<urn:p2>":            either(step(0, false), step(2, true)),
		"<urn:p0>|<urn:p0>":             either(step(0, false), step(0, false)),
		"(<urn:p1>|<urn:p2>)+":          repeated(either(step(1, false), step(2, false)), 1, -1),
		"(<urn:p1>|<urn:p2>)/<urn:p0>":  sequence(either(step(1, false), step(2, false)), step(0, false)),
		"<urn:p1>/<urn:p2>*":            sequence(step(1, false), repeated(step(2, false), 0, -1)),
		"<urn:p0>{2}":                   sequence(step(0, false), step(0, false)),
		"<urn:p0>{1,2}":                 repeated(step(0, false), 1, 2),
		"<urn:p0>{2,}":                  repeated(step(0, false), 2, -1),
		"!<urn:p0>":                     except(0),
		"(<urn:p0>/<urn:p1>|<urn:p2>)+": repeated(either(sequence(step(0, false), step(1, false)), step(2, false)), 1, -1),
	} {
		p, err := path.Parse(text, nil)
		if err != nil {
			panic(err)
		}
		pathRelations[p.String()] = r
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b *path.Path) int { return strings.Compare(a.String(), b.String()) })
}

// generator generates random graphs and patterns.
type generator struct {
	*rand.Rand
	text     strings.Builder // description of the generated data, printed on failure
	shown    []kg.Quad       // quads in view
	merges   int             // merge steps that had rows
	ranges   int             // range steps that had rows
	prefixes int             // prefix steps that had rows
	texts    int             // text steps that had rows, and tests
}

// countRows counts the steps of a kind that had rows.
func countRows(steps []pattern.Step, kind string) (n int) {
	for _, s := range steps {
		if s.Kind == kind && s.Rows > 0 {
			n++
		}
		for _, g := range s.Groups {
			n += countRows(g, kind)
		}
	}
	return n
}

func (r *generator) resource() kg.Term {
	if r.IntN(12) == 0 { // a name that is also used in another role
		return [...]kg.Term{predicates[0], graphs[1]}[r.IntN(2)]
	}
	return kg.IRI(fmt.Sprintf("urn:n%d", r.IntN(6)))
}

func (r *generator) object() kg.Term {
	switch r.IntN(5) {
	case 0:
		return kg.Integer(int64(r.IntN(3)))
	case 1:
		return kg.String(longText + fmt.Sprint(r.IntN(2)))
	}
	return r.resource()
}

func (r *generator) quads() (quads []kg.Quad) {
	for range 30 + r.IntN(30) {
		quads = append(quads, kg.Quad{Subject: r.resource(), Predicate: predicates[r.IntN(4)], Object: r.object(), Graph: graphs[r.IntN(3)]})
	}
	slices.SortFunc(quads, func(a, b kg.Quad) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return slices.Compact(quads)
}

func (r *generator) variable() pattern.Node { return pattern.Var(names[r.IntN(len(names))]) }

func (r *generator) triple() (t pattern.Triple) {
	t.Subject, t.Object = r.variable(), r.variable()
	if r.IntN(10) == 0 {
		t.Subject = pattern.Term(r.resource())
	}
	switch r.IntN(8) {
	case 0:
		t.Object = pattern.Term(r.object())
	case 2:
		t.Object = pattern.OneOf(r.object(), r.object(), kg.String("unknown to the store"))
	}
	switch r.IntN(16) {
	case 0:
		t.Predicate = r.variable()
	case 1, 3, 4:
		if r.IntN(8) == 0 { // a term that no graph has
			t.Subject = pattern.Term(kg.IRI("urn:unknown"))
		}
		t.Path = paths[r.IntN(len(paths))]
	case 2:
		t.Predicate = pattern.Term(kg.IRI("urn:unknown"))
	default:
		t.Predicate = pattern.Term(predicates[r.IntN(4)])
	}
	switch r.IntN(8) {
	case 0:
		t.Graph = pattern.Term(graphs[r.IntN(3)])
	case 1:
		if t.Path == nil {
			t.Graph = r.variable()
		}
	}
	return t
}

// ray returns one of several triples around one variable, which can be merged.
func (r *generator) ray(center pattern.Node) (t pattern.Triple) {
	q := r.shown[r.IntN(len(r.shown))]
	t = pattern.Triple{Subject: center, Predicate: pattern.Term(q.Predicate), Object: pattern.Term(q.Object)}
	switch r.IntN(3) {
	case 0:
		t.Object = r.variable()
	case 1:
		t.Subject, t.Object = pattern.Term(q.Subject), center
	}
	if r.IntN(6) == 0 {
		t.Graph = pattern.Term(graphs[r.IntN(3)])
	}
	return t
}

// longText begins the long texts of random graphs.
const longText = "a text that is longer than an id, "

// conditions are the filters of random patterns.
var conditions = []struct {
	name  string
	holds func([]kg.Term) bool
	// objects are the literals of the first variable for which the condition holds.
	objects *kg.Objects
}{
	{"bound", func(t []kg.Term) bool { return !t[0].IsZero() }, nil},
	{"not bound", func(t []kg.Term) bool { return t[0].IsZero() }, nil},
	{"in order", func(t []kg.Term) bool { return !t[0].IsZero() && !t[1].IsZero() && t[0].Compare(t[1]) <= 0 }, nil},
	{"different", func(t []kg.Term) bool { return t[0] != t[1] }, nil},
	{"resource", func(t []kg.Term) bool { return t[0].IsResource() }, nil},
	{"from one", func(t []kg.Term) bool { return t[0] == kg.Integer(1) || t[0] == kg.Integer(2) }, &kg.Objects{Ranges: []kg.IDRange{kg.IntegerIDs(1, 1<<40)}}},
	{"zero or a long text", func(t []kg.Term) bool { return t[0] == kg.Integer(0) || t[0].Datatype() == kg.XSDString }, &kg.Objects{Ranges: []kg.IDRange{kg.NumberedLiteralIDs(), kg.IntegerIDs(-1, 0), kg.TextPrefixIDs("")}}},
	{"two and different", func(t []kg.Term) bool { return t[0] == kg.Integer(2) && t[0] != t[1] }, &kg.Objects{Ranges: []kg.IDRange{kg.IntegerIDs(2, 2)}}},
	{"the long text 1", func(t []kg.Term) bool { return strings.HasPrefix(t[0].Value(), longText+"1") }, &kg.Objects{Ranges: []kg.IDRange{kg.NumberedLiteralIDs()}, Prefix: &kg.TermPrefix{Of: kg.OfTexts, Text: longText + "1"}}},
}

func (r *generator) group(depth, most int) (g pattern.Group) {
	r.text.WriteString("{ ")
	center, star := r.variable(), r.IntN(3) == 0
	for range 1 + r.IntN(most) - r.IntN(2)*r.IntN(2) {
		t := r.triple()
		if star {
			t = r.ray(center)
		}
		r.text.WriteString(t.String() + " . ")
		g.Triples = append(g.Triples, t)
	}
	if r.IntN(5) == 0 {
		text := pattern.Text{Var: names[r.IntN(len(names))], Source: r.found()}
		if r.IntN(3) == 0 {
			text.Score = names[r.IntN(len(names))]
			if text.Score == text.Var {
				text.Score = "score"
			}
		}
		fmt.Fprintf(&r.text, "%s score ?%s . ", text.String(), text.Score)
		g.Texts = append(g.Texts, text)
	}
	if depth > 0 {
		if r.IntN(4) == 0 {
			var union []pattern.Group
			for i := range 1 + r.IntN(2) {
				if i > 0 {
					r.text.WriteString("UNION ")
				}
				union = append(union, r.group(depth-1, 2))
			}
			g.Unions = append(g.Unions, union)
		}
		for range r.IntN(5) / 2 * r.IntN(2) {
			r.text.WriteString("OPTIONAL ")
			g.Optional = append(g.Optional, r.group(depth-1, 2))
		}
		if r.IntN(5) == 0 {
			r.text.WriteString("NOT EXISTS ")
			g.NotExists = append(g.NotExists, r.group(depth-1, 2))
		}
	}
	if r.IntN(3) == 0 {
		c := conditions[r.IntN(len(conditions))]
		vars := []string{names[r.IntN(5)], names[r.IntN(5)]}
		if c.objects != nil && len(g.Triples) > 0 {
			if name, _ := g.Triples[0].Object.Parts(); name != "" {
				vars[0] = name
			}
		}
		fmt.Fprintf(&r.text, "FILTER %s %v ", c.name, vars)
		g.Filters = append(g.Filters, pattern.Filter{Vars: vars, Holds: c.holds, Objects: c.objects})
	}
	r.text.WriteString("} ")
	return g
}

// TestAgainstNaive proves that a pattern has the solutions of the algebra, with their
// multiplicities, for any join order, index and kind of join, with bound variables, in views
// of some graphs and of the past; and that an evaluation resumed from any cursor returns the
// remaining rows.
func TestAgainstNaive(t *testing.T) {
	slowtest.WithoutRace(t)
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	rounds := *roundsFlag
	if *seedFlag == 0 {
		rounds = slowtest.Size(rounds, rounds/4)
	}
	t.Logf("replay with -pattern.seed=%d -pattern.rounds=%d", seed, rounds)
	r := &generator{Rand: rand.New(rand.NewPCG(seed, 3))}
	var compared, rows, paged int
	for done := 0; done < rounds; {
		w := newWorld(t, r)
		for range 50 {
			n, p := w.compare(t)
			if n >= 0 {
				compared, rows, paged = compared+1, rows+n, paged+p
			}
			done++
		}
		w.snapshot.Close()
	}
	t.Logf("%d patterns compared, with %d solutions, %d merge joins, %d ranges, %d prefixes and %d texts, gone on from %d places", compared, rows, r.merges, r.ranges, r.prefixes, r.texts, paged)
	if r.merges < rounds/200 || r.ranges < rounds/500 || r.prefixes < rounds/500 || r.texts < rounds/20 || compared < rounds/2 || rows < compared || paged < compared/2 {
		t.Error("too little was compared")
	}
}

// world is a store and the content of a view of it.
type world struct {
	*generator
	snapshot *kg.Snapshot
	anyOrder bool // use random join orders instead of the planner's
}

func newWorld(t *testing.T, r *generator) *world {
	t.Helper()
	s := kgtest.Disk(t, kg.Options{})
	r.shown = r.quads()
	w := &world{generator: r}
	put := func(quads []kg.Quad, op kg.Op) {
		_, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			for _, q := range quads {
				if err := tx.Apply(kg.Patch{Op: op, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(w.shown, kg.Add)
	var view kg.View
	switch r.IntN(4) {
	case 0: // a view of the past
		view.At = s.Head().Revision
		put(w.shown[:len(w.shown)/2], kg.Remove)
		put(r.quads(), kg.Add)
	case 1:
		view.Graphs = graphs[:2]
		w.shown = slices.DeleteFunc(w.shown, func(q kg.Quad) bool { return q.Graph == graphs[2] })
	}
	if r.IntN(2) == 0 {
		s.Reopen()
	}
	var err error
	if w.snapshot, err = s.View(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.snapshot.Close) // must run before the store's cleanup, which waits for it
	return w
}

// compare evaluates one random pattern both ways. It returns the number of its solutions, -1 if
// there were too many, and the number of cursors resumed from.
func (w *world) compare(t *testing.T) (rows, paged int) {
	t.Helper()
	w.text.Reset()
	g := w.group(2, 3)
	p, err := pattern.Compile(g, pattern.Limits{Texts: 64})
	if err != nil {
		t.Fatalf("%s: %v", &w.text, err)
	}
	w.anyOrder = w.IntN(2) == 0
	var q pattern.Query
	initial := solution{}
	binds := w.IntN(4) == 0
	for _, name := range p.Names() {
		if binds && w.IntN(4) == 0 {
			term := w.object()
			if id, ok, _ := w.snapshot.ID(term); ok {
				if q.Bound == nil {
					q.Bound = map[string]kg.ID{}
				}
				q.Bound[name], initial[name] = id, term
			}
		}
	}
	want, ok := naively(w.shown, g, initial)
	if !ok {
		return -1, 0
	}
	all, places, e := w.evaluate(t, p, q)
	w.merges += countRows(e.Explain(), "merge")
	w.ranges += countRows(e.Explain(), "range")
	w.prefixes += countRows(e.Explain(), "prefix")
	w.texts += min(countRows(e.Explain(), "text"), 1) + min(countRows(e.Explain(), "text test"), 1)
	got := slices.Clone(all)
	slices.Sort(got)
	if texts := written(p, want); !slices.Equal(got, texts) {
		t.Fatalf("%s\nwith %v, at revision %d\n%s\ngot  %d %v\nwant %d %v", &w.text, initial, w.snapshot.Revision(), explained(e.Explain(), "  "), len(got), got, len(texts), texts)
	}
	return len(want), w.page(t, p, q, all, places)
}

// page resumes from cursors, for plain rows and for ordered or distinct ones.
func (w *world) page(t *testing.T, p *pattern.Pattern, q pattern.Query, all []string, places [][]byte) (n int) {
	t.Helper()
	n = w.goOn(t, p, q, all, places)
	if len(p.Names()) == 0 || w.IntN(3) > 0 {
		return n
	}
	q.Distinct = w.IntN(2) == 0
	if !q.Distinct || w.IntN(2) == 0 {
		q.Order = []pattern.Order{{Var: p.Names()[w.IntN(len(p.Names()))], Compare: kg.Term.Compare}}
	}
	some, places, _ := w.evaluate(t, p, q)
	want := slices.Clone(all)
	slices.Sort(want)
	if q.Distinct {
		want = slices.Compact(want)
	}
	got := slices.Clone(some)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%s\ndistinct %t, order %v: got %v, want %v", &w.text, q.Distinct, q.Order, got, want)
	}
	return n + w.goOn(t, p, q, some, places)
}

func (w *world) goOn(t *testing.T, p *pattern.Pattern, q pattern.Query, all []string, places [][]byte) (n int) {
	t.Helper()
	for i := 0; i < len(places); i += 1 + len(places)/10 {
		n++
		q.After = places[i]
		rest, _, e := w.evaluate(t, p, q)
		if !slices.Equal(rest, all[i+1:]) {
			t.Fatalf("%s\nbehind row %d of %d, place %x\n%s\ngot  %v\nwant %v", &w.text, i, len(all), q.After, explained(e.Explain(), "  "), rest, all[i+1:])
		}
	}
	return n
}

func naively(quads []kg.Quad, g pattern.Group, initial solution) (all []solution, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != errTooMany {
				panic(r)
			}
			ok = false
		}
	}()
	return join([]solution{initial}, newNaive(quads).group(g)), true
}

func (w *world) evaluate(t *testing.T, p *pattern.Pattern, q pattern.Query) (rows []string, places [][]byte, e *pattern.Evaluation) {
	t.Helper()
	var err error
	if w.anyOrder && q.After == nil { // a cursor determines the order
		e, err = p.EvaluateIn(t.Context(), w.snapshot, q, w.Perm)
	} else {
		e, err = p.Evaluate(t.Context(), w.snapshot, q)
	}
	if err != nil {
		t.Fatalf("%s: %v", &w.text, err)
	}
	for row, err := range e.Rows() {
		if err != nil {
			t.Fatalf("%s: %v", &w.text, err)
		}
		s := solution{}
		for i, name := range p.Names() {
			if row[i] == (kg.ID{}) {
				continue
			}
			if s[name], err = w.snapshot.Term(row[i]); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, writeSolution(p, s))
		places = append(places, e.Cursor())
	}
	return rows, places, e
}

func writeSolution(p *pattern.Pattern, s solution) string {
	var b strings.Builder
	for _, name := range p.Names() {
		if t, ok := s[name]; ok {
			b.WriteString(name + "=" + t.String() + " ")
		}
	}
	return b.String()
}

func written(p *pattern.Pattern, list []solution) (out []string) {
	for _, s := range list {
		out = append(out, writeSolution(p, s))
	}
	slices.Sort(out)
	return out
}

func explained(steps []pattern.Step, indent string) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%s%s %s %s %v: estimate %.1f, runs %d, statements %d, rows %d\n", indent, s.Kind, s.Pattern, s.Index, s.Merged, s.Estimate, s.Runs, s.Statements, s.Rows)
		for _, g := range s.Groups {
			b.WriteString(indent + "  --\n" + explained(g, indent+"  "))
		}
	}
	return b.String()
}

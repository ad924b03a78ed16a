package kg

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/internal/slowtest"
)

// genModel is the expected answer of a store with replaced and deleted graphs: all
// statements with their assertions, as of each revision that changed any.
type genModel struct {
	revisions []Revision
	states    []map[Quad]string // source@revision, …
}

func (m *genModel) now() map[Quad]string {
	if len(m.states) == 0 {
		return nil
	}
	return m.states[len(m.states)-1]
}

func (m *genModel) at(r Revision) map[Quad]string {
	i, found := slices.BinarySearch(m.revisions, r)
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	return m.states[i]
}

func (m *genModel) add(r Revision, state map[Quad]string) {
	m.revisions, m.states = append(m.revisions, r), append(m.states, state)
}

// versions are those of all statements that fit, in lines.
func (m *genModel) versions(p Pattern) (out []string) {
	seen := map[Quad]bool{}
	for _, state := range m.states {
		for q := range state {
			if seen[q] || !p.Matches(q) {
				continue
			}
			seen[q] = true
			last, from := "", Revision(0)
			for i, s := range m.states {
				if s[q] == last {
					continue
				}
				if last != "" {
					out = append(out, fmt.Sprint(q.ClippedString(), last, from, m.revisions[i]))
				}
				last, from = s[q], m.revisions[i]
			}
			if last != "" {
				out = append(out, fmt.Sprint(q.ClippedString(), last, from, Revision(0)))
			}
		}
	}
	slices.Sort(out)
	return out
}

func backing(list []Assertion) (out string) {
	for _, a := range list {
		out += fmt.Sprint(a.Source, "@", a.Revision, " ")
	}
	return out
}

type genRun struct {
	t     *testing.T
	dice  *rand.Rand
	dir   string
	s     *Store
	model genModel
}

var genSources = []AgentID{"agent://ann", "agent://bob"}

func (r *genRun) quad(graph Term) Quad {
	object := String(fmt.Sprint("a text that is not inline ", r.dice.IntN(3)))
	if r.dice.IntN(2) == 0 {
		object = IRI(fmt.Sprint("urn:s:", r.dice.IntN(4)))
	}
	return Quad{Subject: IRI(fmt.Sprint("urn:s:", r.dice.IntN(4))), Predicate: IRI(fmt.Sprint("urn:p:", r.dice.IntN(3))), Object: object, Graph: graph}
}

func (r *genRun) graph() Term { return IRI(fmt.Sprint("urn:g:", r.dice.IntN(3))) }

func (r *genRun) meta() Meta {
	return Meta{Principal: SystemPrincipal(), Actor: genSources[r.dice.IntN(len(genSources))]}
}

func (r *genRun) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *genRun) update() {
	m, graph := r.meta(), r.graph()
	state := maps.Clone(r.model.now())
	if state == nil {
		state = map[Quad]string{}
	}
	type wish struct {
		q      Quad
		remove bool
	}
	var wishes []wish
	for range 1 + r.dice.IntN(4) {
		wishes = append(wishes, wish{r.quad(graph), r.dice.IntN(3) == 0})
	}
	receipt, err := r.s.Update(r.t.Context(), m, func(tx *Tx) error {
		for _, w := range wishes {
			op := Add
			if w.remove {
				op = Remove
			}
			if err := tx.Apply(Patch{Op: op, Quad: w.q}); err != nil {
				return err
			}
		}
		return nil
	})
	r.must(err)
	for _, w := range wishes {
		if w.remove {
			delete(state, w.q)
		} else {
			state[w.q] = asserted(state[w.q], m.Actor, receipt.Revision)
		}
	}
	if receipt.Committed {
		r.model.add(receipt.Revision, state)
	}
}

// asserted is the backing of a statement once a source has asserted it.
func asserted(was string, source AgentID, at Revision) string {
	for _, one := range genSources {
		if one == source && len(was) > 0 && containsSource(was, source) {
			return was
		}
	}
	return was + fmt.Sprint(source, "@", at, " ")
}

func containsSource(was string, source AgentID) bool {
	for i := range was {
		if len(was[i:]) > len(source) && was[i:i+len(source)] == string(source) && was[i+len(source)] == '@' {
			return true
		}
	}
	return false
}

// replace replaces a graph as a whole, of any size.
func (r *genRun) replace(fails bool) {
	m, graph := r.meta(), r.graph()
	wanted := map[Quad]bool{}
	var order []Quad
	for range r.dice.IntN(12) {
		q := r.quad(graph)
		wanted[q] = true
		order = append(order, q) // some come twice
	}
	next, stop := iter.Pull2(func(yield func(Quad, error) bool) {
		for _, q := range order {
			if !yield(q, nil) {
				return
			}
		}
		if fails {
			yield(Quad{}, errSource)
		}
	})
	defer stop()
	report, err := r.s.replaceWhole(r.t.Context(), m, graph, &replacement{}, next, ReplaceOptions{})
	if fails {
		if !errors.Is(err, errSource) {
			r.t.Fatalf("got %v", err)
		}
		return
	}
	r.must(err)
	state, added, removed := map[Quad]string{}, uint64(0), uint64(0)
	for q, backed := range r.model.now() {
		switch {
		case q.Graph != graph:
			state[q] = backed
		case !wanted[q]:
			removed++
		}
	}
	for q := range wanted {
		was := r.model.now()[q]
		if state[q] = asserted(was, m.Actor, report.Revision); state[q] != was {
			added++
		}
	}
	if report.Added != added || report.Removed != removed {
		r.t.Fatalf("it says %+v, want %d added and %d removed", report, added, removed)
	}
	if added+removed > 0 {
		r.model.add(report.Revision, state)
	}
}

// drop deletes a graph: its content is gone everywhere.
func (r *genRun) drop() {
	graph := r.graph()
	var o DropOptions
	if r.dice.IntN(2) == 0 {
		o = DropOptions{Still: always, Anew: true}
	}
	_, err := r.s.DropGraph(r.t.Context(), r.meta(), graph, o)
	r.must(err)
	for _, state := range r.model.states {
		maps.DeleteFunc(state, func(q Quad, _ string) bool { return q.Graph == graph })
	}
}

func (r *genRun) reopen(o Options) {
	r.must(r.s.Close())
	r.s = openStore(r.t, r.dir, o)
}

// pattern is one of each way in which the index is read.
func (r *genRun) pattern() (p Pattern) {
	q := r.quad(r.graph())
	if r.dice.IntN(2) == 0 {
		p.Graph = q.Graph
	}
	switch r.dice.IntN(6) {
	case 0:
		p.Subject = q.Subject
	case 1:
		p.Predicate = q.Predicate
	case 2:
		p.Object = q.Object
	case 3:
		p.Predicate, p.Object = q.Predicate, q.Object
	case 4:
		p = Pattern(q)
	}
	return p
}

func (r *genRun) compare() {
	t, p := r.t, r.pattern()
	at := Revision(0)
	if head := r.s.Head().Revision; head > 0 && r.dice.IntN(2) == 0 {
		at = Revision(1 + r.dice.IntN(int(head)))
	}
	v, err := r.s.View(t.Context(), View{At: at, AllGraphs: true})
	r.must(err)
	defer v.Close()
	state := r.model.at(v.Revision())
	var want, got []string
	for q, backed := range state {
		if p.Matches(q) {
			want = append(want, q.ClippedString()+backed)
		}
	}
	for st, err := range v.Match(p) {
		r.must(err)
		got = append(got, st.Quad.ClippedString()+backing(st.Assertions))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("at %d %v has\n%q, want\n%q", v.Revision(), p, got, want)
	}
	if n, err := v.Count(p); err != nil || n != uint64(len(want)) {
		t.Fatalf("at %d %v counts %d, want %d: %v", v.Revision(), p, n, len(want), err)
	}
	if at == 0 {
		r.compareVersions(v, p)
	}
}

func (r *genRun) compareVersions(v *Snapshot, p Pattern) {
	ids, known, err := v.PatternIDs(p)
	r.must(err)
	if !known {
		return
	}
	var got []string
	var rows []IDQuad
	for ver, err := range v.Versions(ids, nil) {
		r.must(err)
		q, err := v.Quad(ver.Row)
		r.must(err)
		got = append(got, fmt.Sprint(q.ClippedString(), backing(ver.shown), ver.From, ver.To))
		if len(rows) == 0 || rows[len(rows)-1] != ver.IDQuad {
			rows = append(rows, ver.IDQuad)
		}
	}
	slices.Sort(got)
	if want := r.model.versions(p); !slices.Equal(got, want) {
		r.t.Fatalf("%v has the versions\n%q, want\n%q", p, got, want)
	}
	if len(rows) > 1 { // and behind one of them, the rest
		i := r.dice.IntN(len(rows))
		var rest []IDQuad
		for ver, err := range v.Versions(ids, &rows[i]) {
			r.must(err)
			if len(rest) == 0 || rest[len(rest)-1] != ver.IDQuad {
				rest = append(rest, ver.IDQuad)
			}
		}
		if !slices.Equal(rest, rows[i+1:]) {
			r.t.Fatalf("%v has behind %v %v, want %v", p, rows[i], rest, rows[i+1:])
		}
	}
	if v.Revision() < 2 {
		return
	}
	from := Revision(1 + r.dice.IntN(int(v.Revision())))
	want, have := map[string]bool{}, map[string]bool{}
	before, after := r.model.at(from), r.model.at(v.Revision())
	for _, state := range []map[Quad]string{before, after} {
		for q := range state {
			if p.Matches(q) && before[q] != after[q] {
				want[q.ClippedString()] = true
			}
		}
	}
	for d, err := range v.Diff(from, ids, nil) {
		r.must(err)
		q, err := v.Quad(Row{IDQuad: d.IDQuad})
		r.must(err)
		have[q.ClippedString()] = true
	}
	if !maps.Equal(have, want) {
		r.t.Fatalf("%v differs from %d to %d in %v, want %v", p, from, v.Revision(), have, want)
	}
}

// Graphs are replaced, deleted, created again and changed in any order, and the store is
// reopened and its index rebuilt in between: it answers as plain maps do.
func TestGenerationsRandomly(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			dir := t.TempDir()
			r := &genRun{t: t, dice: rand.New(rand.NewPCG(seed, 17)), dir: dir, s: openStore(t, dir, Options{})}
			for range 150 {
				switch n := r.dice.IntN(100); {
				case n < 50:
					r.update()
				case n < 75:
					r.replace(false)
				case n < 80:
					r.replace(true)
				case n < 86:
					r.drop()
				case n < 89:
					_, err := r.s.Maintenance().Checkpoint(t.Context())
					r.must(err)
				case n < 92:
					r.reopen(Options{})
				case n < 93:
					r.reopen(Options{Rebuild: true})
				case n < 94:
					mustBeClean(t, r.s)
				case n < 97:
					r.must(r.s.purgeGenerations(t.Context()))
				}
				r.compare()
			}
			mustBeClean(t, r.s)
			r.reopen(Options{Rebuild: true})
			for range 50 {
				r.compare()
			}
			mustBeClean(t, r.s)
		})
	}
}

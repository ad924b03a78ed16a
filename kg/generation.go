package kg

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// A graph whose content is exchanged as a whole has generations. Each is kept under
// an id of its own in the place of the graph in the index (keys.Generation); the
// content from before the first is kept under the id of the graph's name. At each
// revision one of them counts, and what the index holds under the ids of the others
// is passed over. So a graph of any size is exchanged in one commit, and reads of
// older revisions find what stood there.
//
// Outside the index a graph has one id, that of its name: the scanner puts the
// generation's in its place on the way in, and the name's on the way out.

// generation is one content of a graph. It is not changed once it is in a table.
type generation struct {
	began Revision // the first commit that wrote to it; names it
	graph ID       // of the graph's name
	name  Term
	// from is the revision from which on it counts, and time that of the commit; 0
	// while it is written, and for one that was given up.
	from Revision
	time time.Time
	// fresh tells that the graph began anew with it: what the name held before is
	// found at no revision any more.
	fresh bool
	// number, if not 0, is of the dictionary: the id that the generation has in the index
	// is then in the order in which graphs came, not behind all of them. It is that of a
	// graph that began anew.
	number uint64
	// dead tells that it was given up.
	dead bool
	// cleared tells that what counted before it is reached by nobody any more, and is
	// removed from the index.
	cleared bool
}

func (g *generation) id() ID {
	if g.number != 0 {
		return keys.Numbered(keys.TagIRI, g.number)
	}
	return keys.Generation(uint64(g.began))
}

// placeholder is the term in the dictionary of a generation that has a number there. It is
// no IRI that can be written or asked for.
func placeholder(began Revision) Term {
	return IRI("urn:koine:generation " + strconv.FormatUint(uint64(began), 10))
}

// generations are those of all graphs, as of a revision. A table that was published is
// never changed. A nil one is that of a store where no graph was ever exchanged.
//
// It has an entry for each generation that a revision may still need: see superseded.
type generations struct {
	entries map[Revision]*generation // by the revisions in which they began
	// lines are those of each graph that count or did, in order.
	lines map[ID][]*generation
	// writing is the one that is being written of each graph.
	writing map[ID]*generation
	// fresh is from when on the graphs are that were deleted, or began anew.
	fresh map[Term]Revision
	// numbered are those with a number of the dictionary, by their ids.
	numbered map[ID]*generation
}

func newGenerations() *generations {
	return &generations{map[Revision]*generation{}, map[ID][]*generation{}, map[ID]*generation{}, map[Term]Revision{}, map[ID]*generation{}}
}

// byID is the generation with an id of the index, nil for none.
func (t *generations) byID(id ID) *generation {
	if t == nil {
		return nil
	}
	if id.Tag() == keys.TagGeneration {
		return t.entries[Revision(id.Number())]
	}
	return t.numbered[id]
}

// clone copies the table. The entries are shared, and so are the lines, which are replaced
// and never changed.
func (t *generations) clone() *generations {
	if t == nil {
		return newGenerations()
	}
	return &generations{maps.Clone(t.entries), maps.Clone(t.lines), maps.Clone(t.writing), maps.Clone(t.fresh), maps.Clone(t.numbered)}
}

// withEntries returns the table with more generations, or with what became of some.
func (t *generations) withEntries(list ...*generation) *generations {
	out := t.clone()
	for _, g := range list {
		out.setEntry(g)
	}
	return out
}

// withoutEntries returns the table without the entries of generations that it does not need
// any more (superseded).
func (t *generations) withoutEntries(list []*generation) *generations {
	out := t.clone()
	for _, g := range list {
		delete(out.entries, g.began)
		if g.number != 0 {
			delete(out.numbered, g.id())
		}
		if line := out.lines[g.graph]; len(line) > 0 {
			out.lines[g.graph] = withoutEntry(line, g)
		}
	}
	return out
}

func withoutEntry(line []*generation, g *generation) []*generation {
	return slices.DeleteFunc(slices.Clone(line), func(o *generation) bool { return o.began == g.began })
}

// superseded lists the generations whose entries are not needed any more once the index
// holds nothing under their ids: those that were given up, and those that count at no
// revision that is read, because a later one cleared them. Without its entry a generation
// counts at no revision either, and is not kept.
//
// The newest entry of a graph that cleared what was before stays, because by it the content
// from before is not kept. So does the newest with which the graph began anew: what the log
// tells of the graph before it is hidden by it.
//
// At least one entry of the table stays. With none, all that the index holds would count,
// also what a crash in the middle of a flush has left there of a generation.
func (t *generations) superseded() (out []*generation) {
	if t == nil {
		return nil
	}
	for _, g := range t.entries {
		if g.dead {
			out = append(out, g)
		}
	}
	for _, line := range t.lines {
		cleared, fresh := -1, -1
		for i, g := range line {
			if g.cleared {
				cleared = i
			}
			if g.fresh {
				fresh = i
			}
		}
		for i := range cleared { // none without one that cleared
			if i != fresh {
				out = append(out, line[i])
			}
		}
	}
	slices.SortFunc(out, func(a, b *generation) int { return cmp.Compare(a.began, b.began) })
	if len(out) > 0 && len(out) == len(t.entries) {
		return out[:len(out)-1]
	}
	return out
}

// setEntry adds a generation to a table that is not published yet.
func (t *generations) setEntry(g *generation) {
	t.entries[g.began] = g
	if g.number != 0 {
		t.numbered[g.id()] = g
	}
	switch {
	case g.from != 0:
		line := append(withoutEntry(t.lines[g.graph], g), g)
		slices.SortFunc(line, func(a, b *generation) int { return cmp.Compare(a.from, b.from) })
		t.lines[g.graph] = line
		if g.fresh {
			t.fresh[g.name] = max(t.fresh[g.name], g.from)
		}
		fallthrough
	case g.dead:
		if w := t.writing[g.graph]; w != nil && w.began == g.began {
			delete(t.writing, g.graph)
		}
	default:
		t.writing[g.graph] = g
	}
}

// current is the id under which the newest content of a graph is kept, by the id of its
// name.
func (t *generations) current(graph ID) ID {
	if t == nil {
		return graph
	}
	if line := t.lines[graph]; len(line) > 0 {
		return line[len(line)-1].id()
	}
	return graph
}

// idAt is current as of a revision; false where the graph began anew behind it.
func (t *generations) idAt(graph ID, r Revision) (ID, bool) {
	if t == nil {
		return graph, true
	}
	line := t.lines[graph]
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].from <= r {
			return line[i].id(), true
		}
		if line[i].fresh {
			return ID{}, false
		}
	}
	return graph, true
}

// tenure is when the content under one id of the index counts.
type tenure struct {
	graph       ID       // of the name
	from, until Revision // until is 0 for what counts now
	time        time.Time
}

// tenureOf is the tenure of an id in the place of a graph; false for one that counts at no
// revision.
func (t *generations) tenureOf(id ID) (tenure, bool) {
	g := t.byID(id)
	if g == nil && id.Tag() != keys.TagGeneration {
		if t == nil || len(t.lines[id]) == 0 {
			return tenure{graph: id}, true
		}
		line := t.lines[id]
		if slices.ContainsFunc(line, func(g *generation) bool { return g.fresh }) {
			return tenure{}, false
		}
		return tenure{graph: id, until: line[0].from}, true
	}
	if g == nil || g.from == 0 {
		return tenure{}, false
	}
	line := t.lines[g.graph]
	i := slices.Index(line, g)
	out := tenure{graph: g.graph, from: g.from, time: g.time}
	for _, later := range line[i+1:] {
		if later.fresh {
			return tenure{}, false
		}
		if out.until == 0 {
			out.until = later.from
		}
	}
	return out, true
}

// kept tells whether what the index has under an id in the place of a graph is kept. It is
// not if any later generation cleared what counted before it: then it is being removed, and
// some of it may be gone.
func (t *generations) kept(id ID) bool {
	if t == nil {
		return id.Tag() != keys.TagGeneration
	}
	line, next := t.lines[id], 0
	g := t.byID(id)
	if g == nil && id.Tag() == keys.TagGeneration || g != nil && g.dead {
		return false
	}
	if g != nil {
		line = t.lines[g.graph]
		next = slices.Index(line, g) + 1
		if next == 0 {
			return true // it is being written
		}
	}
	return !slices.ContainsFunc(line[next:], func(later *generation) bool { return later.cleared })
}

// beginsWith tells whether a graph held nothing before what is kept under the id: it is
// what the graph began with, or began anew with.
func (t *generations) beginsWith(graph, id ID) bool {
	if t == nil || id == graph {
		return true
	}
	g := t.byID(id)
	return g != nil && g.fresh
}

// written is the id under which a change of a graph in a revision was written, whether
// that is reached any more or not.
func (t *generations) written(graph ID, r Revision) ID {
	if t == nil {
		return graph
	}
	line := t.lines[graph]
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].from <= r {
			return line[i].id()
		}
	}
	return graph
}

// name is the id of the graph's name of any id in the place of a graph.
func (t *generations) name(id ID) ID {
	if g := t.byID(id); g != nil {
		return g.graph
	}
	return id
}

// ids lists all under which content of the graph counts at some revision.
func (t *generations) ids(graph ID) []ID { return t.idsBetween(graph, 0, math.MaxUint64) }

// idsBetween lists all under which content of the graph counts at some revision from oldest
// to newest.
func (t *generations) idsBetween(graph ID, oldest, newest Revision) []ID {
	if t == nil {
		return []ID{graph}
	}
	line := t.lines[graph]
	var out []ID
	if len(line) == 0 || line[0].from > oldest {
		out = append(out, graph)
	}
	for i, g := range line {
		if g.fresh {
			out = out[:0]
		}
		if g.from <= newest && (i+1 == len(line) || line[i+1].from > oldest) {
			out = append(out, g.id())
		}
	}
	return out
}

// hides tells whether what the graph held at a revision is found by nobody.
func (t *generations) hides(graph Term, at Revision) bool { return t != nil && at < t.fresh[graph] }

// floor is the revision that counts as the last change of every subject of the content
// under an id, 0 for none.
func (t *generations) floor(id ID) Revision {
	if g := t.byID(id); g != nil && !g.fresh {
		return g.from
	}
	return 0
}

// settle puts the commit by which a generation came to count in the place of what its
// statements say who were written for that: their revision was not known yet.
func (t *generations) settle(s *state, id ID) {
	if t == nil || s.since != 0 || len(s.assertions) == 0 {
		return
	}
	if g := t.byID(id); g != nil {
		settleState(s, g.from, g.time)
	}
}

func settleState(s *state, from Revision, at time.Time) {
	if s.since != 0 {
		return
	}
	s.since = from
	for i := range s.assertions {
		if a := &s.assertions[i]; a.Revision == 0 {
			a.Revision, a.Time = from, at
		}
	}
}

// unsettled is the time of an assertion that begins with its generation.
var unsettled = time.UnixMilli(0).UTC()

const (
	generationFresh = 1 << 0
	generationDead  = 1 << 1
	generationClear = 1 << 2
	// generationNumbered tells that the number follows the flags.
	generationNumbered = 1 << 3
)

func (g *generation) encode() []byte {
	b := append([]byte{}, g.graph[:]...)
	b = binary.AppendUvarint(b, uint64(g.from))
	millis := int64(0)
	if g.from != 0 {
		millis = g.time.UnixMilli()
	}
	b = binary.AppendVarint(b, millis)
	flags := byte(0)
	if g.fresh {
		flags |= generationFresh
	}
	if g.dead {
		flags |= generationDead
	}
	if g.cleared {
		flags |= generationClear
	}
	if g.number != 0 {
		return binary.AppendUvarint(append(b, flags|generationNumbered), g.number)
	}
	return append(b, flags)
}

func parseGeneration(key, value []byte) (*generation, error) {
	began, ok := keys.ParseGenerationRecord(key)
	r := codec.NewReader(value)
	g := &generation{began: Revision(began)}
	copy(g.graph[:], r.Take(keys.IDSize))
	g.from = Revision(r.Uvarint())
	g.time = time.UnixMilli(r.Varint()).UTC()
	flags := r.Byte()
	g.fresh, g.dead, g.cleared = flags&generationFresh != 0, flags&generationDead != 0, flags&generationClear != 0
	if flags&generationNumbered != 0 {
		if g.number = r.Uvarint(); g.number == 0 {
			r.Fail()
		}
	}
	if !ok || flags&^(generationFresh|generationDead|generationClear|generationNumbered) != 0 {
		r.Fail()
	}
	return g, r.Close()
}

// readGenerations reads the table from the index.
func readGenerations(d dictionary) (*generations, error) {
	var t *generations
	cur := d.kv.scan(keys.GenerationPrefix())
	defer cur.close()
	for ; cur.valid(); cur.next() {
		var g *generation
		err := cur.value(func(v []byte) (err error) {
			g, err = parseGeneration(cur.key(), v)
			return err
		})
		if err == nil {
			g.name, err = d.term(g.graph)
		}
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = newGenerations()
		}
		t.setEntry(g)
	}
	return t, nil
}

package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"koine/kg/internal/base"
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

// Generation is one content of a graph. It is not changed once it is in a table.
type Generation struct {
	Began base.Revision // the first commit that wrote to it; names it
	Graph base.ID       // of the graph's name
	Name  base.Term
	// From is the revision from which on it counts, and time that of the commit; 0
	// while it is written, and for one that was given up.
	From base.Revision
	Time time.Time
	// restart tells that the graph began anew with it: what the name held before is
	// found at no revision any more.
	restart bool
	// number, if not 0, is of the dictionary: the id that the generation has in the index
	// is then in the order in which graphs came, not behind all of them. It is that of a
	// graph that began anew.
	number uint64
	// Abandoned tells that it was given up.
	Abandoned bool
	// Cleared tells that what counted before it is reached by nobody any more, and is
	// removed from the index.
	Cleared bool
}

func (g *Generation) ID() base.ID {
	if g.number != 0 {
		return keys.Numbered(keys.TagIRI, g.number)
	}
	return keys.Generation(uint64(g.Began))
}

// PlaceholderTerm is the term in the dictionary of a generation that has a number there. It is
// no IRI that can be written or asked for.
func PlaceholderTerm(began base.Revision) base.Term {
	return base.IRI("urn:koine:generation " + strconv.FormatUint(uint64(began), 10))
}

// Generations are those of all graphs, as of a revision. A table that was published is
// never changed. A nil one is that of a store where no graph was ever exchanged.
//
// It has an entry for each generation that a revision may still need: see superseded.
type Generations struct {
	Entries map[base.Revision]*Generation // by the revisions in which they began
	// Timelines are those of each graph that count or did, in order.
	Timelines map[base.ID][]*Generation
	// Writing is the one that is being written of each graph.
	Writing map[base.ID]*Generation
	// restarts is from when on the graphs are that were deleted, or began anew.
	restarts map[base.Term]base.Revision
	// numbered are those with a number of the dictionary, by their ids.
	numbered map[base.ID]*Generation
}

func NewGenerations() *Generations {
	return &Generations{map[base.Revision]*Generation{}, map[base.ID][]*Generation{}, map[base.ID]*Generation{}, map[base.Term]base.Revision{}, map[base.ID]*Generation{}}
}

// ByID is the generation with an id of the index, nil for none.
func (t *Generations) ByID(id base.ID) *Generation {
	if t == nil {
		return nil
	}
	if id.Tag() == keys.TagGeneration {
		return t.Entries[base.Revision(id.Number())]
	}
	return t.numbered[id]
}

// clone copies the table. The entries are shared, and so are the lines, which are replaced
// and never changed.
func (t *Generations) clone() *Generations {
	if t == nil {
		return NewGenerations()
	}
	return &Generations{maps.Clone(t.Entries), maps.Clone(t.Timelines), maps.Clone(t.Writing), maps.Clone(t.restarts), maps.Clone(t.numbered)}
}

// WithEntries returns the table with more generations, or with what became of some.
func (t *Generations) WithEntries(list ...*Generation) *Generations {
	out := t.clone()
	for _, g := range list {
		out.SetEntry(g)
	}
	return out
}

// WithoutEntries returns the table without the entries of generations that it does not need
// any more (superseded).
func (t *Generations) WithoutEntries(list []*Generation) *Generations {
	out := t.clone()
	for _, g := range list {
		delete(out.Entries, g.Began)
		if g.number != 0 {
			delete(out.numbered, g.ID())
		}
		if line := out.Timelines[g.Graph]; len(line) > 0 {
			out.Timelines[g.Graph] = withoutEntry(line, g)
		}
	}
	return out
}

func withoutEntry(line []*Generation, g *Generation) []*Generation {
	return slices.DeleteFunc(slices.Clone(line), func(o *Generation) bool { return o.Began == g.Began })
}

// Superseded lists the generations whose entries are not needed any more once the index
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
func (t *Generations) Superseded() (out []*Generation) {
	if t == nil {
		return nil
	}
	for _, g := range t.Entries {
		if g.Abandoned {
			out = append(out, g)
		}
	}
	for _, line := range t.Timelines {
		cleared, fresh := -1, -1
		for i, g := range line {
			if g.Cleared {
				cleared = i
			}
			if g.restart {
				fresh = i
			}
		}
		for i := range cleared { // none without one that cleared
			if i != fresh {
				out = append(out, line[i])
			}
		}
	}
	slices.SortFunc(out, func(a, b *Generation) int { return cmp.Compare(a.Began, b.Began) })
	if len(out) > 0 && len(out) == len(t.Entries) {
		return out[:len(out)-1]
	}
	return out
}

// SetEntry adds a generation to a table that is not published yet.
func (t *Generations) SetEntry(g *Generation) {
	t.Entries[g.Began] = g
	if g.number != 0 {
		t.numbered[g.ID()] = g
	}
	switch {
	case g.From != 0:
		line := append(withoutEntry(t.Timelines[g.Graph], g), g)
		slices.SortFunc(line, func(a, b *Generation) int { return cmp.Compare(a.From, b.From) })
		t.Timelines[g.Graph] = line
		if g.restart {
			t.restarts[g.Name] = max(t.restarts[g.Name], g.From)
		}
		fallthrough
	case g.Abandoned:
		if w := t.Writing[g.Graph]; w != nil && w.Began == g.Began {
			delete(t.Writing, g.Graph)
		}
	default:
		t.Writing[g.Graph] = g
	}
}

// CurrentID is the id under which the newest content of a graph is kept, by the id of its
// name.
func (t *Generations) CurrentID(graph base.ID) base.ID {
	if t == nil {
		return graph
	}
	if line := t.Timelines[graph]; len(line) > 0 {
		return line[len(line)-1].ID()
	}
	return graph
}

// IDAt is current as of a revision; false where the graph began anew behind it.
func (t *Generations) IDAt(graph base.ID, r base.Revision) (base.ID, bool) {
	if t == nil {
		return graph, true
	}
	line := t.Timelines[graph]
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].From <= r {
			return line[i].ID(), true
		}
		if line[i].restart {
			return base.ID{}, false
		}
	}
	return graph, true
}

// Tenure is when the content under one id of the index counts.
type Tenure struct {
	Graph       base.ID       // of the name
	From, Until base.Revision // until is 0 for what counts now
	time        time.Time
}

// TenureOf is the tenure of an id in the place of a graph; false for one that counts at no
// revision.
func (t *Generations) TenureOf(id base.ID) (Tenure, bool) {
	g := t.ByID(id)
	if g == nil && id.Tag() != keys.TagGeneration {
		if t == nil || len(t.Timelines[id]) == 0 {
			return Tenure{Graph: id}, true
		}
		line := t.Timelines[id]
		if slices.ContainsFunc(line, func(g *Generation) bool { return g.restart }) {
			return Tenure{}, false
		}
		return Tenure{Graph: id, Until: line[0].From}, true
	}
	if g == nil || g.From == 0 {
		return Tenure{}, false
	}
	line := t.Timelines[g.Graph]
	i := slices.Index(line, g)
	out := Tenure{Graph: g.Graph, From: g.From, time: g.Time}
	for _, later := range line[i+1:] {
		if later.restart {
			return Tenure{}, false
		}
		if out.Until == 0 {
			out.Until = later.From
		}
	}
	return out, true
}

// IsKept tells whether what the index has under an id in the place of a graph is kept. It is
// not if any later generation cleared what counted before it: then it is being removed, and
// some of it may be gone.
func (t *Generations) IsKept(id base.ID) bool {
	if t == nil {
		return id.Tag() != keys.TagGeneration
	}
	line, next := t.Timelines[id], 0
	g := t.ByID(id)
	if g == nil && id.Tag() == keys.TagGeneration || g != nil && g.Abandoned {
		return false
	}
	if g != nil {
		line = t.Timelines[g.Graph]
		next = slices.Index(line, g) + 1
		if next == 0 {
			return true // it is being written
		}
	}
	return !slices.ContainsFunc(line[next:], func(later *Generation) bool { return later.Cleared })
}

// IsFirstContent tells whether a graph held nothing before what is kept under the id: it is
// what the graph began with, or began anew with.
func (t *Generations) IsFirstContent(graph, id base.ID) bool {
	if t == nil || id == graph {
		return true
	}
	g := t.ByID(id)
	return g != nil && g.restart
}

// WrittenID is the id under which a change of a graph in a revision was written, whether
// that is reached any more or not.
func (t *Generations) WrittenID(graph base.ID, r base.Revision) base.ID {
	if t == nil {
		return graph
	}
	line := t.Timelines[graph]
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].From <= r {
			return line[i].ID()
		}
	}
	return graph
}

// NameID is the id of the graph's name of any id in the place of a graph.
func (t *Generations) NameID(id base.ID) base.ID {
	if g := t.ByID(id); g != nil {
		return g.Graph
	}
	return id
}

// IDs lists all under which content of the graph counts at some revision.
func (t *Generations) IDs(graph base.ID) []base.ID { return t.IDsBetween(graph, 0, math.MaxUint64) }

// IDsBetween lists all under which content of the graph counts at some revision from oldest
// to newest.
func (t *Generations) IDsBetween(graph base.ID, oldest, newest base.Revision) []base.ID {
	if t == nil {
		return []base.ID{graph}
	}
	line := t.Timelines[graph]
	var out []base.ID
	if len(line) == 0 || line[0].From > oldest {
		out = append(out, graph)
	}
	for i, g := range line {
		if g.restart {
			out = out[:0]
		}
		if g.From <= newest && (i+1 == len(line) || line[i+1].From > oldest) {
			out = append(out, g.ID())
		}
	}
	return out
}

// Hides tells whether what the graph held at a revision is found by nobody.
func (t *Generations) Hides(graph base.Term, at base.Revision) bool {
	return t != nil && at < t.restarts[graph]
}

// LastChangeFloor is the revision that counts as the last change of every subject of the content
// under an id, 0 for none.
func (t *Generations) LastChangeFloor(id base.ID) base.Revision {
	if g := t.ByID(id); g != nil && !g.restart {
		return g.From
	}
	return 0
}

// SettleState puts the commit by which a generation came to count in the place of what its
// statements say who were written for that: their revision was not known yet.
func (t *Generations) SettleState(s *base.State, id base.ID) {
	if t == nil || s.Since != 0 || len(s.Assertions) == 0 {
		return
	}
	if g := t.ByID(id); g != nil {
		SettleState(s, g.From, g.Time)
	}
}

func SettleState(s *base.State, from base.Revision, at time.Time) {
	if s.Since != 0 {
		return
	}
	s.Since = from
	for i := range s.Assertions {
		if a := &s.Assertions[i]; a.Revision == 0 {
			a.Revision, a.Time = from, at
		}
	}
}

// UnsettledTime is the time of an assertion that begins with its generation.
var UnsettledTime = time.UnixMilli(0).UTC()

const (
	generationFresh = 1 << 0
	generationDead  = 1 << 1
	generationClear = 1 << 2
	// generationNumbered tells that the number follows the flags.
	generationNumbered = 1 << 3
)

func (g *Generation) Encode() []byte {
	b := append([]byte{}, g.Graph[:]...)
	b = binary.AppendUvarint(b, uint64(g.From))
	millis := int64(0)
	if g.From != 0 {
		millis = g.Time.UnixMilli()
	}
	b = binary.AppendVarint(b, millis)
	flags := byte(0)
	if g.restart {
		flags |= generationFresh
	}
	if g.Abandoned {
		flags |= generationDead
	}
	if g.Cleared {
		flags |= generationClear
	}
	if g.number != 0 {
		return binary.AppendUvarint(append(b, flags|generationNumbered), g.number)
	}
	return append(b, flags)
}

func ParseGeneration(key, value []byte) (*Generation, error) {
	began, ok := keys.ParseGenerationRecord(key)
	r := codec.NewReader(value)
	g := &Generation{Began: base.Revision(began)}
	copy(g.Graph[:], r.Take(keys.IDSize))
	g.From = base.Revision(r.Uvarint())
	g.Time = time.UnixMilli(r.Varint()).UTC()
	flags := r.Byte()
	g.restart, g.Abandoned, g.Cleared = flags&generationFresh != 0, flags&generationDead != 0, flags&generationClear != 0
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

// ReadGenerations reads the table from the index.
func ReadGenerations(d Dictionary) (*Generations, error) {
	var t *Generations
	cur := d.KV.Scan(keys.GenerationPrefix())
	defer cur.Close()
	for ; cur.Valid(); cur.Next() {
		var g *Generation
		err := cur.Value(func(v []byte) (err error) {
			g, err = ParseGeneration(cur.Key(), v)
			return err
		})
		if err == nil {
			g.Name, err = d.Term(g.Graph)
		}
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = NewGenerations()
		}
		t.SetEntry(g)
	}
	return t, nil
}

package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// A graph whose content is replaced as a whole has generations. The keys of each have an
// id of its own in the place of the graph (keys.Generation); those of the content before
// the first generation have the id of the graph's name. At each revision one generation
// is current, and scans skip the keys of the others. So a graph of any size is replaced
// in one commit, and reads of older revisions find the older content.
//
// Outside the index a graph has one id, that of its name: the scanner replaces it by the
// generation's id on the way in, and restores it on the way out.

// Generation is one content of a graph. It is not modified once it is in a table.
type Generation struct {
	Began base.Revision // the first commit that wrote to it; identifies it
	Graph base.ID       // the id of the graph's name
	Name  base.Term
	// From is the revision from which on the generation is current, and Time the time of
	// that commit. Both are zero while it is written, and if it was given up.
	From base.Revision
	Time time.Time
	// restart tells that the graph restarted with this generation: its earlier content is
	// not readable at any revision.
	restart bool
	// number is the dictionary number of a generation that restarted its graph, else 0.
	// With it the id in the index sorts by the creation of graphs, and not behind all of
	// them.
	number uint64
	// Abandoned tells that the generation was given up.
	Abandoned bool
	// Cleared tells that the earlier content of the graph is no longer readable and is
	// being removed from the index.
	Cleared bool
}

// ID returns the id that stands for the graph in the index keys of this generation.
func (g *Generation) ID() base.ID {
	if g.number != 0 {
		return keys.Numbered(keys.TagIRI, g.number)
	}
	return keys.Generation(uint64(g.Began))
}

// PlaceholderTerm returns the dictionary term of a generation that has a number. It is not
// a valid IRI, so that no request can name it.
func PlaceholderTerm(began base.Revision) base.Term {
	return base.IRI("urn:koine:generation " + strconv.FormatUint(uint64(began), 10))
}

// Generations is the table of the generations of all graphs as of a revision. A published
// table is never modified. A nil table belongs to a store in which no graph was ever
// replaced.
//
// It has an entry for each generation that some readable revision needs: see Superseded.
type Generations struct {
	// Entries are the generations by the revisions in which they began.
	Entries map[base.Revision]*Generation // by the revisions in which they began
	// Timelines are, for each graph, the generations that are or were current, in order.
	Timelines map[base.ID][]*Generation
	// Writing is the generation of each graph that is being written.
	Writing map[base.ID]*Generation
	// restarts are the revisions at which graphs were deleted or restarted last.
	restarts map[base.Term]base.Revision
	// numbered are the generations with a dictionary number, by their ids.
	numbered map[base.ID]*Generation
}

// NewGenerations returns an empty table.
func NewGenerations() *Generations {
	return &Generations{map[base.Revision]*Generation{}, map[base.ID][]*Generation{}, map[base.ID]*Generation{}, map[base.Term]base.Revision{}, map[base.ID]*Generation{}}
}

// ByID returns the generation with an id of the index, or nil.
func (t *Generations) ByID(id base.ID) *Generation {
	if t == nil {
		return nil
	}
	if id.Tag() == keys.TagGeneration {
		return t.Entries[base.Revision(id.Number())]
	}
	return t.numbered[id]
}

// clone copies the table. Entries and timelines are shared: timelines are replaced and
// never modified.
func (t *Generations) clone() *Generations {
	if t == nil {
		return NewGenerations()
	}
	return &Generations{maps.Clone(t.Entries), maps.Clone(t.Timelines), maps.Clone(t.Writing), maps.Clone(t.restarts), maps.Clone(t.numbered)}
}

// WithEntries returns a copy of the table with generations added or replaced.
func (t *Generations) WithEntries(list ...*Generation) *Generations {
	out := t.clone()
	for _, g := range list {
		out.SetEntry(g)
	}
	return out
}

// WithoutEntries returns a copy of the table without superseded generations.
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

// Superseded lists the generations whose entries can be removed once the index holds
// nothing under their ids: those that were given up, and those that are current at no
// readable revision because a later one cleared them. Without its entry a generation is
// current at no revision, and its keys are removed.
//
// For each graph the newest entry that cleared earlier content stays, because it marks
// that content as removed. The newest entry that restarted the graph stays as well: it
// hides the graph's earlier history in the log.
//
// At least one entry of the table stays. With an empty table, everything in the index
// would be current, including the rest of a generation that a crash left in the middle of
// a flush.
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
		for i := range cleared { // no iteration if cleared is -1
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

// CurrentID returns the id of the newest content of a graph, given the id of its name.
func (t *Generations) CurrentID(graph base.ID) base.ID {
	if t == nil {
		return graph
	}
	if line := t.Timelines[graph]; len(line) > 0 {
		return line[len(line)-1].ID()
	}
	return graph
}

// IDAt returns the id of the content that was current at a revision, false if the graph
// was restarted after it.
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

// Tenure is the interval of revisions in which the content under one id of the index is
// current.
type Tenure struct {
	Graph       base.ID       // the id of the graph's name
	From, Until base.Revision // Until is 0 for current content
	time        time.Time
}

// TenureOf returns the tenure of an id in the place of a graph, false if it is current at
// no revision.
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

// IsKept reports whether the index retains the keys under an id in the place of a graph.
// It does not if a later generation cleared the content before it: then the keys are being
// removed, and some may be gone.
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

// IsFirstContent reports whether the content under the id is the first of its graph, or
// the first after the graph was restarted.
func (t *Generations) IsFirstContent(graph, id base.ID) bool {
	if t == nil || id == graph {
		return true
	}
	g := t.ByID(id)
	return g != nil && g.restart
}

// WrittenID returns the id under which a change of a graph was written in a revision, even
// if it is no longer readable.
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

// NameID returns the id of the graph's name for any id in the place of a graph.
func (t *Generations) NameID(id base.ID) base.ID {
	if g := t.ByID(id); g != nil {
		return g.Graph
	}
	return id
}

// IDs lists the ids under which content of the graph is current at some revision.
func (t *Generations) IDs(graph base.ID) []base.ID { return t.IDsBetween(graph, 0, math.MaxUint64) }

// IDsBetween lists the ids under which content of the graph is current at some revision
// from oldest to newest.
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

// Hides reports whether the content of the graph at a revision is no longer readable.
func (t *Generations) Hides(graph base.Term, at base.Revision) bool {
	return t != nil && at < t.restarts[graph]
}

// LastChangeFloor returns the revision that counts as the last change of every subject in
// the content under an id, 0 for none.
func (t *Generations) LastChangeFloor(id base.ID) base.Revision {
	if g := t.ByID(id); g != nil && !g.restart {
		return g.From
	}
	return 0
}

// SettleState fills in the revision and time of assertions that were written before their
// generation became current.
func (t *Generations) SettleState(s *base.State, id base.ID) {
	if t == nil || s.Since != 0 || len(s.Assertions) == 0 {
		return
	}
	if g := t.ByID(id); g != nil {
		SettleState(s, g.From, g.Time)
	}
}

// SettleState fills in from and at where a state that was written before its generation
// became current lacks revision and time.
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

// UnsettledTime is the time of an assertion whose revision is that of its generation's
// switch.
var UnsettledTime = time.UnixMilli(0).UTC()

const (
	generationFresh = 1 << 0
	generationDead  = 1 << 1
	generationClear = 1 << 2
	// generationNumbered tells that the dictionary number follows the flags.
	generationNumbered = 1 << 3
)

// Encode returns the value of the generation's record in the index.
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

// ParseGeneration decodes a record of the index. It does not fill in Name.
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

// asOf returns the generation as it was in a revision after it began.
func (g *Generation) asOf(r base.Revision) *Generation {
	if g.From <= r {
		return g
	}
	return &Generation{Began: g.Began, Graph: g.Graph, Name: g.Name}
}

// ReadGenerations reads the table of a revision from the index. It returns nil if it is
// empty.
//
// The records may be of later commits, which an interrupted flush left without a marker. A
// generation that became current after the revision is not current in the table: those
// commits are applied again, and change the content that was current in their time.
func ReadGenerations(d Dictionary, at base.Revision) (*Generations, error) {
	var t *Generations
	cur := d.KV.Scan(keys.GenerationPrefix())
	defer cur.Close()
	for ; cur.Valid(); cur.Next() {
		var g *Generation
		err := cur.Value(func(v []byte) (err error) {
			g, err = ParseGeneration(cur.Key(), v)
			return err
		})
		if err == nil && g.Began > at {
			continue
		}
		if err == nil {
			g = g.asOf(at)
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

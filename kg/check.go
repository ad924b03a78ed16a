package kg

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"koine/kg/internal/keys"
)

// CheckOptions says how thorough Check is.
type CheckOptions struct {
	// MaxProblems bounds the list in the report; DefaultMaxProblems when 0.
	MaxProblems int
	// Progress is called now and then with what is being looked at and how many
	// keys or entries have been; may be nil.
	Progress func(part string, done uint64)
	// Checkpoints has the checkpoint files read as well, and makes sure that one
	// leads on to the log where its head was cut.
	Checkpoints bool
}

// DefaultMaxProblems is how many problems a check lists.
const DefaultMaxProblems = 100

// CheckReport is what a check found.
type CheckReport struct {
	Revision   Revision
	Statements uint64
	Past       uint64 // intervals of the past
	Terms      uint64
	Entries    uint64 // of the log
	Problems   []string
	// Total counts the problems, those beyond the list included.
	Total int
}

// Clean tells whether nothing was found.
func (r *CheckReport) Clean() bool { return r.Total == 0 }

// Check verifies the checksums of Badger's files and then compares everything
// that says the same thing twice: every order of the index with SPOG, both sides
// of the dictionary, the counts, the last changes, the past, and all of it with
// what the log says when it is applied to a model in memory, so that it takes
// memory in proportion to the store. It reads one snapshot and may run beside
// everything else. The error is of the reading itself; what is wrong with the
// store is in the report.
func (s *Store) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	setDefault(&o.MaxProblems, DefaultMaxProblems)
	p, err := s.pin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.unpin(p)
	c := &checker{
		ctx: ctx, s: s, kv: p.kv, pinned: p, head: p.head, options: o,
		dict:   dictionary{kv: p.kv, cache: s.cache},
		report: &CheckReport{Revision: p.head.revision},
		states: make(map[IDQuad]string), past: make(map[pastKey]string),
		last: make(map[subjectInGraph]Revision), counts: make(map[string]uint64),
	}
	if c.tables(); !c.report.Clean() {
		return c.report, nil // reading on is not safe
	}
	for _, part := range []func() error{
		c.marker, c.dictionary, c.statements, c.orders, c.sequences, c.history, c.lastChanges, c.catalogue, c.log, c.checkpoints,
	} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return c.report, nil
}

// checker gathers what the index says, then compares the log with it.
type checker struct {
	ctx     context.Context
	s       *Store
	kv      kv
	pinned  pinned
	dict    dictionary
	head    *head
	options CheckOptions
	report  *CheckReport
	done    uint64

	states map[IDQuad]string // SPOG values
	past   map[pastKey]string
	kept   int // of past, those that may still be read
	last   map[subjectInGraph]Revision
	counts map[string]uint64 // by catalogue key, as counted here
}

type pastKey struct {
	quad     IDQuad
	from, to uint64
}

func (c *checker) problem(format string, args ...any) {
	c.report.Total++
	if len(c.report.Problems) < c.options.MaxProblems {
		c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
	}
}

// scan calls fn for every key of a prefix.
func (c *checker) scan(part string, prefix []byte, fn func(key, value []byte)) error {
	cur := c.kv.scan(prefix)
	defer cur.close()
	c.done = 0
	for ; cur.valid(); cur.next() {
		err := cur.value(func(v []byte) error { fn(cur.key(), v); return nil })
		if err != nil {
			c.problem("%s: key %x cannot be read: %v", part, cur.key(), err)
		}
		if err := c.tick(part); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) tick(part string) error {
	if c.done++; c.done%(16*checkEvery) != 0 {
		return nil
	}
	if c.options.Progress != nil {
		c.options.Progress(part, c.done)
	}
	return c.ctx.Err()
}

// tables verifies the checksums in Badger's own files.
func (c *checker) tables() {
	defer func() { // Badger's own way of saying that a block cannot be read
		if p := recover(); p != nil {
			c.problem("a file of the index is damaged: %v", p)
		}
	}()
	if err := c.s.db.VerifyChecksum(); err != nil {
		c.problem("a file of the index is damaged: %v", err)
	}
}

// marker compares how far Badger says it is with how far it is read.
func (c *checker) marker() error {
	var m marker
	found, err := c.pinned.base.get(markerKey, func(v []byte) (err error) {
		m, err = parseMarker(v)
		return err
	})
	switch {
	case err != nil:
		c.problem("marker: %v", err)
	case !found && c.pinned.at > 0:
		c.problem("marker: missing at revision %d", c.pinned.at)
	case found && m.revision != c.pinned.at:
		c.problem("marker: says revision %d, the index is read at %d", m.revision, c.pinned.at)
	}
	return nil
}

func (c *checker) dictionary() error {
	err := c.scan("terms by number", keys.NumberPrefix(), func(key, value []byte) {
		c.report.Terms++
		n, ok := keys.ParseNumber(key)
		if !ok || n != c.report.Terms {
			c.problem("dictionary: number %d where %d comes next", n, c.report.Terms)
		}
		t, err := parseTerm(value)
		if err != nil {
			c.problem("dictionary: term %d: %v", n, err)
			return
		}
		if key := literalKindKey(t); key != nil {
			if found, err := c.kv.get(key, func([]byte) error { return nil }); !found || err != nil {
				c.problem("dictionary: the language or datatype of term %d is not listed: %v", n, err)
			}
		}
		if _, inline := inlineID(t); inline {
			c.problem("dictionary: term %d needs no number: %s", n, clip(t.String()))
		}
		termKey, _ := keys.Term(value, hash16)
		found, err := c.kv.get(termKey, func(v []byte) error {
			if back, k := binary.Uvarint(v); k <= 0 || back != n {
				c.problem("dictionary: term %d is found under number %d", n, back)
			}
			return nil
		})
		if !found || err != nil {
			c.problem("dictionary: term %d has no way back: %v", n, err)
		}
	})
	if err != nil {
		return err
	}
	if c.report.Terms+1 != c.head.nextNumber {
		c.problem("dictionary: %d terms, and the next number is %d", c.report.Terms, c.head.nextNumber)
	}
	var back uint64
	err = c.scan("numbers by term", keys.TermPrefix(), func(_, _ []byte) { back++ })
	if back != c.report.Terms {
		c.problem("dictionary: %d terms by number, %d by text", c.report.Terms, back)
	}
	return err
}

func (c *checker) statements() error {
	typeID, hasType, err := c.dict.id(IRI(RDFType))
	if err != nil {
		return err
	}
	shared := sharedGraphs{dict: c.dict}
	return c.scan("statements", []byte{byte(keys.SPOG)}, func(key, value []byte) {
		c.report.Statements++
		q, ok := keys.SPOG.Parse(key)
		if !ok {
			c.problem("SPOG: key %x is malformed", key)
			return
		}
		if _, err := parseState(value, c.dict.agent); err != nil {
			c.problem("SPOG: %s: %v", c.show(q), err)
		}
		c.states[q] = string(value)
		if is, err := shared.has(&q); err == nil && is && c.s.counted {
			_ = sourceCounts(c.counts).add(value) // what cannot be read was told of above
		}
		c.counts[string(keys.Predicate(q.Graph, q.Predicate))]++
		if hasType && q.Predicate == typeID {
			c.counts[string(keys.Class(q.Graph, q.Object))]++
		}
	})
}

func (c *checker) show(q IDQuad) string {
	out := ""
	for _, id := range [...]ID{q.Subject, q.Predicate, q.Object, q.Graph} {
		t, err := c.dict.term(id)
		if err != nil {
			return fmt.Sprintf("%x", q)
		}
		out += clip(t.String()) + " "
	}
	return out
}

func (c *checker) orders() error {
	for _, o := range keys.Orders {
		if o == keys.SPOG {
			continue
		}
		var n uint64
		err := c.scan("other orders", []byte{byte(o)}, func(key, value []byte) {
			n++
			q, ok := o.Parse(key)
			if _, stands := c.states[q]; !ok || !stands {
				c.problem("order %x: %s is not in SPOG", byte(o), c.show(q))
			}
		})
		if err != nil {
			return err
		}
		if want := c.inOrder(o); n != want {
			c.problem("order %x: %d keys for %d statements", byte(o), n, want)
		}
	}
	return nil
}

// sequences makes sure that the entries of each journal have the numbers 1, 2, 3 …,
// each once.
func (c *checker) sequences() error {
	numbers := make(map[ID][]int64)
	for q := range c.states {
		if q.Predicate == keys.Sequence {
			numbers[q.Graph] = append(numbers[q.Graph], q.Object.Int())
		}
	}
	for graph, list := range numbers {
		name, err := c.dict.term(graph)
		if err != nil {
			c.problem("sequences: graph %x: %v", graph, err)
			continue
		}
		if !strings.HasPrefix(name.value, JournalGraphPrefix) {
			continue
		}
		slices.Sort(list)
		for i, n := range list {
			if n != int64(i)+1 {
				c.problem("sequences: %s has number %d where %d comes next", name, n, i+1)
				break
			}
		}
	}
	return nil
}

// inOrder is how many statements an order must hold.
func (c *checker) inOrder(o keys.Order) (n uint64) {
	for q := range c.states {
		if o.Holds(q) {
			n++
		}
	}
	return n
}

func (c *checker) history() error {
	err := c.scan("past", []byte{byte(keys.SPOG.Past())}, func(key, value []byte) {
		c.report.Past++
		q, ok := keys.SPOG.Past().Parse(key)
		from, to, inOrder := keys.Interval(key)
		if !ok || !inOrder {
			c.problem("past: key %x is malformed", key)
			return
		}
		st, err := parseState(value, c.dict.agent)
		if err != nil || uint64(st.since) != from {
			c.problem("past: %s from %d to %d: %v", c.show(q), from, to, err)
		}
		c.past[pastKey{q, from, to}] = string(value)
		if Revision(to) > c.s.floor() {
			c.kept++
		}
	})
	if err != nil {
		return err
	}
	for _, o := range keys.Orders {
		if o == keys.SPOG {
			continue
		}
		var n, want uint64
		err := c.scan("other orders of the past", []byte{byte(o.Past())}, func(key, _ []byte) {
			n++
			q, ok := o.Past().Parse(key)
			from, to, _ := keys.Interval(key)
			if _, there := c.past[pastKey{q, from, to}]; !ok || !there {
				c.problem("past order %x: %s from %d to %d is not in SPOG", byte(o), c.show(q), from, to)
			}
		})
		if err != nil {
			return err
		}
		for k := range c.past {
			if o.Holds(k.quad) {
				want++
			}
		}
		if n != want {
			c.problem("past order %x: %d keys for %d intervals", byte(o), n, want)
		}
	}
	return nil
}

func (c *checker) lastChanges() error {
	return c.scan("last changes", keys.LastPrefix(), func(key, value []byte) {
		graph, subject, ok := keys.ParsePair(key)
		r, n := binary.Uvarint(value)
		if !ok || n != len(value) || Revision(r) > c.head.revision {
			c.problem("last change: key %x says %d", key, r)
			return
		}
		c.last[subjectInGraph{graph, subject}] = Revision(r)
	})
}

func (c *checker) catalogue() error {
	stored := make(map[string]tally)
	for _, prefix := range tallied {
		err := c.scan("counts", []byte{prefix}, func(key, value []byte) {
			t, err := parseTally(value)
			if err != nil {
				c.problem("count: key %x: %v", key, err)
			}
			stored[string(key)] = t
			if inMemory, _ := c.head.catalogue.tallies.Get(string(key)); inMemory != t {
				c.problem("count: key %x is %v in the index and %v in memory", key, t, inMemory)
			}
		})
		if err != nil {
			return err
		}
	}
	if n := c.head.catalogue.tallies.Len(); n != len(stored) {
		c.problem("counts: %d in the index, %d in memory", len(stored), n)
	}
	for key, t := range stored {
		if t.count != c.counts[key] {
			c.problem("count: key %x says %d, there are %d", key, t.count, c.counts[key])
		}
	}
	for key, n := range c.counts {
		if _, ok := stored[key]; !ok {
			c.problem("count: key %x is missing, there are %d", key, n)
		}
	}
	return nil
}

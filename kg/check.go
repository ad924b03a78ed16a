package kg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"os"
	"strings"

	"koine/internal/extsort"
	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// CheckOptions configures Check. The zero value works.
type CheckOptions struct {
	// MaxProblems bounds the problems listed in the report; 0 is DefaultMaxProblems.
	MaxProblems int
	// SortBytes is the memory of a sort, of which up to three are under way at a time; 0 is
	// extsort.DefaultBytes.
	SortBytes int
	// Progress is called every checkStep keys or changes, and after each file, with the part being
	// checked and the number of keys, changes or files checked; may be nil.
	Progress func(part string, done uint64)
	// Checkpoints also verifies the checkpoint files, and that one of them leads to the first
	// log entry if the log was cut.
	Checkpoints bool

	// counted replaces maxCounted, for tests.
	counted int
}

// checkStep is the number of keys or changes between two calls of CheckOptions.Progress, which
// gives pages of the index back. Each may look up terms anywhere in the index, and the system maps
// 64 KiB around a page that is read: a step of a few thousand maps all of a large index.
const checkStep = 256

// DefaultMaxProblems is the number of problems that a check lists.
const DefaultMaxProblems = 100

// CheckReport is the result of a check.
type CheckReport struct {
	Revision   Revision
	Statements uint64
	Past       uint64 // intervals of past statements
	Terms      uint64
	Entries    uint64 // log entries
	Problems   []string
	// Total is the number of problems, including those beyond the list.
	Total int
}

// Clean reports whether the check found no problem.
func (r *CheckReport) Clean() bool { return r.Total == 0 }

// Check verifies the integrity of the store. It reads the checksums of Badger's files and
// compares all redundant data: each order of the index with SPOG, both directions of the
// dictionary, the counts, the last changes, the past, and all of it with the log. It reads one
// snapshot and runs beside other operations. Problems are in the report; the error is about
// the check itself.
//
// What the check holds is bounded, however large the store is. Beyond SortBytes it sorts in
// temporary files, up to 120 bytes per change, in the data directory, or in the system's
// directory with Options.ReadOnly; they are always removed. It fails with CodeDiskFull rather
// than use space that updates need.
func (m Maintenance) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	s := m.s
	setDefault(&o.MaxProblems, DefaultMaxProblems)
	setDefault(&o.counted, maxCounted)
	floor, let := s.holdPast()
	defer let()
	p, err := s.pin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.unpin(p)
	c := &checker{
		ctx: ctx, s: s, kv: p.kv, pinned: p, head: p.head, floor: floor, options: o,
		report: &CheckReport{Revision: p.head.revision},
		seed:   maphash.MakeSeed(),
	}
	for _, d := range [...]*index.Dictionary{&c.dict, &c.ids} {
		*d = s.dictionary(p.kv)
		d.Cache = index.NewTermCache(int(min(uint64(s.options.TermCache), max(p.head.nextNumber, minCheckCache))))
	}
	c.numbers, c.counts = c.newSorter(), newKeyCounter(c.newSorter(), o.counted)
	if err := errors.Join(c.checkAll(), c.close()); err != nil {
		return nil, err
	}
	return c.report, nil
}

// minCheckCache is the smallest term cache of a check.
const minCheckCache = 64

// checker gathers data from the index, and then compares the log with it.
type checker struct {
	ctx    context.Context
	s      *Store
	kv     index.KV
	pinned pinned
	// dict reads terms and ids reads ids, with separate caches: a shared one would hide an
	// entry that only one direction of a damaged dictionary has.
	dict, ids index.Dictionary

	head    *head
	floor   Revision // at least the oldest readable revision of the snapshot
	options CheckOptions
	report  *CheckReport
	done    uint64
	seed    maphash.Seed
	sorters []*extsort.Sorter // closed with the check

	graph     ID // the last one passed to keepsGraph, and the answer
	graphKept bool

	present       keySums           // of the current statements
	past          keySums           // of past intervals
	keptIntervals uint64            // past intervals that may still be read
	numbers       *extsort.Sorter   // graph and number of numbered entries
	counts        *keyCounter       // counted here, by catalogue key
	lasts         uint64            // number of last changes
	ranked        index.RankedTerms // met in the dictionary
	values        uint64            // number of them
}

func (c *checker) checkAll() error {
	if c.checkTables(); !c.report.Clean() {
		return nil // reading on is not safe
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	for _, part := range []func() error{
		c.checkMarker, c.checkDictionary, c.checkValues, c.checkStatements, c.checkOrders, c.checkSequences, c.checkHistory, c.lastChanges, c.checkCatalogue, c.checkLog, c.checkCheckpoints,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// newSorter returns a sorter that is closed with the check.
func (c *checker) newSorter() *extsort.Sorter {
	s := extsort.New(c.ctx, extsort.Options{Dir: c.sortingDir(), Bytes: c.options.SortBytes, Room: c.checkFreeSpace})
	c.sorters = append(c.sorters, s)
	return s
}

func (c *checker) close() (err error) {
	for _, s := range c.sorters {
		err = errors.Join(err, s.Close())
	}
	return err
}

// sortingDir returns the directory for temporary files.
func (c *checker) sortingDir() string {
	if c.s.options.ReadOnly {
		return os.TempDir()
	}
	return c.s.dir.Path
}

// checkFreeSpace refuses temporary files that would use space that updates need. It does not
// watch the system's own directory.
func (c *checker) checkFreeSpace(bytes int64) error {
	if c.s.options.ReadOnly {
		return nil
	}
	free, err := c.s.options.FreeBytes(c.s.dir.Path)
	if err == nil && free < c.s.options.ReserveBytes+uint64(bytes) {
		err = Errorf(CodeDiskFull, "the check needs more space for temporary files in %s than is free beyond the reserve", c.s.dir.Path)
	}
	return err
}

func (c *checker) addProblem(format string, args ...any) {
	c.problemOf(func() string { return fmt.Sprintf(format, args...) })
}

// problemOf adds a problem whose text is made only if it is listed.
func (c *checker) problemOf(text func() string) {
	c.report.Total++
	if len(c.report.Problems) < c.options.MaxProblems {
		c.report.Problems = append(c.report.Problems, text())
	}
}

// scanPrefix calls fn for every key of a prefix, until it fails.
func (c *checker) scanPrefix(part string, prefix []byte, fn func(key, value []byte) error) error {
	return c.walkPrefix(part, prefix, func(cur index.Cursor) error {
		var failed error
		err := cur.Value(func(v []byte) error {
			failed = fn(cur.Key(), v)
			return nil
		})
		if err != nil {
			c.addProblem("%s: key %x cannot be read: %v", part, cur.Key(), err)
		}
		return failed
	})
}

// walkPrefix is scanPrefix without the values.
func (c *checker) walkPrefix(part string, prefix []byte, fn func(cur index.Cursor) error) error {
	cur := c.kv.Scan(prefix)
	defer cur.Close()
	c.done = 0
	for ; cur.Valid(); cur.Next() {
		if err := fn(cur); err != nil {
			return err
		}
		if err := c.reportStep(part); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) reportStep(part string) error {
	if c.done++; c.done%checkStep != 0 {
		return nil
	}
	if c.options.Progress != nil {
		c.options.Progress(part, c.done)
	}
	return c.ctx.Err()
}

// checkTables verifies the checksums of Badger's files.
func (c *checker) checkTables() {
	defer func() { // Badger panics on an unreadable block
		if p := recover(); p != nil {
			c.addProblem("a file of the index is damaged: %v", p)
		}
	}()
	done := uint64(0)
	err := c.s.db.VerifyChecksums(func() error {
		if done++; c.options.Progress != nil {
			c.options.Progress("files of the index", done)
		}
		return c.ctx.Err()
	})
	if err != nil && c.ctx.Err() == nil {
		c.addProblem("a file of the index is damaged: %v", err)
	}
}

// checkMarker compares the index's marker with the head.
func (c *checker) checkMarker() error {
	var m index.Marker
	found, err := c.pinned.kv.Get(index.MarkerKey, func(v []byte) (err error) {
		m, err = index.ParseMarker(v)
		return err
	})
	switch {
	case err != nil:
		c.addProblem("marker: %v", err)
	case !found && c.pinned.at > 0:
		c.addProblem("marker: missing at revision %d", c.pinned.at)
	case found && m.Revision != c.pinned.at:
		c.addProblem("marker: says revision %d, the index is read at %d", m.Revision, c.pinned.at)
	}
	return nil
}

func (c *checker) checkDictionary() error {
	err := c.scanPrefix("terms by number", keys.NumberPrefix(), func(key, value []byte) error {
		c.report.Terms++
		n, ok := keys.ParseNumber(key)
		if !ok || n != c.report.Terms {
			c.addProblem("dictionary: number %d where %d comes next", n, c.report.Terms)
		}
		t, err := base.ParseTerm(value)
		if err != nil {
			c.addProblem("dictionary: term %d: %v", n, err)
			return nil
		}
		if key := index.LiteralKindKey(t); key != nil {
			if found, err := c.kv.Get(key, func([]byte) error { return nil }); !found || err != nil {
				c.addProblem("dictionary: the language or datatype of term %d is not listed: %v", n, err)
			}
		}
		if _, inline := base.InlineID(t); inline {
			c.addProblem("dictionary: term %d needs no number: %s", n, base.Clip(t.String()))
		}
		if err := c.checkRank(value, n); err != nil {
			return err
		}
		found, err := c.findNumber(value, func(v []byte) error {
			if back, k := binary.Uvarint(v); k <= 0 || back != n {
				c.addProblem("dictionary: term %d is found under number %d", n, back)
			}
			return nil
		})
		if !found || err != nil {
			c.addProblem("dictionary: term %d has no way back: %v", n, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.report.Terms+1 != c.head.nextNumber {
		c.addProblem("dictionary: %d terms, and the next number is %d", c.report.Terms, c.head.nextNumber)
	}
	var back uint64
	err = c.scanPrefix("numbers by term", keys.TermPrefix(), func(_, _ []byte) error {
		back++
		return nil
	})
	if back != c.report.Terms && !c.s.hashedTerms { // which may have some terms twice
		c.addProblem("dictionary: %d terms by number, %d by text", c.report.Terms, back)
	}
	return err
}

// checkRank checks the key by which a term with this record is found in the order of the values.
func (c *checker) checkRank(record []byte, number uint64) error {
	key, err := index.RankKeyOf(record, number)
	if err != nil || key == nil || c.s.unranked {
		return err
	}
	c.ranked.Add(key)
	c.values++
	if found, err := c.kv.Get(key, func([]byte) error { return nil }); !found || err != nil {
		c.addProblem("dictionary: term %d is not in the order of the values: %v", number, err)
	}
	return nil
}

// checkValues checks that the order of the values has no other terms, and that the kinds of literals
// are recorded for the predicates. Where OtherValues is recorded, nothing depends on the other kinds.
func (c *checker) checkValues() error {
	if c.s.unranked {
		return nil
	}
	var values uint64
	err := c.walkPrefix("values in order", keys.RankedPrefix(), func(index.Cursor) error {
		values++
		return nil
	})
	if err != nil {
		return err
	}
	if values != c.values {
		c.addProblem("dictionary: %d numbers and times, %d in the order of the values", c.values, values)
	}
	return c.ranked.EachUse(c.kv, func(use index.LiteralUse) (more bool, err error) {
		recorded := func(kind ValueKind) bool {
			found, failed := c.kv.Get(keys.Values(use.Predicate, byte(kind)), func([]byte) error { return nil })
			err = errors.Join(err, failed)
			return found
		}
		if !recorded(use.Kind) && !recorded(OtherValues) || err != nil {
			t, _ := c.dict.Term(use.Predicate)
			c.addProblem("dictionary: a kind of the literals of %s is not recorded: %v", t, err)
		}
		return !recorded(OtherValues), c.ctx.Err()
	})
}

// findNumber reads the number of the term with a record.
func (c *checker) findNumber(record []byte, fn func([]byte) error) (found bool, err error) {
	key, hashed := keys.Term(record, base.Hash16)
	if found, err = c.kv.Get(key, fn); !found && err == nil && hashed && c.s.hashedTerms {
		return c.kv.Get(keys.HashedTerm(record, base.Hash16), fn)
	}
	return found, err
}

func (c *checker) checkStatements() error {
	typeID, hasType, err := c.ids.ID(IRI(RDFType))
	if err != nil {
		return err
	}
	shared := index.QuotaGraphs{Dictionary: c.dict, Generations: c.head.generations}
	var number []byte
	return c.scanPrefix("statements", []byte{byte(keys.SPOG)}, func(key, value []byte) error {
		q, ok := keys.SPOG.Parse(key)
		if !ok {
			c.report.Statements++
			c.addProblem("SPOG: key %x is malformed", key)
			return nil
		}
		if !c.keepsGraph(q.Graph) {
			return nil
		}
		if counted, is := c.head.generations.TenureOf(q.Graph); is && counted.Until == 0 {
			c.report.Statements++
		}
		if _, err := base.ParseState(value, c.dict.Agent); err != nil {
			c.addProblem("SPOG: %s: %v", c.formatQuad(q), err)
		}
		c.present.add(c.seed, q, key)
		if is, err := shared.Counts(&q); err == nil && is && c.s.counted {
			c.counts.countSources(value)
		}
		if len(shared.Scopes) > c.options.counted {
			clear(shared.Scopes)
		}
		c.counts.countKey(keys.Predicate(q.Graph, q.Predicate))
		if hasType && q.Predicate == typeID {
			c.counts.countKey(keys.Class(q.Graph, q.Object))
		}
		if q.Predicate == keys.Sequence {
			number = appendNumbered(number[:0], q.Graph, q.Object.Int())
			if err := c.numbers.Add(number); err != nil {
				return err
			}
		}
		return c.counts.spillIfFull()
	})
}

// keepsGraph reports whether the generation of this id stays in the index, and is not about to
// be removed.
func (c *checker) keepsGraph(graph ID) bool {
	if graph != c.graph {
		c.graph, c.graphKept = graph, c.head.generations.IsKept(graph)
	}
	return c.graphKept
}

func (c *checker) formatQuad(q IDQuad) string {
	out := ""
	q.Graph = c.head.generations.NameID(q.Graph)
	for _, id := range [...]ID{q.Subject, q.Predicate, q.Object, q.Graph} {
		t, err := c.dict.Term(id)
		if err != nil {
			return fmt.Sprintf("%x", q)
		}
		out += base.Clip(t.String()) + " "
	}
	return out
}

func (c *checker) checkOrders() error {
	for i, o := range keys.Orders {
		if o == keys.SPOG {
			continue
		}
		n, err := c.checkOrder("other orders", o, c.present[i], func(q IDQuad, _ []byte) {
			c.addProblem("order %x: %s is not in SPOG", byte(o), c.formatQuad(q))
		})
		if err != nil {
			return err
		}
		if want := c.present[i].n; n != want {
			c.addProblem("order %x: %d keys for %d statements", byte(o), n, want)
		}
	}
	return nil
}

// checkOrder compares the keys of an order, current or past, with the expected sum and returns
// their number. It calls stray for a key that SPOG does not have.
func (c *checker) checkOrder(part string, o keys.Order, want keySum, stray func(q IDQuad, key []byte)) (uint64, error) {
	var got keySum
	var twin []byte
	sound := true
	err := c.scanPrefix(part, []byte{byte(o)}, func(key, _ []byte) error {
		var ok bool
		var q IDQuad
		twin, q, ok = spogKeyOf(twin[:0], o, key)
		if ok && !c.keepsGraph(q.Graph) {
			return nil
		}
		sound = sound && ok
		got.add(c.seed, twin)
		return nil
	})
	if err != nil || sound && got == want {
		return got.n, err
	}
	named := false
	err = c.walkPrefix(part, []byte{byte(o)}, func(cur index.Cursor) error {
		key, q, ok := spogKeyOf(twin[:0], o, cur.Key())
		if ok && !c.keepsGraph(q.Graph) {
			return nil
		}
		if ok {
			var err error
			ok, err = c.kv.Get(key, func([]byte) error { return nil })
			ok = ok && err == nil && o.Holds(q) // an unreadable key was reported
		}
		if !ok {
			named = true
			stray(q, cur.Key())
		}
		return nil
	})
	if err == nil && !named && got.n == want.n {
		c.addProblem("order %x: its keys are not those of the statements", byte(o))
	}
	return got.n, err
}

// holdPast keeps the readable past and the log unchanged until let is called. floor is the
// oldest readable revision.
func (s *Store) holdPast() (floor Revision, let func()) {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	log := s.holdLog(Revision(s.wal.First()))
	for {
		floor = s.oldestReadable()
		past := s.holdRevision(floor)
		if s.oldestReadable() == floor { // registered before the floor was read
			return floor, func() { past(); log() }
		}
		past()
	}
}

// checkSequences checks that the entries of each journal have the numbers 1, 2, 3 …, each
// once.
func (c *checker) checkSequences() error {
	var in ID // current graph
	var name Term
	var next int64 // expected number; 0 after a problem in this graph
	c.done = 0
	for row, err := range c.numbers.Sorted() {
		if err != nil {
			return err
		}
		graph, n := parseNumbered(row)
		if graph != in {
			in, next = graph, 0
			if name, err = c.dict.Term(graph); err != nil {
				c.addProblem("sequences: graph %x: %v", graph, err)
			} else if strings.HasPrefix(name.Value(), JournalGraphPrefix) {
				next = 1
			}
		}
		switch {
		case next == 0:
		case n == next:
			next++
		default:
			c.addProblem("sequences: %s has number %d where %d comes next", name, n, next)
			next = 0
		}
		if err := c.reportStep("sequences"); err != nil {
			return err
		}
	}
	return c.numbers.Close()
}

func (c *checker) checkHistory() error {
	err := c.scanPrefix("past", []byte{byte(keys.SPOG.Past())}, func(key, value []byte) error {
		q, ok := keys.SPOG.Past().Parse(key)
		from, to, inOrder := keys.Interval(key)
		if ok && !c.keepsGraph(q.Graph) {
			return nil
		}
		c.report.Past++
		if !ok || !inOrder {
			c.addProblem("past: key %x is malformed", key)
			return nil
		}
		st, err := base.ParseState(value, c.dict.Agent)
		if err != nil || uint64(st.Since) != from {
			c.addProblem("past: %s from %d to %d: %v", c.formatQuad(q), from, to, err)
		}
		c.past.add(c.seed, q, key)
		if Revision(to) > c.floor {
			c.keptIntervals++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, o := range keys.Orders {
		if o == keys.SPOG {
			continue
		}
		n, err := c.checkOrder("other orders of the past", o.Past(), c.past[i], func(q IDQuad, key []byte) {
			from, to, _ := keys.Interval(key)
			c.addProblem("past order %x: %s from %d to %d is not in SPOG", byte(o), c.formatQuad(q), from, to)
		})
		if err != nil {
			return err
		}
		if want := c.past[i].n; n != want {
			c.addProblem("past order %x: %d keys for %d intervals", byte(o), n, want)
		}
	}
	return nil
}

func (c *checker) lastChanges() error {
	return c.scanPrefix("last changes", keys.LastPrefix(), func(key, value []byte) error {
		if graph, _, ok := keys.ParsePair(key); ok && !c.keepsGraph(graph) {
			return nil
		}
		if r, ok := c.parseLast(key, value); ok {
			c.lasts++
		} else {
			c.addProblem("last change: key %x says %d", key, r)
		}
		return nil
	})
}

// parseLast parses a last change. It returns false if the record is invalid.
func (c *checker) parseLast(key, value []byte) (Revision, bool) {
	_, _, ok := keys.ParsePair(key)
	r, n := binary.Uvarint(value)
	return Revision(r), ok && n == len(value) && Revision(r) <= c.head.revision
}

// checkCatalogue compares the catalogue with the counts made here, both sorted by key.
func (c *checker) checkCatalogue() error {
	counted, stop := iter.Pull2(c.counts.sortedCounts())
	defer stop()
	at, err, more := counted()
	stored := 0
	for _, prefix := range index.CountPrefixes {
		scanErr := c.scanPrefix("counts", []byte{prefix}, func(key, value []byte) error {
			t, parseErr := index.ParseTally(value)
			if parseErr != nil {
				c.addProblem("count: key %x: %v", key, parseErr)
			}
			if graph, _, ok := keys.ParsePair(key); ok && prefix != keys.PrefixSource && !c.keepsGraph(graph) {
				return nil
			}
			stored++
			if inMemory, _ := c.head.catalogue.Tallies.Get(string(key)); inMemory.Count != t.Count || inMemory.Revision != t.Revision {
				c.addProblem("count: key %x is {%d %d} in the index and {%d %d} in memory", key, t.Count, t.Revision, inMemory.Count, inMemory.Revision)
			}
			for ; more && err == nil && at.key < string(key); at, err, more = counted() {
				c.addProblem("count: key %x is missing, there are %d", at.key, at.n)
			}
			if err != nil {
				return err
			}
			var n uint64
			if more && at.key == string(key) {
				n = at.n
				at, err, more = counted()
			}
			if t.Count != n {
				c.addProblem("count: key %x says %d, there are %d", key, t.Count, n)
			}
			return err
		})
		if scanErr != nil {
			return scanErr
		}
	}
	for ; more && err == nil; at, err, more = counted() {
		c.addProblem("count: key %x is missing, there are %d", at.key, at.n)
	}
	n := c.head.catalogue.Tallies.Len()
	for _, prefix := range index.CountPrefixes {
		if prefix == keys.PrefixSource {
			continue
		}
		c.head.catalogue.Each(prefix, ID{}, func(graph, _ ID, _ uint64) {
			if !c.keepsGraph(graph) { // it may be in removal
				n--
			}
		})
	}
	if n != stored {
		c.addProblem("counts: %d in the index, %d in memory", stored, n)
	}
	return errors.Join(err, c.counts.close())
}

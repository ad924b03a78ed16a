package kg

import (
	"context"
	"math"

	"koine/kg/internal/keys"
)

// LimitStatements is the Limit of the error that an update gets which would make
// a source back more than Options.MaxBacked statements.
const LimitStatements = "statements"

// Backed is how many statements the agent is a source of now, in all graphs but
// koine's own, and how many entries of journals say what it said (Parts). What it said under quarantine counts: it is stored. It is for the
// store's operator and the agent itself: others may not see all those graphs.
func (s *Store) Backed(agent AgentID) (uint64, error) {
	if s.isClosed() {
		return 0, errClosed()
	}
	p, err := s.pin(context.Background())
	if err != nil {
		return 0, err
	}
	defer s.unpin(p)
	id, known, err := dictionary{kv: p.kv, cache: s.cache}.id(agentTerm(CanonicalAgent(string(agent))))
	if !known || err != nil {
		return 0, err
	}
	return p.head.catalogue.backed(string(keys.Source(id.Number()))), nil
}

// MaxBacked is Options.MaxBacked.
func (s *Store) MaxBacked() uint64 { return s.options.MaxBacked }

// backed is the count of one source, by its key.
func (c *catalogue) backed(key string) uint64 {
	t, _ := c.tallies.Get(key)
	return t.count
}

// backers tells of how many sources there are statements, and the most that one
// of them backs.
func (c *catalogue) backers() (sources, most uint64) {
	c.tallies.Ascend(string([]byte{keys.PrefixSource}), func(key string, t tally) bool {
		if key[0] != keys.PrefixSource {
			return false
		}
		if t.count > 0 {
			sources++
			most = max(most, t.count)
		}
		return true
	})
	return sources, most
}

// backer is a source with the key of its count: most changes of a commit are of
// the same one.
type backer struct {
	source AgentID
	key    []byte
}

// countSources notes whose statement a change makes or takes away.
func (w *indexWriter) countSources(c *Change) error {
	switch {
	case w.uncounted || !isShared(c.Quad.Predicate, c.Quad.Graph):
		return nil
	case c.Op == Add:
		if _, had := findSource(c.Before, c.Assertion.Source); had {
			return nil
		}
		return w.countSource(c.Assertion.Source, 1)
	case len(c.After) > 0:
		return w.countSource(c.Assertion.Source, -1)
	}
	for i := range c.Before {
		if err := w.countSource(c.Before[i].Source, -1); err != nil {
			return err
		}
	}
	return nil
}

func (w *indexWriter) countSource(source AgentID, by int64) error {
	if w.backer.source != source {
		id, err := w.number(agentTerm(source)) // has one: it stands in an assertion
		if err != nil {
			return err
		}
		w.backer = backer{source, keys.Source(id.Number())}
	}
	w.deltas.add(w.backer.key, by)
	return nil
}

// withinShares refuses an update after which a source would back more than it
// may, and more than before. What is in this process is not bounded.
func (g *group) withinShares(tx *Tx) error {
	most := g.s.options.MaxBacked
	if most == 0 || tx.meta.Principal.Trusted() {
		return nil
	}
	for _, e := range tx.w.deltas.all() {
		if e.by <= 0 || e.key[0] != keys.PrefixSource {
			continue
		}
		held := g.catalogue.backed(e.key)
		if held+uint64(e.by) <= most {
			continue
		}
		g.s.overShare.add(1)
		number, _ := keys.ParseSource([]byte(e.key))
		source, err := tx.w.dict.agent(number)
		if err != nil {
			return err
		}
		return errOverShare("%s backs %d statements and may back %d: this update would add %d", source, held, most, e.by)
	}
	return nil
}

func errOverShare(format string, args ...any) *Error {
	e := Errorf(CodeLimitExceeded, format, args...)
	e.Limit = LimitStatements
	e.Hint = "remove statements of this source that are no longer needed, or ask the operator for a higher limit"
	return e
}

// countedKey is in an index that holds the counts by source, which those of
// earlier forms do not.
var countedKey = keys.Meta("counted by source, with journals")

// isCounted tells whether the index up to the marker holds the counts by source.
func isCounted(k kv, m marker) (bool, error) {
	if m.revision == 0 {
		return true, nil // there is nothing to count
	}
	return k.get(countedKey, func([]byte) error { return nil })
}

// countAll counts the statements of each source where the index lacks that: one
// of an earlier form, or made from a checkpoint. It reads all statements once,
// when the index has come up to the log and before anybody else uses it.
func (s *Store) countAll() error {
	if s.counted || s.refused.Load() != nil {
		return nil
	}
	h := s.head.Load()
	s.log.Info("counting the statements of each source")
	kv := s.newKV(math.MaxUint64)
	defer kv.close()
	progress, done := s.newProgress("counting the statements of each source", 0), uint64(0)
	counts := make(sourceCounts)
	shared := sharedGraphs{dict: dictionary{kv: kv, cache: s.cache}, generations: h.generations}
	cur := kv.scan([]byte{byte(keys.SPOG)})
	defer cur.close()
	for ; cur.valid(); cur.next() {
		ids, ok := keys.SPOG.Parse(cur.key())
		if !ok {
			return Errorf(CodeInternal, "a key of the index cannot be read: %x", cur.key())
		}
		is, err := shared.has(&ids)
		if err == nil && is {
			err = cur.value(counts.add)
		}
		if err != nil {
			return err
		}
		if done++; done%checkEvery == 0 {
			progress.step(done)
		}
	}
	if err := s.keepCounts(h, counts); err != nil {
		return err
	}
	s.counted = true
	progress.end(done)
	return nil
}

// keepCounts writes the counts to the index, and shows them.
func (s *Store) keepCounts(h *head, counts sourceCounts) error {
	c := h.catalogue.copy()
	var stale []string // left by a count that was cut short
	c.tallies.Ascend(string([]byte{keys.PrefixSource}), func(key string, _ tally) bool {
		if key[0] == keys.PrefixSource {
			stale = append(stale, key)
		}
		return key[0] == keys.PrefixSource
	})
	w := &indexTxn{db: s.db, at: uint64(h.revision)}
	put := func(key string, n uint64) {
		t := tally{n, h.revision}
		c.tallies.Set(key, t)
		w.set([]byte(key), t.encode())
	}
	for _, key := range stale {
		put(key, 0)
	}
	for key, n := range counts {
		put(key, n)
	}
	w.set(countedKey, []byte{1})
	if err := w.commit(); err != nil {
		return err
	}
	counted := *h
	counted.catalogue = c
	s.head.Store(&counted)
	return nil
}

// sourceCounts are counts by the keys of sources.
type sourceCounts map[string]uint64

// add counts the sources of a value of SPOG.
func (c sourceCounts) add(value []byte) error {
	_, err := parseState(value, func(number uint64) (AgentID, error) {
		c[string(keys.Source(number))]++
		return Anonymous, nil // its name is of no account
	})
	return err
}

// sharedGraphs remembers which graphs are koine's own, and which of these journals.
type sharedGraphs struct {
	dict dictionary
	// generations are those of the newest revision: only what counts then is shared.
	generations *generations
	parts       ID // zero until it is asked for
	known       map[ID]shareOf
}

// shareOf is what of a graph counts for the share of its sources.
type shareOf uint8

const (
	shareNone shareOf = iota
	shareParts
	shareAll
)

// has tells whether the statement counts.
func (g *sharedGraphs) has(q *IDQuad) (bool, error) {
	if q.Graph == keys.DefaultGraph && g.generations == nil {
		return true, nil
	}
	share, known := g.known[q.Graph]
	if !known {
		tenure, counts := g.generations.tenureOf(q.Graph)
		t, err := g.dict.term(g.generations.name(q.Graph))
		if err != nil {
			return false, err
		}
		switch {
		case !counts || tenure.until != 0:
		case isShared(Term{}, t):
			share = shareAll
		case isShared(Parts, t):
			share = shareParts
		}
		if g.known == nil {
			g.known = make(map[ID]shareOf)
			if g.parts, _, err = g.dict.id(Parts); err != nil {
				return false, err
			}
		}
		g.known[q.Graph] = share
	}
	return share == shareAll || share == shareParts && q.Predicate == g.parts, nil
}

package kg

import (
	"context"
	"math"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// LimitStatements is the Limit of the error for an update that exceeds the statement quota
// (Options.MaxSourceStatements).
const LimitStatements = "statements"

// SourceStatements returns the number of statements that the agent is a source of now, outside
// koine's own graphs, plus its journal entries with content (Parts). Statements of an agent in
// quarantine count: they are stored. The result is for the operator and the agent itself:
// others may not see all those graphs.
func (s *Store) SourceStatements(agent AgentID) (uint64, error) {
	if s.isClosed() {
		return 0, base.ErrClosed()
	}
	p, err := s.pin(context.Background())
	if err != nil {
		return 0, err
	}
	defer s.unpin(p)
	id, known, err := s.dictionary(p.kv).ID(base.AgentTerm(CanonicalAgent(string(agent))))
	if !known || err != nil {
		return 0, err
	}
	return p.head.catalogue.SourceCount(string(keys.Source(id.Number()))), nil
}

// MaxSourceStatements returns Options.MaxSourceStatements.
func (s *Store) MaxSourceStatements() uint64 { return s.options.MaxSourceStatements }

// checkQuotas refuses an update that raises a source above its statement quota. Updates of
// trusted principals are not bounded.
func (g *group) checkQuotas(tx *Tx) error {
	most := g.s.options.MaxSourceStatements
	if most == 0 || tx.meta.Principal.Trusted() {
		return nil
	}
	for _, e := range tx.w.Deltas.All() {
		if e.By <= 0 || e.Key[0] != keys.PrefixSource {
			continue
		}
		held := g.catalogue.SourceCount(e.Key)
		if held+uint64(e.By) <= most {
			continue
		}
		g.s.overQuota.Add(1)
		number, _ := keys.ParseSource([]byte(e.Key))
		source, err := tx.w.Dictionary.Agent(number)
		if err != nil {
			return err
		}
		return errOverQuota("%s backs %d statements and may back %d: this update would add %d", source, held, most, e.By)
	}
	return nil
}

func errOverQuota(format string, args ...any) *Error {
	e := Errorf(CodeLimitExceeded, format, args...)
	e.Limit = LimitStatements
	e.Hint = "remove statements of this source that are no longer needed, or ask the operator for a higher limit"
	return e
}

// countSourceStatements counts the statements of each source if the index lacks the counts: it
// has an earlier form or comes from a checkpoint. It reads all statements once, after the
// index has caught up with the log and before the store is used.
func (s *Store) countSourceStatements() error {
	if s.counted || s.refused.Load() != nil {
		return nil
	}
	h := s.head.Load()
	s.log.Info("counting the statements of each source")
	kv := s.newKV(math.MaxUint64)
	defer kv.Close()
	progress, done := s.newProgress("counting the statements of each source", 0), uint64(0)
	counts := make(index.SourceCounts)
	shared := index.QuotaGraphs{Dictionary: s.dictionary(kv), Generations: h.generations}
	cur := kv.Scan([]byte{byte(keys.SPOG)})
	defer cur.Close()
	for ; cur.Valid(); cur.Next() {
		ids, ok := keys.SPOG.Parse(cur.Key())
		if !ok {
			return Errorf(CodeInternal, "a key of the index cannot be read: %x", cur.Key())
		}
		is, err := shared.Counts(&ids)
		if err == nil && is {
			err = cur.Value(counts.Add)
		}
		if err != nil {
			return err
		}
		if done++; done%index.PaceInterval == 0 {
			progress.report(done)
		}
	}
	if err := s.keepCounts(h, counts); err != nil {
		return err
	}
	s.counted = true
	progress.reportEnd(done)
	return nil
}

// keepCounts writes the counts to the index and makes them visible.
func (s *Store) keepCounts(h *head, counts index.SourceCounts) error {
	c := h.catalogue.Copy()
	var stale []string // left by an interrupted count
	c.Tallies.Ascend(string([]byte{keys.PrefixSource}), func(key string, _ index.Tally) bool {
		if key[0] == keys.PrefixSource {
			stale = append(stale, key)
		}
		return key[0] == keys.PrefixSource
	})
	w := &indexTxn{db: s.db, at: uint64(h.revision)}
	put := func(key string, n uint64) {
		t := index.Tally{Count: n, Revision: h.revision}
		c.Tallies.Set(key, t)
		w.setKey([]byte(key), t.Encode())
	}
	for _, key := range stale {
		put(key, 0)
	}
	for key, n := range counts {
		put(key, n)
	}
	w.setKey(index.SourceCountsKey, []byte{1})
	if err := w.commit(); err != nil {
		return err
	}
	counted := *h
	counted.catalogue = c
	s.head.Store(&counted)
	return nil
}

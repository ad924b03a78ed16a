package kg

import "slices"

// replayBulkFrom is from how many changes on a commit that only adds statements is applied
// in bulk when the log is applied to the index: those of loads are.
const replayBulkFrom = 2 * onlineCommitQuads

// isLoads tells whether a commit adds statements that nobody backed before, as most of a
// load's do, and nothing else.
func isLoads(c *Commit) bool {
	return len(c.Changes) >= replayBulkFrom && c.IdempotencyKey == "" && c.Written == nil && c.Replaced == nil && !slices.ContainsFunc(c.Changes, func(ch Change) bool {
		a := &ch.Assertion
		return ch.Op != Add || len(ch.Before) > 0 || len(ch.Replaces) > 0 || IsOwnGraph(ch.Quad.Graph) ||
			!a.plain() || a.Revision != c.Revision || a.Source != c.Changes[0].Assertion.Source || !a.Time.Equal(c.Changes[0].Assertion.Time)
	})
}

// replayInBulk applies a commit of a load, if it is one and can be applied so. What was
// applied before is in the index then.
func (r *replayer) replayInBulk(c *Commit) (bool, error) {
	s := r.s
	if s.inPlace() || r.full || r.ordinary || !s.counted || !isLoads(c) {
		return false, r.endBulk()
	}
	if r.bulk == nil {
		if err := r.flush(); err != nil || r.full {
			return false, err
		}
		r.bulk = newBulk(s, Meta{}, LoadOptions{})
		r.bulk.replays = true
	}
	err := r.bulk.replay(c)
	if err == nil && r.bulk.full() {
		err = r.endBulk()
	}
	return true, err
}

// endBulk has what was applied in bulk in the index.
func (r *replayer) endBulk() error {
	b := r.bulk
	if b == nil {
		return nil
	}
	r.bulk = nil
	b.close()
	defer b.index.close()
	hash, err := r.s.wal.Hash(uint64(b.revision))
	if err != nil {
		return err
	}
	m := marker{r.s.dir.epoch, b.revision, b.next, b.time.UnixMilli(), hash}
	if err := b.index.write(b.catalogue, m, nil); err != nil {
		return err
	}
	r.s.publish(&head{b.revision, b.time, b.catalogue, r.s.head.Load().generations, m.nextNumber, hash})
	r.renew()
	return nil
}

// renew begins anew on top of what the index has.
func (r *replayer) renew() {
	r.base.close()
	next := r.s.newReplay()
	next.keeps, next.ordinary = r.keeps, r.ordinary
	*r = *next
}

// giveUpBulk lets go what was applied in bulk and is not in the index.
func (r *replayer) giveUpBulk() {
	if r.bulk != nil {
		r.bulk.close()
		r.bulk.index.close()
		r.bulk = nil
	}
}

// replay takes in a commit that the log has.
func (b *bulk) replay(c *Commit) error {
	for i := range c.Changes {
		ch := &c.Changes[i]
		row := bulkQuad{commit: uint32(len(b.index.values))}
		for _, part := range quadParts(&ch.Quad, &row.ids) {
			id, err := b.id(*part.term)
			if err != nil {
				return err
			}
			*part.id = id
		}
		row.ids.Graph = b.s.head.Load().generations.current(row.ids.Graph)
		source, err := b.id(agentTerm(ch.Assertion.Source))
		if err != nil {
			return err
		}
		b.index.chunk.quads = append(b.index.chunk.quads, row)
		b.deltas.count(&ch.Quad, row.ids, 1)
		b.countSource(source)
	}
	value, err := b.encode(state{c.Revision, c.Changes[0].After})
	if err != nil {
		return err
	}
	b.index.values = append(b.index.values, value)
	b.catalogue.add(b.deltas, c.Revision, func(string, tally) {})
	b.deltas.clear()
	b.revision, b.time = c.Revision, c.Time
	b.index.spillIfFull()
	return nil
}

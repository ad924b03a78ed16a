package channels

import "koine/kg"

// positionCounter assigns positions to the messages of a commit.
type positionCounter struct {
	revision kg.Revision
	index    uint32
}

// nextPosition returns the position after a message; last reports that it is the last
// one of its commit.
func (t *positionCounter) nextPosition(epoch kg.Epoch, r kg.Revision, last bool) kg.Position {
	if t.revision != r {
		*t = positionCounter{revision: r}
	} else {
		t.index++
	}
	if last {
		return kg.Position{Epoch: epoch, Revision: r, Index: kg.EndOfCommit}
	}
	return kg.Position{Epoch: epoch, Revision: r, Index: t.index}
}

// replayStored yields up to most stored messages after the feed's position. more
// reports that it did not reach the end.
func (f *Feed) replayStored(most int, tell func(Delivery) bool) (more bool, err error) {
	snapshot, err := f.service.store.View(f.ctx, kg.View{Principal: f.by.ReaderPrincipal(f.agent), AllGraphs: true})
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	m, err := f.newMerge(snapshot)
	if err != nil {
		return false, err
	}
	from, count := f.position, positionCounter{}
	for range most {
		now, err := m.next()
		if err != nil {
			return false, err
		}
		if now == nil {
			if end := snapshot.Position(); end.Compare(f.position) > 0 {
				f.position = end
			}
			return false, nil
		}
		position := count.nextPosition(from.Epoch, now.Revision, m.nextRevision() != now.Revision)
		if now.Revision == from.Revision && count.index <= from.Index {
			continue // yielded before
		}
		f.position = position
		if f.include(now) && !tell(Delivery{now, position}) {
			return true, nil
		}
	}
	return true, nil
}

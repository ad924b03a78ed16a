package channels

import "koine/kg"

// positionCounter counts the messages of one commit, for their positions.
type positionCounter struct {
	revision kg.Revision
	index    uint32
}

// nextPosition is that behind a message, which is the last of its commit or not.
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

// replayStored tells what stands behind the feed's position, of at most so many messages.
// more tells that it did not come to the end.
func (f *Feed) replayStored(most int, tell func(Delivery) bool) (more bool, err error) {
	snapshot, err := f.service.store.View(f.ctx, kg.View{Principal: f.by.readerPrincipal(f.agent), AllGraphs: true})
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
			continue // was told before
		}
		f.position = position
		if f.include(now) && !tell(Delivery{now, position}) {
			return true, nil
		}
	}
	return true, nil
}

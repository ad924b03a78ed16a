package channels

import "koine/kg"

// told counts the messages of one commit, for their positions.
type told struct {
	revision kg.Revision
	index    uint32
}

// position is that behind a message, which is the last of its commit or not.
func (t *told) position(epoch kg.Epoch, r kg.Revision, last bool) kg.Position {
	if t.revision != r {
		*t = told{revision: r}
	} else {
		t.index++
	}
	if last {
		return kg.Position{Epoch: epoch, Revision: r, Index: kg.EndOfCommit}
	}
	return kg.Position{Epoch: epoch, Revision: r, Index: t.index}
}

// replay tells what stands behind the feed's position, of at most so many messages.
// more tells that it did not come to the end.
func (f *Feed) replay(most int, tell func(Delivery) bool) (more bool, err error) {
	snapshot, err := f.service.store.View(f.ctx, kg.View{Principal: f.by.reader(f.agent), AllGraphs: true})
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	m, err := f.merge(snapshot)
	if err != nil {
		return false, err
	}
	from, count := f.at, told{}
	for range most {
		now, err := m.next()
		if err != nil {
			return false, err
		}
		if now == nil {
			if end := snapshot.Position(); end.Compare(f.at) > 0 {
				f.at = end
			}
			return false, nil
		}
		position := count.position(from.Epoch, now.Revision, m.revision() != now.Revision)
		if now.Revision == from.Revision && count.index <= from.Index {
			continue // was told before
		}
		f.at = position
		if f.keep(now) && !tell(Delivery{now, position}) {
			return true, nil
		}
	}
	return true, nil
}

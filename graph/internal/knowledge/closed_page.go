package knowledge

import (
	"encoding/binary"
	"iter"

	"koine/graph/internal/fault"
	"koine/internal/operation"
	"koine/kg"
)

// closeStatements prepares a page of the statements that match the pattern to
// be filled by a cutter. known is false if nothing can match.
func (l *loader) closeStatements(g *page, p kg.IDPattern, known bool, after *kg.IDQuad, bound CursorBound) (err error) {
	c := g.connection
	if c.total && known {
		if err := l.countInto(g, func() (uint64, error) { return c.statementList.Count(l.snapshot, p) }); err != nil {
			return err
		}
	}
	var begin []byte
	if after != nil {
		begin = quadKey(*after)
	}
	var f feed = l.statementFeed(c, p, after)
	if !known {
		f = noFeed{}
	}
	peek := c.statementList.Match.MatchesAll() && len(c.statementList.Order) == 0
	return l.closePage(g, f, peek || !known, statementKeyBytes, l.cursorSealer(bound, begin))
}

// closeEntities is closeStatements for a page of entities.
func (l *loader) closeEntities(c *connection, after *kg.ID) (*page, error) {
	g := &page{connection: c}
	if c.total {
		if err := l.countInto(g, func() (uint64, error) { return c.entityList.Count(l.snapshot) }); err != nil {
			return nil, err
		}
	}
	if err := l.groupEntities(c, g); err != nil {
		return nil, unsplittableError(err)
	}
	var begin []byte
	if after != nil {
		begin = after[:]
	}
	return g, l.closePage(g, l.entityFeed(c, after), false, entityKeyBytes, l.cursorSealer(c.bound, begin))
}

// countInto counts the elements of a page's list, with at most half of the
// statements that the budget has left: the others are for the page. The total is
// null, with a hint, if they do not suffice.
func (l *loader) countInto(g *page, count func() (uint64, error)) (err error) {
	m := &l.run.Meter
	left, limited := l.snapshot.ReadsLeft()
	if limited {
		begin := m.Read()
		m.Limit(max(begin+left/2, 1))
		defer m.Limit(max(begin+left, 1))
	}
	if g.total, err = count(); !fault.IsSpent(err) {
		return err
	}
	l.leaveUncounted(g)
	return nil
}

// cursorSealer returns the function that makes the cursors of a page beginning after
// a key.
func (l *loader) cursorSealer(bound CursorBound, begin []byte) func(key []byte) string {
	return func(key []byte) string {
		if key == nil {
			key = begin
		}
		return l.reader.SealCursor(l.snapshot, bound, key)
	}
}

// noFeed is an empty feed.
type noFeed struct{}

func (noFeed) next() (bool, error)    { return false, nil }
func (noFeed) load() (element, error) { return element{}, nil }
func (noFeed) lastKey() []byte        { return nil }
func (noFeed) limitToOne()            {}
func (noFeed) close()                 {}

// closeChanges is closeStatements for a page of changes. The events are
// already known: finding them reads the log and no statements.
func (l *loader) closeChanges(c *changeList, g *page, events []operation.Event, part kg.LogRange) error {
	begin := part.After
	if c.backward {
		begin = part.Until
	}
	f := &scanFeed[int]{ // yields indexes into events
		scan: func(behind []byte, _ func(int) bool) iter.Seq2[int, error] {
			from := 0
			if behind != nil {
				from = 1 + int(binary.BigEndian.Uint32(behind))
			}
			return func(yield func(int, error) bool) {
				for i := from; i < len(events) && yield(i, nil); i++ {
				}
			}
		},
		eventOnly: func(i int) bool { return events[i].Replaced() != nil },
		key:       func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) },
		read: func(i int) (func(*writer, int), error) {
			one := &page{}
			err := l.shareChanges(c, events[i:i+1], []*page{one}, []int{0, 1})
			return func(w *writer, selection int) { one.node(w, selection, 0) }, err
		},
	}
	return l.closePage(g, f, true, 4, func(key []byte) string {
		at := begin
		if key != nil && len(events) > 0 {
			i := int(binary.BigEndian.Uint32(key))
			if at = events[i].Position; c.backward {
				at = events[i].Changes[0].Start()
			}
		}
		return l.reader.Store.FormatPosition(at)
	})
}

// closeDifferences is closeStatements for a page of differences.
func (l *loader) closeDifferences(c *diffList, g *page, p kg.IDPattern, known bool, after *kg.IDQuad) error {
	f := feed(noFeed{})
	if known {
		f = l.differenceFeed(c, g.from, p, after)
	}
	begin := differenceKey(g.from, kg.IDQuad{})
	if after != nil {
		begin = differenceKey(g.from, *after)
	}
	return l.closePage(g, f, !known, len(begin), l.cursorSealer(c.bound, begin))
}

func (l *loader) differenceFeed(c *diffList, from kg.Revision, p kg.IDPattern, after *kg.IDQuad) feed {
	return &scanFeed[kg.Difference]{
		scan: func(behind []byte, looked func(kg.Difference) bool) iter.Seq2[kg.Difference, error] {
			after := after
			if behind != nil {
				q := parseQuadKey(behind[8:])
				after = &q
			}
			return func(yield func(kg.Difference, error) bool) {
				holds := c.statementList.Match.Tester(l.snapshot)
				for d, err := range l.snapshot.Diff(from, p, after) {
					ok := false
					if err == nil {
						ok, err = holdsEither(holds, &d)
					}
					if err == nil && !ok {
						if !looked(d) {
							return
						}
					} else if !yield(d, err) || err != nil {
						return
					}
				}
			}
		},
		key: func(d kg.Difference) []byte { return differenceKey(from, d.IDQuad) },
		read: func(d kg.Difference) (func(*writer, int), error) {
			one := &page{from: from}
			err := l.loadDifferences(c, one, []kg.Difference{d})
			return func(w *writer, selection int) { one.node(w, selection, 0) }, err
		},
	}
}

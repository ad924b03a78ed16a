package knowledge

import (
	"iter"
	"runtime/debug"

	"koine/graph/internal/fault"
	"koine/kg"
)

// feed returns the elements of a list one at a time, in order. A page that a
// budget may end anywhere reads from one. A cutter closes it.
type feed interface {
	// next finds the next element and reports whether there is one. After
	// CodeBudgetExceeded it may be called again and continues where it
	// stopped.
	next() (bool, error)
	// load reads the element that next found last. The element's own pages
	// stay closed.
	load() (element, error)
	// lastKey returns the key of the last element examined before the one that
	// next found, or before next failed; nil for none.
	lastKey() []byte
	// limitToOne makes next return after examining one more element, even if it does
	// not match.
	limitToOne()
	close()
}

// element is a loaded element of a list.
type element struct {
	key   []byte // for cursors
	write func(w *writer, selection int)
	// eventOnly reports that only a field `events` lists it.
	eventOnly bool
}

// scanFeed is a feed over a scan.
type scanFeed[K any] struct {
	// scan yields the elements after a key (nil: from the beginning of the
	// page). It calls looked for the other elements that it examined and ends
	// when looked returns false.
	scan func(behind []byte, looked func(K) bool) iter.Seq2[K, error]
	key  func(K) []byte
	read func(K) (write func(w *writer, selection int), err error)
	// eventOnly reports whether only a field `events` lists the element; nil
	// for none.
	eventOnly func(K) bool

	pull        func() (K, error, bool)
	stop        func()
	found       *K
	examinedKey []byte
	limited     bool
}

func (f *scanFeed[K]) next() (bool, error) {
	if f.found != nil {
		f.examinedKey, f.found = f.key(*f.found), nil
	}
	if f.pull == nil {
		f.pull, f.stop = iter.Pull2(guardPanics(f.scan(f.examinedKey, func(k K) bool { f.examinedKey = f.key(k); return !f.limited })))
	}
	k, err, ok := f.pull()
	if err != nil {
		f.close()
		return false, err
	}
	if ok {
		f.found = &k
	}
	return ok, nil
}

// guardPanics yields a panic of the scan as its last error: iter.Pull2 would
// re-panic elsewhere and lose the stack.
func guardPanics[K any](scan iter.Seq2[K, error]) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		wanted := true
		defer func() {
			if p := recover(); p != nil && wanted {
				var none K
				yield(none, &fault.Panic{Value: p, Stack: debug.Stack()})
			}
		}()
		scan(func(k K, err error) bool {
			wanted = yield(k, err)
			return wanted
		})
	}
}

func (f *scanFeed[K]) load() (element, error) {
	write, err := f.read(*f.found)
	return element{key: f.key(*f.found), write: write, eventOnly: f.eventOnly != nil && f.eventOnly(*f.found)}, err
}

func (f *scanFeed[K]) lastKey() []byte { return f.examinedKey }

func (f *scanFeed[K]) limitToOne() { f.limited = true }

func (f *scanFeed[K]) close() {
	if f.stop != nil {
		f.stop()
		f.pull, f.stop = nil, nil
	}
}

// statementFeed returns the statements of a connection that match the pattern,
// after `after`.
func (l *loader) statementFeed(c *connection, p kg.IDPattern, after *kg.IDQuad) feed {
	return &scanFeed[kg.Row]{
		scan: func(behind []byte, looked func(kg.Row) bool) iter.Seq2[kg.Row, error] {
			from := after
			if behind != nil {
				q := parseQuadKey(behind)
				from = &q
			}
			found := c.statementList.Scan(l.snapshot, p, from, looked)
			if len(c.statementList.Order) > 0 {
				return unsplittable(found)
			}
			return found
		},
		key: rowKey,
		read: func(row kg.Row) (func(*writer, int), error) {
			nodes := make([][]statementNode, len(c.statements))
			for i, selection := range c.statements {
				var err error
				if nodes[i], err = l.loadStatements(selection, []kg.Row{row}); err != nil {
					return nil, err
				}
			}
			return func(w *writer, selection int) { nodes[selection][0].write(w) }, nil
		},
	}
}

// entityFeed returns the entities of a connection, after `after`.
func (l *loader) entityFeed(c *connection, after *kg.ID) feed {
	return &scanFeed[kg.ID]{
		scan: func(behind []byte, looked func(kg.ID) bool) iter.Seq2[kg.ID, error] {
			from := after
			if behind != nil {
				from = new(kg.ID)
				copy(from[:], behind)
			}
			found := c.entityList.Scan(l.snapshot, from, looked)
			if len(c.entityList.Order) > 0 {
				return unsplittable(found)
			}
			return found
		},
		key: idKey,
		read: func(id kg.ID) (func(*writer, int), error) {
			nodes := make([][]*entityNode, len(c.entities))
			for i, selection := range c.entities {
				var err error
				if nodes[i], err = l.loadEntities(selection, []entityRef{{id: id}}); err != nil {
					return nil, err
				}
			}
			return func(w *writer, selection int) { nodes[selection][0].write(w) }, nil
		},
	}
}

// unsplittable yields the elements of a page that only a full scan finds.
func unsplittable[K any](found iter.Seq2[K, error]) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		for k, err := range found {
			if !yield(k, unsplittableError(err)) {
				return
			}
		}
	}
}

// unsplittableError converts the error of a result that cannot be cut when the budget is
// spent. Unlike CodeBudgetExceeded of a scan, a budgetError fails the field.
func unsplittableError(err error) error {
	if !fault.IsSpent(err) {
		return err
	}
	return &fault.BudgetError{Message: "the budget of statements is too small: an order, totalCount and groups need all elements"}
}

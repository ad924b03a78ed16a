package kg

import (
	"bytes"
	"slices"

	"koine/kg/internal/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// scanner walks the statements of a pattern in the order of one index. A read
// of an older revision merges two walks: what stands and was so already then,
// and the intervals of the past that cover the revision.
type scanner struct {
	s       *Snapshot
	pattern IDQuad
	states  bool // decode the assertions of every row
	// versions makes the walk one over all that ever stood: each interval of the
	// past is a row, before what stands of the same quad.
	versions bool
	after    *IDQuad

	order   keys.Order
	prefix  []byte
	present index.Cursor
	past    index.Cursor // nil when the newest revision is read
	// row is told with the graph's name; graph is the id in the index, name that of the
	// graph's, and tenure when it counts.
	name   ID
	tenure index.Tenure
	// indexed takes the pattern's graph for one of the index, whichever revision it
	// counts at: for walks over versions.
	indexed bool
	// predicates still to come, for a literal object without a predicate,
	// which is found through POSG once for each.
	predicates []ID

	row   Row
	err   error
	steps int
	// the graph that was asked about last, and the answer: most statements of a
	// scan are in the same
	graph      ID
	predicate  ID // the same, where some are hidden
	graphShown bool

	// the state that was decoded last, and from what
	state      base.State
	stateBytes []byte
	// the source that was decoded last: most statements of a scan have the same
	sourceNumber uint64
	source       AgentID
	noted        AgentID // was noted last as a source of what is read
}

func newScanner(s *Snapshot, pattern IDQuad, after *IDQuad, states bool) *scanner {
	sc := &scanner{s: s, pattern: pattern, after: after, states: states}
	sc.startScan()
	return sc
}

// startScan opens the scan of the pattern.
func (sc *scanner) startScan() {
	if !sc.resolveGenerations() {
		return
	}
	if !keys.NeedsPredicates(sc.pattern) {
		sc.openCursors(sc.pattern)
		return
	}
	sc.predicates, sc.err = sc.s.knownPredicates(sc.pattern.Graph)
	if sc.after != nil {
		i, _ := slices.BinarySearchFunc(sc.predicates, sc.after.Predicate, index.CompareIDs)
		sc.predicates = sc.predicates[i:]
	}
	sc.nextPredicate()
}

// resolveGenerations puts ids of the index in the place of graphs; false where the graph then
// held nothing.
func (sc *scanner) resolveGenerations() (ok bool) {
	if sc.s.generations == nil || sc.indexed {
		return true
	}
	if sc.pattern.Graph, ok = sc.s.toIndex(sc.pattern.Graph); !ok {
		return false
	}
	if sc.after != nil {
		after := *sc.after
		if after.Graph, ok = sc.s.toIndex(after.Graph); !ok {
			after.Graph = sc.after.Graph
		}
		sc.after = &after
	}
	return true
}

// nextPredicate goes on to the next predicate, false when there is none.
func (sc *scanner) nextPredicate() bool {
	if len(sc.predicates) == 0 {
		return false
	}
	sc.close()
	p := sc.pattern
	p.Predicate = sc.predicates[0]
	sc.predicates = sc.predicates[1:]
	sc.openCursors(p)
	return true
}

func (sc *scanner) openCursors(p IDQuad) {
	sc.s.scans.Add(1)
	sc.order = keys.Choose(p)
	sc.prefix, _ = sc.order.AppendPrefix(nil, p)
	sc.present = sc.s.kv.Scan(sc.prefix)
	if sc.s.past || sc.versions {
		prefix := bytes.Clone(sc.prefix)
		prefix[0] = byte(sc.order.Past())
		sc.past = sc.s.kv.Scan(prefix)
	}
	if sc.after == nil {
		return
	}
	from := sc.order.Append(nil, *sc.after)
	if !bytes.HasPrefix(from, sc.prefix) {
		return // of a predicate before this one
	}
	sc.present.Seek(append(from, 0))
	if sc.past != nil {
		from[0] = byte(sc.order.Past())
		sc.past.Seek(append(from, bytes.Repeat([]byte{0xff}, keys.PastKeySize-keys.QuadKeySize)...))
	}
	sc.after = nil
}

func (sc *scanner) close() {
	if sc.present != nil {
		sc.present.Close()
		sc.present = nil
	}
	if sc.past != nil {
		sc.past.Close()
		sc.past = nil
	}
}

// next moves to the next row that is shown.
func (sc *scanner) next() bool {
	for sc.err == nil && sc.present != nil {
		if sc.steps++; sc.steps%index.CheckEvery == 0 {
			if sc.err = sc.s.waitForPace(); sc.err != nil {
				return false
			}
		}
		pastFirst, any := sc.pickSide()
		switch {
		case !any:
			if !sc.nextPredicate() {
				return false
			}
		case pastFirst:
			shown := sc.takePast()
			sc.past.Next()
			if shown {
				return true
			}
		default:
			shown := sc.takePresent()
			sc.present.Next()
			if shown {
				return true
			}
		}
	}
	return false
}

// pickSide says on which side the next key is.
func (sc *scanner) pickSide() (pastFirst, any bool) {
	presentValid := sc.present.Valid()
	if sc.past == nil || !sc.past.Valid() {
		return false, presentValid
	}
	if !presentValid {
		return true, true
	}
	c := bytes.Compare(sc.past.Key()[1:keys.QuadKeySize], sc.present.Key()[1:])
	return c < 0 || c == 0 && sc.versions, true
}

func (sc *scanner) takePresent() bool {
	q, ok := sc.order.Parse(sc.present.Key())
	if !ok {
		sc.err = Errorf(CodeInternal, "a key of the index cannot be read: %x", sc.present.Key())
		return false
	}
	if !keys.Matches(sc.pattern, q) || !sc.admitsRow(&q) {
		return false
	}
	sc.row = Row{IDQuad: q}
	if sc.states || sc.past != nil {
		return sc.decodeState(sc.present, sc.order == keys.SPOG) && sc.err == nil
	}
	sc.row.Graph = sc.name
	sc.err = sc.s.countRead()
	return sc.err == nil
}

func (sc *scanner) takePast() bool {
	key := sc.past.Key()
	from, to, ok := keys.Interval(key)
	q, parsed := sc.order.Past().Parse(key)
	if !ok || !parsed {
		sc.err = Errorf(CodeInternal, "a key of the index cannot be read: %x", key)
		return false
	}
	if sc.versions {
		return sc.takeVersion(q, from, to)
	}
	at := uint64(sc.s.position.Revision)
	if at < from || at >= to || !keys.Matches(sc.pattern, q) || !sc.admitsRow(&q) || sc.isForgotten(sc.name, to) {
		return false
	}
	sc.row = Row{IDQuad: q, from: Revision(from), to: Revision(to)}
	return sc.decodeState(sc.past, sc.order == keys.SPOG) && sc.err == nil
}

// admitsRow is that of the snapshot; an error ends the scan.
func (sc *scanner) admitsRow(q *IDQuad) bool {
	if q.Graph != sc.graph || sc.s.hides != nil && q.Predicate != sc.predicate {
		sc.enterGraph(q)
	}
	return sc.graphShown
}

// enterGraph finds out about a graph, or a predicate in it, that the row before was not of.
func (sc *scanner) enterGraph(q *IDQuad) {
	sc.name, sc.graphShown = q.Graph, true
	if sc.s.generations != nil {
		if q.Graph != sc.graph {
			sc.stateBytes = sc.stateBytes[:0] // the same bytes may say something else
		}
		if sc.indexed {
			sc.tenure, sc.graphShown = sc.s.generations.TenureOf(q.Graph)
			sc.name = sc.tenure.Graph
		} else {
			sc.name, sc.graphShown = sc.s.currentGraph(q.Graph)
		}
	}
	if sc.graphShown {
		sc.graphShown, sc.err = sc.s.admitsPlace(q.Predicate, sc.name)
	}
	sc.graph, sc.predicate = q.Graph, q.Predicate
}

// decodeState reads the state of the row, from the cursor where it holds it, and
// tells whether the view shows any of it.
func (sc *scanner) decodeState(c index.Cursor, here bool) bool {
	var st base.State
	if here {
		sc.err = c.Value(func(v []byte) (err error) {
			if len(v) > 0 && bytes.Equal(v, sc.stateBytes) {
				st = sc.state // as for most statements of one commit
				return nil
			}
			if st, err = base.ParseState(v, sc.agentOf); err == nil {
				sc.s.generations.Settle(&st, sc.row.Graph)
				sc.state, sc.stateBytes = st, append(sc.stateBytes[:0], v...)
			}
			return err
		})
	} else {
		st, sc.err = sc.s.loadIndexed(sc.row)
		if sc.versions && CodeOf(sc.err) == CodeRevisionGone {
			sc.err = nil
			return false // a version that is not kept any more
		}
	}
	if sc.err != nil {
		return false
	}
	if sc.row.to == 0 && st.Since > sc.s.position.Revision && sc.past != nil {
		return false // it has stood like this only later
	}
	if sc.row.to == 0 {
		sc.row.from = st.Since
	}
	sc.row.Graph = sc.name
	sc.row.shown = sc.s.visibleAssertions(sc.row.Graph, st.Assertions)
	if len(sc.row.shown) == 0 {
		return false
	}
	if sc.err = sc.s.countRead(); sc.err != nil {
		return false
	}
	sc.noteSources()
	return true
}

// noteSources notes whose assertions are shown, once for a run of the same.
func (sc *scanner) noteSources() {
	if list := sc.row.shown; len(list) != 1 || list[0].Source != sc.noted {
		sc.noted = list[0].Source
		sc.s.noteSources(list)
	}
}

// agentOf is the agent of a dictionary number.
func (sc *scanner) agentOf(number uint64) (AgentID, error) {
	if number == sc.sourceNumber {
		return sc.source, nil
	}
	a, err := sc.s.dict.Agent(number)
	if err == nil {
		sc.sourceNumber, sc.source = number, a
	}
	return a, err
}

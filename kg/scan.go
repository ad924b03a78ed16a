package kg

import (
	"bytes"
	"slices"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// scanner walks the statements of a pattern in the order of one index. For an older revision
// it merges two walks: current statements that already held then, and the past intervals that
// cover the revision.
type scanner struct {
	s       *Snapshot
	pattern IDQuad
	states  bool // decode the assertions of each row
	// versions walks over all history: each past interval is a row, before the current one of
	// the same quad.
	versions bool
	after    *IDQuad

	order   keys.Order
	prefix  []byte
	room    [keys.QuadKeySize]byte // of the first prefix
	present index.Cursor
	past    index.Cursor // nil for the newest revision
	// row has the id of the graph's name. graph is the graph's id in the index, name that of
	// its name, and tenure the revisions at which it is current.
	name   ID
	tenure index.Tenure
	// indexed means that the pattern's graph is an id of the index, at whichever revision it
	// is current: for walks over versions.
	indexed bool
	// objects restricts the walk to some objects, in an order that has them behind the prefix; nil:
	// it returns all. Statements that it leaves out are not counted as read.
	objects *objectWalk
	// quiet means that nothing is counted as read, and no source noted.
	quiet bool
	// predicates are still to be scanned, for a literal object without a predicate: POSG has
	// it once for each.
	predicates []ID

	row   Row
	err   error
	steps int
	// The last graph and its answer: most statements of a scan share the graph.
	graph      ID
	predicate  ID // the same, if statements are hidden
	graphShown bool

	// The state decoded last, and its encoding. readState is parseState, bound once.
	state      base.State
	stateBytes []byte
	readState  func([]byte) error
	// The source decoded last: most statements of a scan share it.
	sourceNumber uint64
	source       AgentID
	noted        AgentID // last one added to the snapshot's sources
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
		i, _ := slices.BinarySearchFunc(sc.predicates, sc.after.Predicate, ID.Compare)
		sc.predicates = sc.predicates[i:]
	}
	sc.nextPredicate()
}

// resolveGenerations replaces the pattern's graph by its generation at the revision. It
// returns false if the graph was empty then.
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

// nextPredicate opens the scan of the next predicate. It returns false if there is none.
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
	if !sc.quiet {
		sc.s.scans.Add(1)
	}
	sc.order = keys.Choose(p)
	sc.prefix, _ = sc.order.AppendPrefix(sc.roomForPrefix(), p)
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

// roomForPrefix returns memory for a prefix, which the cursors retain.
func (sc *scanner) roomForPrefix() []byte {
	if sc.prefix == nil {
		return sc.room[:0]
	}
	return nil
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

// next moves to the next visible row.
func (sc *scanner) next() bool {
	for sc.err == nil && sc.present != nil {
		if sc.steps++; sc.steps%index.PaceInterval == 0 {
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
		if sc.objects != nil && sc.objects.skip && sc.err == nil {
			sc.skipToRange()
		}
	}
	return false
}

// pickSide tells which of the two walks has the next key.
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
	if !keys.Matches(sc.pattern, q) || !sc.admitsObject(q.Object) || !sc.admitsRow(&q) {
		return false
	}
	sc.row = Row{IDQuad: q}
	if sc.states || sc.past != nil {
		return sc.decodeState(sc.present, sc.order == keys.SPOG) && sc.err == nil
	}
	sc.row.Graph = sc.name
	sc.countRead()
	return sc.err == nil
}

func (sc *scanner) countRead() {
	if !sc.quiet {
		sc.err = sc.s.countRead()
	}
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
	if at < from || at >= to || !keys.Matches(sc.pattern, q) || !sc.admitsObject(q.Object) || !sc.admitsRow(&q) || sc.isForgotten(sc.name, to) {
		return false
	}
	sc.row = Row{IDQuad: q, from: Revision(from), to: Revision(to)}
	return sc.decodeState(sc.past, sc.order == keys.SPOG) && sc.err == nil
}

// admitsRow is Snapshot.admitsGraph and admitsPredicate for the row. An error ends the scan.
func (sc *scanner) admitsRow(q *IDQuad) bool {
	if q.Graph != sc.graph || sc.s.hides != nil && q.Predicate != sc.predicate {
		sc.enterGraph(q)
	}
	return sc.graphShown
}

// enterGraph looks up the answers for a graph, or a predicate in it, that the row before did
// not have.
func (sc *scanner) enterGraph(q *IDQuad) {
	sc.name, sc.graphShown = q.Graph, true
	if sc.s.generations != nil {
		if q.Graph != sc.graph {
			sc.stateBytes = sc.stateBytes[:0] // the same bytes may mean another state in this graph
		}
		if sc.indexed {
			sc.tenure, sc.graphShown = sc.s.generations.TenureOf(q.Graph)
			sc.name = sc.tenure.Graph
		} else {
			sc.name, sc.graphShown = sc.s.currentGraph(q.Graph)
		}
	}
	if sc.graphShown {
		sc.graphShown, sc.err = sc.s.admitsPredicate(q.Predicate, sc.name)
	}
	sc.graph, sc.predicate = q.Graph, q.Predicate
}

// decodeState reads the state of the row, from the cursor if that has it, and reports whether
// the view shows any assertion.
func (sc *scanner) decodeState(c index.Cursor, here bool) bool {
	var st base.State
	if here {
		if sc.readState == nil {
			sc.readState = sc.parseState
		}
		sc.err = c.Value(sc.readState)
		st = sc.state
	} else {
		st, sc.err = sc.s.loadIndexed(sc.row)
		if sc.versions && CodeOf(sc.err) == CodeRevisionGone {
			sc.err = nil
			return false // a version that is no longer kept
		}
	}
	if sc.err != nil {
		return false
	}
	if sc.row.to == 0 && st.Since > sc.s.position.Revision && sc.past != nil {
		return false // the statement had another state at the revision
	}
	if sc.row.to == 0 {
		sc.row.from = st.Since
	}
	sc.row.Graph = sc.name
	sc.row.shown = sc.s.visibleAssertions(sc.row.Graph, st.Assertions)
	if len(sc.row.shown) == 0 {
		return false
	}
	if sc.countRead(); sc.err != nil {
		return false
	}
	if !sc.quiet {
		sc.noteSources()
	}
	return true
}

// parseState decodes a state of the row, unless it is the one decoded last: most statements
// of a commit have the same.
func (sc *scanner) parseState(v []byte) error {
	if len(v) > 0 && bytes.Equal(v, sc.stateBytes) {
		return nil
	}
	st, err := base.ParseState(v, sc.agentOf)
	if err == nil {
		sc.s.generations.SettleState(&st, sc.row.Graph)
		sc.state, sc.stateBytes = st, append(sc.stateBytes[:0], v...)
	}
	return err
}

// noteSources adds the sources of the visible assertions to the snapshot's, once for a run of
// equal ones.
func (sc *scanner) noteSources() {
	if list := sc.row.shown; len(list) != 1 || list[0].Source != sc.noted {
		sc.noted = list[0].Source
		sc.s.noteSources(list)
	}
}

// agentOf returns the agent of a dictionary number.
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

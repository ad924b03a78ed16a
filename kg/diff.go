package kg

import (
	"bytes"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/logentry"
)

// Difference is a statement that differs between two revisions, with its version before and
// after. A version with zero From means that the statement did not hold. At least one of the
// two did.
type Difference struct {
	IDQuad
	Before, After Version
}

// Diff yields the statements matching the pattern that differ between the earlier revision
// from and the snapshot's revision, in the order of MatchIDs; with after, from behind that
// statement on. Only visible assertions make a difference. Diff reads the commits in between
// or all versions of the matching statements, whichever is less work.
func (s *Snapshot) Diff(from Revision, p IDPattern, after *IDQuad) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		if from > s.position.Revision {
			yield(Difference{}, Errorf(CodeInvalid, "revision %d is newer than %d, the end of the difference", from, s.position.Revision))
			return
		}
		if from == s.position.Revision {
			return
		}
		touched, known, err := s.touchedStatements(from, p, after)
		switch {
		case err != nil:
			yield(Difference{}, err)
		case !known:
			s.diffOf(from, p, after, yield)
		default:
			for _, q := range touched {
				if !s.diffOf(from, IDPattern(q), nil, yield) {
					return
				}
			}
		}
	}
}

// diffOf yields the differences of a pattern from its versions. It returns false when the loop
// ends.
func (s *Snapshot) diffOf(from Revision, p IDPattern, after *IDQuad, yield func(Difference, error) bool) bool {
	var d Difference // of the current statement
	flush := func() bool {
		// Checked after reading: retention makes a revision unreadable before it removes
		// anything.
		if from > 0 && from < s.oldestReadable() { // before the first commit nothing held
			yield(Difference{}, s.errGone(from))
			return false
		}
		// Compared by content, not by begin: a change that was undone is no difference.
		return sameAssertions(d.Before.shown, d.After.shown) || yield(d, nil)
	}
	for v, err := range s.Versions(p, after) {
		if err != nil {
			yield(Difference{}, err)
			return false
		}
		if v.IDQuad != d.IDQuad {
			if !flush() {
				return false
			}
			d = Difference{IDQuad: v.IDQuad}
		}
		if v.StandsAt(from) {
			d.Before = v
		}
		if v.To == 0 {
			d.After = v
		}
	}
	return flush()
}

// A commit is as much work as this many statements of a scan (15 µs to 0.3 µs,
// as measured), a statement that it touched as this many (3 µs), and so many at
// most are remembered.
const (
	commitCost  = 50
	touchedCost = 10
	maxTouched  = 1 << 16
)

// touchedStatements lists the statements matching the pattern, behind after, that commits
// after from changed, in the order of MatchIDs. known is false if finding them in the log is
// more work than a scan of the pattern.
func (s *Snapshot) touchedStatements(from Revision, p IDPattern, after *IDQuad) (list []IDQuad, known bool, err error) {
	most, err := s.logReadLimit(from, p)
	if most == 0 || err != nil {
		return nil, false, err
	}
	seen := make(map[IDQuad]struct{})
	for r := from + 1; r <= s.position.Revision; r++ {
		if s.ctx.Err() != nil {
			return nil, false, s.ctx.Err()
		}
		c, err := s.commit(r)
		if CodeOf(err) == CodeRevisionGone {
			return nil, false, nil // the index knows the past without the log
		}
		if err != nil {
			return nil, false, err
		}
		if c.Replaced != nil {
			return nil, false, nil // the log does not name the statements
		}
		for i := range c.Changes {
			ids, known, err := s.quadIDs(&c.Changes[i].Quad)
			if err != nil {
				return nil, false, err
			}
			if !known || !keys.Matches(IDQuad(p), ids) {
				continue
			}
			// Hidden statements must not influence the choice: its cost is observable.
			shown, err := s.admitsPredicate(ids.Predicate, ids.Graph)
			if err != nil {
				return nil, false, err
			}
			if shown {
				seen[ids] = struct{}{}
			}
		}
		if len(seen) > most {
			return nil, false, nil
		}
	}
	return s.inOrderOf(p, seen, after), true, nil
}

// logReadLimit returns the number of changed statements up to which reading the log after from
// is less work than a scan of the pattern, 0 if it never is.
func (s *Snapshot) logReadLimit(from Revision, p IDPattern) (most int, err error) {
	kind, id, ok := s.catalogueKey(p)
	if !ok || s.commit == nil {
		return 0, nil
	}
	var n uint64
	err = s.eachVisibleCount(kind, p.Graph, func(_, counted ID, count uint64) {
		if id.IsZero() || id == counted {
			n += count
		}
	})
	commits := uint64(s.position.Revision - from)
	if commits >= n/commitCost {
		return 0, err
	}
	return int(min((n-commits*commitCost)/touchedCost, maxTouched)), err
}

// quadIDs returns the ids of a quad, and false if a term is unknown.
func (s *Snapshot) quadIDs(q *Quad) (IDQuad, bool, error) {
	ids, known, err := s.PatternIDs(Pattern(*q))
	return IDQuad(ids), known, err
}

// inOrderOf sorts the quads behind after as a scan of the pattern would yield them.
func (s *Snapshot) inOrderOf(p IDPattern, quads map[IDQuad]struct{}, after *IDQuad) []IDQuad {
	order := keys.Choose(IDQuad(p))
	if keys.NeedsPredicates(IDQuad(p)) {
		order = keys.POSG
	}
	key := func(q IDQuad) []byte {
		if graph, ok := s.toIndex(q.Graph); ok {
			q.Graph = graph
		}
		return order.Append(nil, q)
	}
	compare := func(a, b IDQuad) int { return bytes.Compare(key(a), key(b)) }
	list := make([]IDQuad, 0, len(quads))
	for q := range quads {
		if after == nil || compare(q, *after) > 0 {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, compare)
	return list
}

// LastChange returns the revision that last changed a statement of the graph, as of the
// snapshot's newest revision; 0 if none did or the view does not admit the graph. Changes of
// hidden statements count: see HidesStatements. It reads one key for each subject that the
// graph has or had, at the pace of a scan. LastChanges caches results across calls.
func (s *Snapshot) LastChange(graph Term) (last Revision, err error) {
	id, known, err := s.dict.ID(graph)
	if !known || err != nil {
		return 0, err
	}
	if shown, err := s.admitsGraph(id); !shown || err != nil {
		return 0, err
	}
	content, there := s.toIndex(id)
	if !there {
		return 0, nil
	}
	last, _, err = s.scanLastChange(content, math.MaxInt)
	return last, err
}

// scanLastChange is LastChange for the content of a graph. It returns false beyond most
// subjects.
func (s *Snapshot) scanLastChange(content ID, most int) (last Revision, ended bool, err error) {
	last = s.generations.LastChangeFloor(content)
	cursor := s.kv.Scan(append(keys.LastPrefix(), content[:]...))
	defer cursor.Close()
	for steps := 1; cursor.Valid(); cursor.Next() {
		if most--; most < 0 {
			return 0, false, nil
		}
		if steps++; steps%index.PaceInterval == 0 {
			if err := s.waitForPace(); err != nil {
				return 0, false, err
			}
		}
		err := cursor.Value(func(value []byte) error {
			changed, err := parseLastChange(value)
			last = max(last, changed)
			return err
		})
		if err != nil {
			return 0, false, err
		}
	}
	return last, true, nil
}

// HidesStatements reports whether single statements of visible graphs may be hidden from the
// principal (Hider).
func (s *Snapshot) HidesStatements() bool { return s.hides != nil }

// Doubts returns the quarantined agents whose assertions the snapshot leaves out
// (View.Doubted).
func (s *Snapshot) Doubts() Doubts { return s.view.Doubts }

// LastChanges finds the last change of graphs, as Snapshot.LastChange does, and caches it: for
// a graph that it knows it reads only the commits since. It is safe for concurrent use.
type LastChanges struct {
	store *Store
	// Bounds of one call: subjects scanned at first, and commits and bytes of the log read.
	subjects, commits, bytes int
	scans                    atomic.Int64 // scans of all subjects of a larger graph

	mu    sync.Mutex
	known map[ID]knownChange // by the id of the content in the index; guarded by mu
}

// knownChange is the last change of a graph as of a revision.
type knownChange struct{ asOf, last Revision }

// NewLastChanges returns an empty cache.
func (s *Store) NewLastChanges() *LastChanges {
	return &LastChanges{store: s, subjects: scannedSubjects, commits: walkedCommits, bytes: walkedBytes, known: make(map[ID]knownChange)}
}

// Bounds of LastChanges. A graph of few subjects is scanned at once. Of others the log is
// read backward, within what a scan of a larger graph costs.
const (
	scannedSubjects = 1_000
	walkedCommits   = 4_096
	walkedBytes     = 8 << 20
	rememberedLasts = 1_024
)

// Of returns s.LastChange(graph). s must be a snapshot of the cache's store.
func (l *LastChanges) Of(s *Snapshot, graph Term) (Revision, error) {
	id, known, err := s.dict.ID(graph)
	if !known || err != nil {
		return 0, err
	}
	if shown, err := s.admitsGraph(id); !shown || err != nil {
		return 0, err
	}
	content, there := s.toIndex(id)
	if !there || s.past {
		return s.LastChange(graph)
	}
	last, ended, err := s.scanLastChange(content, l.subjects)
	if ended || err != nil {
		return last, err
	}
	last, found := l.walkLog(s, graph, content)
	if !found {
		l.scans.Add(1)
		if last, err = s.LastChange(graph); err != nil {
			return 0, err
		}
	}
	l.cacheChange(content, knownChange{asOf: s.position.Revision, last: last})
	return last, nil
}

// walkLog reads commits backward from the snapshot's revision to the first that changed the
// graph, or to a known last change. It returns false if it reaches its bounds.
func (l *LastChanges) walkLog(s *Snapshot, graph Term, content ID) (last Revision, found bool) {
	newest := s.position.Revision
	l.mu.Lock()
	known := l.known[content]
	l.mu.Unlock()
	if known.last <= newest && newest <= known.asOf && known.asOf > 0 {
		return known.last, true
	}
	// A commit that replaced the whole graph begins its content. The content before it does
	// not matter.
	begins := Revision(0)
	if g := s.generations.ByID(content); g != nil {
		begins = g.From
	}
	record := base.AppendTerm(nil, graph)
	left := l.bytes
	for r, steps := newest, 0; r > 0; r, steps = r-1, steps+1 {
		switch {
		case known.asOf == r:
			return known.last, true
		case begins == r:
			return s.generations.LastChangeFloor(content), true
		case steps == l.commits || left <= 0:
			return 0, false
		case s.Err() != nil:
			return 0, false // the scan reports it
		}
		changes, read, err := l.store.changesGraph(r, graph, record)
		if err != nil {
			return 0, false // fall back to the index
		}
		if changes {
			return r, true
		}
		left -= read
	}
	return 0, false
}

// changesGraph reports whether the commit of a revision changes statements of the graph, given
// by its record in an entry, and returns the bytes of the log read.
func (s *Store) changesGraph(r Revision, graph Term, record []byte) (changes bool, read int, err error) {
	if c := s.tailer.ringCommit(r); c != nil {
		return c.ChangesGraph(graph), 0, nil
	}
	payload, err := s.wal.Read(uint64(r))
	if err != nil {
		return false, 0, s.noteDamage(base.ErrLog(err))
	}
	names, err := entryHasTerm(payload, record)
	if !names || err != nil {
		return false, len(payload), err
	}
	c, err := logentry.ParseEntry(payload, r)
	if err != nil {
		return false, 0, s.noteDamage(err)
	}
	return c.ChangesGraph(graph), len(payload), nil
}

// cacheChange stores a result. A full cache drops an arbitrary other one.
func (l *LastChanges) cacheChange(content ID, found knownChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.known[content]; ok && before.asOf >= found.asOf {
		return
	}
	if len(l.known) >= rememberedLasts {
		skip := rand.IntN(len(l.known))
		for id := range l.known {
			if skip--; skip < 0 {
				delete(l.known, id)
				break
			}
		}
	}
	l.known[content] = found
}

// entryHead is the part of a log entry before its terms.
type entryHead struct {
	principal            AgentID
	sessionID, messageID string
}

// readHead decodes the beginning of an entry, up to its terms.
func readHead(r *codec.Reader) (h entryHead) {
	version := r.Byte()
	if version < logentry.EntryVersion || version > logentry.NewestEntryVersion {
		r.Fail()
		return h
	}
	r.Varint() // time
	h.principal = AgentID(r.String())
	for range 3 { // actor, justification, task
		r.Bytes()
	}
	h.sessionID, h.messageID = r.String(), r.String()
	if len(r.Bytes()) > 0 { // idempotency key
		r.Take(len(Commit{}.ContentHash))
	}
	if version >= logentry.EntryVersionProposal {
		r.Bytes()
		r.Byte()
		r.Bytes()
	}
	return h
}

// entryHasTerm reports whether an entry contains the term with this record.
func entryHasTerm(payload, record []byte) (bool, error) {
	r := codec.NewReader(payload)
	readHead(r)
	for range r.Count(2) {
		if bytes.Equal(r.Bytes(), record) {
			return true, nil
		}
	}
	return false, r.Err()
}

// readEntryHead reads the head of a log entry without the changes.
func (s *Store) readEntryHead(revision Revision) (entryHead, error) {
	payload, err := s.wal.Read(uint64(revision))
	if err != nil {
		_, err := s.readCommit(revision) // for the error
		return entryHead{}, err
	}
	head, err := parseEntryHead(payload)
	if err != nil {
		_, err = logentry.ParseEntry(payload, revision) // for the error
	}
	return head, s.noteDamage(err)
}

func parseEntryHead(payload []byte) (entryHead, error) {
	r := codec.NewReader(payload)
	h := readHead(r)
	return h, r.Err()
}

package kg

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"koine/kg/internal/codec"
)

// LastChanges finds the last change of graphs as Snapshot.LastChange does, and remembers
// it: of a graph that it knows it reads only the commits since. It is safe for concurrent
// use.
type LastChanges struct {
	store *Store
	// Bounds of one call: subjects that are looked at before anything else, and commits and
	// bytes of the log that are read.
	subjects, commits, bytes int
	scans                    atomic.Int64 // calls that looked at all subjects of a larger graph

	mu    sync.Mutex
	known map[ID]knownChange // guarded by mu; by the id of the content in the index
}

// knownChange is the last change of a graph as of a revision.
type knownChange struct{ asOf, last Revision }

// NewLastChanges returns a LastChanges that knows no graph yet.
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

// Of is the revision that last changed a statement of the graph: what s.LastChange gives.
// s is a snapshot of the same store.
func (l *LastChanges) Of(s *Snapshot, graph Term) (Revision, error) {
	id, known, err := s.dict.id(graph)
	if !known || err != nil {
		return 0, err
	}
	if shown, err := s.admits(id); !shown || err != nil {
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
	last, found := l.walk(s, graph, content)
	if !found {
		l.scans.Add(1)
		if last, err = s.LastChange(graph); err != nil {
			return 0, err
		}
	}
	l.remember(content, knownChange{asOf: s.position.Revision, last: last})
	return last, nil
}

// walk reads the commits of the log from the snapshot's revision backward, up to the first
// that changed the graph, or to where the last change is known. It reports false where the
// log does not tell within the bounds.
func (l *LastChanges) walk(s *Snapshot, graph Term, content ID) (last Revision, found bool) {
	newest := s.position.Revision
	l.mu.Lock()
	known := l.known[content]
	l.mu.Unlock()
	if known.last <= newest && newest <= known.asOf && known.asOf > 0 {
		return known.last, true
	}
	// The content that a graph was given as a whole begins with one commit, and what the
	// name held before is other content.
	begins := Revision(0)
	if g := s.generations.byID(content); g != nil {
		begins = g.from
	}
	record := appendTerm(nil, graph)
	left := l.bytes
	for r, steps := newest, 0; r > 0; r, steps = r-1, steps+1 {
		switch {
		case known.asOf == r:
			return known.last, true
		case begins == r:
			return s.generations.floor(content), true
		case steps == l.commits || left <= 0:
			return 0, false
		case s.Err() != nil:
			return 0, false // the scan reports it
		}
		changes, read, err := l.store.changesGraph(r, graph, record)
		if err != nil {
			return 0, false // what the log does not have, the index does
		}
		if changes {
			return r, true
		}
		left -= read
	}
	return 0, false
}

// changesGraph tells whether the commit of a revision changes statements of the graph,
// whose record in an entry is given, and how many bytes of the log were read.
func (s *Store) changesGraph(r Revision, graph Term, record []byte) (changes bool, read int, err error) {
	if c := s.tailer.recent(r); c != nil {
		return c.changes(graph), 0, nil
	}
	payload, err := s.wal.Read(uint64(r))
	if err != nil {
		return false, 0, s.noteDamage(errLog(err))
	}
	names, err := entryNames(payload, record)
	if !names || err != nil {
		return false, len(payload), err
	}
	c, err := parseEntry(payload, r)
	if err != nil {
		return false, 0, s.noteDamage(err)
	}
	return c.changes(graph), len(payload), nil
}

// remember keeps what was found. Where there is too much, any other is forgotten.
func (l *LastChanges) remember(content ID, found knownChange) {
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

// entryHead is what a log entry says of its commit before its terms.
type entryHead struct {
	principal            AgentID
	sessionID, messageID string
}

// readHead decodes the beginning of an entry, up to its terms.
func readHead(r *codec.Reader) (h entryHead) {
	version := r.Byte()
	if version < entryVersion || version > entryVersionGeneration {
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
	if version >= entryVersionProposal {
		r.Bytes()
		r.Byte()
		r.Bytes()
	}
	return h
}

// entryNames tells whether an entry has the term with this record.
func entryNames(payload, record []byte) (bool, error) {
	r := codec.NewReader(payload)
	readHead(r)
	for range r.Count(2) {
		if bytes.Equal(r.Bytes(), record) {
			return true, nil
		}
	}
	return false, r.Err()
}

// readEntryHead reads what the log says of the commit of a revision, without its changes.
func (s *Store) readEntryHead(revision Revision) (entryHead, error) {
	payload, err := s.wal.Read(uint64(revision))
	if err != nil {
		_, err := s.readCommit(revision) // which says what is wrong
		return entryHead{}, err
	}
	head, err := parseEntryHead(payload)
	if err != nil {
		_, err = parseEntry(payload, revision) // which says what is wrong
	}
	return head, s.noteDamage(err)
}

func parseEntryHead(payload []byte) (entryHead, error) {
	r := codec.NewReader(payload)
	h := readHead(r)
	return h, r.Err()
}

package kg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"

	"koine/internal/extsort"
	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/logentry"
)

// checkLog verifies the entries of the log and their hash chain, and compares their effect
// with the index. For a log that was cut it compares only the entries that exist.
func (c *checker) checkLog() error {
	first := c.s.wal.First()
	if c.head.revision == 0 {
		return nil
	}
	if first == 0 || Revision(first) > c.head.revision {
		c.addProblem("log: it is empty, the store is at %d", c.head.revision)
		return nil
	}
	l := newLogExpectation(c)
	damaged, err := c.readLog(first, l)
	if err != nil {
		return err
	}
	if want := uint64(c.head.revision) - first + 1; !damaged && c.report.Entries != want {
		c.addProblem("log: %d entries where %d belong", c.report.Entries, want)
	}
	return l.compareWithIndex(!damaged, first == 1)
}

// readLog passes all commits to l, up to the first that cannot be read. It counts their changes: an
// entry may have tens of thousands.
func (c *checker) readLog(first uint64, l *logExpectation) (damaged bool, err error) {
	c.done = 0
	for e, err := range c.s.wal.Entries(first, uint64(c.head.revision)) {
		if err != nil {
			c.addProblem("log: %v", c.s.noteDamage(base.ErrLog(err)))
			return true, nil
		}
		commit, err := logentry.ParseEntry(e.Payload, Revision(e.Index))
		if err != nil {
			c.addProblem("log: %v", c.s.noteDamage(err))
			return true, nil
		}
		c.report.Entries++
		if err := errors.Join(l.addCommit(commit), c.ctx.Err()); err != nil {
			return false, err
		}
	}
	return false, nil
}

// logExpectation is the state of the index that the log implies, in records sorted like the
// index. They hold ids for terms and hashes for assertions. The text of a problem is made from
// the log, read again.
type logExpectation struct {
	c       *checker
	changes *extsort.Sorter // loggedChange
	lasts   *extsort.Sorter // loggedLastChange
	time    int64           // of the newest commit
	record  []byte
	state   []byte
	again   *Commit // the last one read again

	// The numbers that the comparison expects in the index.
	stand, past, last uint64
}

func newLogExpectation(c *checker) *logExpectation {
	return &logExpectation{c: c, changes: c.newSorter(), lasts: c.newSorter(), time: math.MinInt64}
}

// loggedChange is a change of a statement. Records sort by ids, then in the order of the log.
type loggedChange struct {
	ids      IDQuad
	revision Revision
	index    uint32
	quad     uint64   // hash of the terms: several quads have the same ids in a damaged dictionary
	stands   Revision // revision from which on the state after applies
	since    Revision
	before   uint64 // hash of the assertions, 0 for none
	after    uint64
}

func (l *loggedChange) appendTo(dst []byte) []byte {
	dst = keys.SPOG.Append(dst, l.ids)
	dst = binary.BigEndian.AppendUint64(dst, uint64(l.revision))
	dst = binary.BigEndian.AppendUint32(dst, l.index)
	for _, n := range [...]uint64{l.quad, uint64(l.stands), uint64(l.since), l.before, l.after} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return dst
}

func parseLoggedChange(row []byte) (l loggedChange) {
	at := row[1:]
	for _, id := range [...]*ID{&l.ids.Subject, &l.ids.Predicate, &l.ids.Object, &l.ids.Graph} {
		at = at[copy(id[:], at):]
	}
	l.revision, l.index = Revision(binary.BigEndian.Uint64(at)), binary.BigEndian.Uint32(at[8:])
	at = at[12:]
	l.quad, l.stands, l.since = binary.BigEndian.Uint64(at), Revision(binary.BigEndian.Uint64(at[8:])), Revision(binary.BigEndian.Uint64(at[16:]))
	l.before, l.after = binary.BigEndian.Uint64(at[24:]), binary.BigEndian.Uint64(at[32:])
	return l
}

// loggedLastChange is a change of a subject in a graph. Records sort by the key of the last change,
// then by the terms, then in the order of the log.
type loggedLastChange struct {
	key      []byte // in the index
	terms    uint64 // hash of subject and graph
	revision Revision
	index    uint32
}

func (l *loggedLastChange) appendTo(dst []byte) []byte {
	dst = append(dst, l.key...)
	dst = binary.BigEndian.AppendUint64(dst, l.terms)
	dst = binary.BigEndian.AppendUint64(dst, uint64(l.revision))
	return binary.BigEndian.AppendUint32(dst, l.index)
}

func parseLoggedLast(row []byte) loggedLastChange {
	at := row[len(row)-20:]
	return loggedLastChange{
		key: row[:len(row)-20], terms: binary.BigEndian.Uint64(at),
		revision: Revision(binary.BigEndian.Uint64(at[8:])), index: binary.BigEndian.Uint32(at[16:]),
	}
}

func (l *logExpectation) addCommit(commit *Commit) error {
	if t := commit.Time.UnixMilli(); t < l.time {
		l.c.addProblem("log: the time of entry %d is before that of the one before", commit.Revision)
	} else {
		l.time = t
	}
	if err := l.addWritten(commit); err != nil {
		return err
	}
	generations := l.c.head.generations
	var subject, graph Term // of the change before
	for i := range commit.Changes {
		ch := &commit.Changes[i]
		q := &ch.Quad
		change := loggedChange{
			ids:      IDQuad{Subject: l.termID(q.Subject), Predicate: l.termID(q.Predicate), Object: l.termID(q.Object), Graph: l.termID(q.Graph)},
			revision: commit.Revision, stands: commit.Revision, index: uint32(i), quad: maphash.Comparable(l.c.seed, *q),
			since: ch.Since, before: l.hashAssertions(ch.Before), after: l.hashAssertions(ch.After),
		}
		change.ids.Graph = generations.WrittenID(change.ids.Graph, commit.Revision)
		if !generations.IsKept(change.ids.Graph) {
			continue
		}
		l.record = change.appendTo(l.record[:0])
		if err := errors.Join(l.changes.Add(l.record), l.c.reportStep("log")); err != nil {
			return err
		}
		if q.Subject == subject && q.Graph == graph {
			continue
		}
		subject, graph = q.Subject, q.Graph
		last := loggedLastChange{
			key: keys.Last(change.ids.Graph, change.ids.Subject), revision: commit.Revision, index: uint32(i),
			terms: maphash.Comparable(l.c.seed, [2]Term{graph, subject}),
		}
		l.record = last.appendTo(l.record[:0])
		if err := l.lasts.Add(l.record); err != nil {
			return err
		}
	}
	return nil
}

// addWritten adds the statements that a commit wrote to a generation.
func (l *logExpectation) addWritten(commit *Commit) error {
	g := commit.Written
	if g == nil {
		return nil
	}
	id := keys.Generation(uint64(g.Began))
	if !l.c.head.generations.IsKept(id) {
		return nil
	}
	for i := range g.Statements {
		s := &g.Statements[i]
		st := base.State{Since: s.Since, Assertions: s.Assertions}
		l.c.head.generations.SettleState(&st, id)
		change := loggedChange{
			ids:      IDQuad{Subject: l.termID(s.Subject), Predicate: l.termID(s.Predicate), Object: l.termID(s.Object), Graph: id},
			revision: commit.Revision, stands: st.Since, index: uint32(i), quad: maphash.Comparable(l.c.seed, s.Quad(g.Graph)), after: l.hashAssertions(st.Assertions),
		}
		l.record = change.appendTo(l.record[:0])
		if err := errors.Join(l.changes.Add(l.record), l.c.reportStep("log")); err != nil {
			return err
		}
	}
	return nil
}

// termID returns the id of a term. For a term that the dictionary lacks it returns an id with
// an unused tag, which occurs in no key.
func (l *logExpectation) termID(t Term) ID {
	id, ok, err := l.c.ids.ID(t)
	if !ok || err != nil {
		id = keys.Numbered(0, maphash.Comparable(l.c.seed, t))
	}
	return id
}

// hashAssertions returns equal hashes for equal assertions, and 0 for none.
func (l *logExpectation) hashAssertions(list []Assertion) uint64 {
	if len(list) == 0 {
		return 0
	}
	l.state = l.state[:0]
	for i := range list {
		l.state = binary.AppendUvarint(l.state, uint64(len(list[i].Source)))
		l.state = base.AppendAssertion(append(l.state, list[i].Source...), list[i])
	}
	return max(1, maphash.Bytes(l.c.seed, l.state))
}

// compareWithIndex looks up the records in the index, both in the order of keys. With the
// whole log the numbers must agree too. If the log could not be read to its end, it compares
// only the records of the log with each other.
func (l *logExpectation) compareWithIndex(ended, whole bool) error {
	if err := l.compareChanges(ended); err != nil {
		return err
	}
	if !ended {
		return nil
	}
	if err := l.compareLasts(); err != nil || !whole {
		return err
	}
	for _, n := range [...]struct {
		what      string
		got, want uint64
	}{
		{"statements", l.c.present.total().n, l.stand},
		{"intervals of the past", l.c.keptIntervals, l.past},
		{"last changes", l.c.lasts, l.last},
	} {
		if n.got != n.want {
			l.c.addProblem("index: %d %s, the log makes %d", n.got, n.what, n.want)
		}
	}
	return nil
}

func (l *logExpectation) compareChanges(ended bool) error {
	present, past := l.c.newKeyFollower([]byte{byte(keys.SPOG)}), l.c.newKeyFollower([]byte{byte(keys.SPOG.Past())})
	defer present.close()
	defer past.close()
	var key []byte
	made := make(map[uint64]loggedChange) // the newest change of each quad with the current ids
	finish := func() {
		for _, ch := range made {
			if ended {
				key = keys.SPOG.Append(key[:0], ch.ids)
				l.compareState(present, key, ch)
			}
		}
		clear(made)
	}
	var ids IDQuad
	l.c.done = 0
	for row, err := range l.changes.Sorted() {
		if err != nil {
			return err
		}
		ch := parseLoggedChange(row)
		if ch.ids != ids {
			finish()
			ids = ch.ids
		}
		was, known := made[ch.quad]
		if known && (was.after != ch.before || was.after != 0 && was.stands != ch.since) {
			l.c.addProblem("log: entry %d, change %d: the state before is not what earlier entries made", ch.revision, ch.index)
		}
		made[ch.quad] = ch
		if ended && ch.before != 0 && ch.since < ch.revision && ch.revision > l.c.floor {
			l.past++
			key = keys.SPOG.AppendPast(key[:0], ch.ids, uint64(ch.since), uint64(ch.revision))
			l.comparePast(past, key, ch)
		}
		if err := l.c.reportStep("index beside the log"); err != nil {
			return err
		}
	}
	finish()
	return l.changes.Close()
}

// compareState compares the state after the last change of a statement.
func (l *logExpectation) compareState(present *keyFollower, key []byte, ch loggedChange) {
	value, there := present.valueOf(key)
	if ch.after == 0 {
		if there && len(value) > 0 {
			l.addProblem(ch.revision, ch.index, func(q Quad, _ error) string {
				return fmt.Sprintf("index: still has %s, which the log removed", q.ClippedString())
			})
		}
		return
	}
	l.stand++
	if !there {
		l.addProblem(ch.revision, ch.index, func(q Quad, err error) string {
			return fmt.Sprintf("index: lacks %s of the log: %v", q.ClippedString(), err)
		})
		return
	}
	got, err := base.ParseState(value, l.c.dict.Agent)
	l.c.head.generations.SettleState(&got, ch.ids.Graph)
	if err != nil || got.Since != ch.stands || l.hashAssertions(got.Assertions) != ch.after {
		l.addProblem(ch.revision, ch.index, func(q Quad, _ error) string {
			return fmt.Sprintf("index: %s is backed otherwise than the log says", q.ClippedString())
		})
	}
}

// comparePast compares the past interval that a change ended.
func (l *logExpectation) comparePast(past *keyFollower, key []byte, ch loggedChange) {
	value, _ := past.valueOf(key)
	got, parseErr := base.ParseState(value, l.c.dict.Agent)
	if parseErr != nil || l.hashAssertions(got.Assertions) != ch.before {
		l.addProblem(ch.revision, ch.index, func(q Quad, err error) string {
			return fmt.Sprintf("past: %s from %d to %d is not what the log says: %v", q.ClippedString(), ch.since, ch.revision, errors.Join(err, parseErr))
		})
	}
}

func (l *logExpectation) compareLasts() error {
	index := l.c.newKeyFollower(keys.LastPrefix())
	defer index.close()
	var at loggedLastChange // the newest record of the current terms
	finish := func() {
		if at.key == nil {
			return
		}
		l.last++
		var got Revision
		if value, there := index.valueOf(at.key); there {
			if r, ok := l.c.parseLast(at.key, value); ok {
				got = r
			}
		}
		if got != at.revision {
			l.addProblem(at.revision, at.index, func(q Quad, err error) string {
				_, _, graphErr := l.c.ids.ID(q.Graph)
				_, _, subjectErr := l.c.ids.ID(q.Subject)
				return fmt.Sprintf("last change of %s in %s is %d, the log says %d: %v", q.Subject, q.Graph, got, at.revision, errors.Join(graphErr, subjectErr))
			})
		}
	}
	l.c.done = 0
	for row, err := range l.lasts.Sorted() {
		if err != nil {
			return err
		}
		last := parseLoggedLast(row)
		if last.terms != at.terms || !bytes.Equal(last.key, at.key) {
			finish()
		}
		last.key = append(at.key[:0], last.key...)
		at = last
		if err := l.c.reportStep("last changes beside the log"); err != nil {
			return err
		}
	}
	finish()
	return l.lasts.Close()
}

// addProblem adds a problem with a change of the log, which is read again only if the problem
// is listed. text gets the error that explains why the quad has no ids.
func (l *logExpectation) addProblem(r Revision, index uint32, text func(q Quad, err error) string) {
	l.c.problemOf(func() string {
		if l.again == nil || l.again.Revision != r {
			commit, err := l.c.s.readCommit(r)
			if err == nil && commit.Written != nil && int(index) < len(commit.Written.Statements) {
				q := commit.Written.Statements[index].Quad(commit.Written.Graph)
				_, err := l.c.idsOf(q)
				return text(q, err)
			}
			if err != nil || int(index) >= len(commit.Changes) {
				return text(Quad{}, fmt.Errorf("change %d of entry %d cannot be read again: %w", index, r, err))
			}
			l.again = commit
		}
		q := l.again.Changes[index].Quad
		_, err := l.c.idsOf(q)
		return text(q, err)
	})
}

// keyFollower looks up keys with one cursor. The keys are requested in roughly ascending
// order.
type keyFollower struct {
	cur  index.Cursor
	last []byte // the last key requested
	at   []byte // its value
}

// newKeyFollower returns a follower over the keys of a prefix. The caller closes it.
func (c *checker) newKeyFollower(prefix []byte) *keyFollower {
	return &keyFollower{cur: c.kv.Scan(prefix)}
}

func (p *keyFollower) close() { p.cur.Close() }

// valueOf returns the value of a key, valid until the next call, and false if it has none or
// cannot be read.
func (p *keyFollower) valueOf(key []byte) ([]byte, bool) {
	if bytes.Compare(key, p.last) < 0 {
		p.cur.Seek(key)
	}
	p.last = append(p.last[:0], key...)
	for step := 0; p.cur.Valid() && bytes.Compare(p.cur.Key(), key) < 0; step++ {
		if step == index.MaxStepsBeforeSeek {
			p.cur.Seek(key)
			break
		}
		p.cur.Next()
	}
	if !p.cur.Valid() || !bytes.Equal(p.cur.Key(), key) {
		return nil, false
	}
	err := p.cur.Value(func(v []byte) error {
		p.at = append(p.at[:0], v...)
		return nil
	})
	return p.at, err == nil
}

func (c *checker) idsOf(q Quad) (ids IDQuad, err error) {
	for _, part := range [...]struct {
		t  Term
		id *ID
	}{{q.Subject, &ids.Subject}, {q.Predicate, &ids.Predicate}, {q.Object, &ids.Object}, {q.Graph, &ids.Graph}} {
		id, ok, err := c.ids.ID(part.t)
		if err != nil {
			return ids, err
		}
		if !ok {
			return ids, fmt.Errorf("the dictionary lacks %s", base.Clip(part.t.String()))
		}
		*part.id = id
	}
	return ids, nil
}

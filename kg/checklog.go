package kg

import (
	"errors"
	"fmt"
	"math"
)

// log verifies the log's entries and their chain, and compares what they say
// with the index. Where the log's head was cut only what it still holds is
// compared.
func (c *checker) log() error {
	first := c.s.wal.First()
	if c.head.revision == 0 {
		return nil
	}
	if first == 0 || Revision(first) > c.head.revision {
		c.problem("log: it is empty, the store is at %d", c.head.revision)
		return nil
	}
	m := newLogModel(c)
	c.done = 0
	for e, err := range c.s.wal.Entries(first, uint64(c.head.revision)) {
		if err != nil {
			c.problem("log: %v", c.s.noteDamage(errLog(err)))
			return nil
		}
		commit, err := parseEntry(e.Payload, Revision(e.Index))
		if err != nil {
			c.problem("log: %v", c.s.noteDamage(err))
			return nil
		}
		c.report.Entries++
		m.apply(commit)
		if err := c.tick("log"); err != nil {
			return err
		}
	}
	if want := uint64(c.head.revision) - first + 1; c.report.Entries != want {
		c.problem("log: %d entries where %d belong", c.report.Entries, want)
	}
	m.compare(first == 1)
	return nil
}

// logModel is what the log says, in maps.
type logModel struct {
	c      *checker
	states map[Quad]state
	gone   map[Quad]bool
	past   map[pastQuad][]Assertion
	last   map[[2]Term]Revision
	time   int64
}

type pastQuad struct {
	quad     Quad
	from, to Revision
}

func newLogModel(c *checker) *logModel {
	return &logModel{
		c: c, states: make(map[Quad]state), gone: make(map[Quad]bool), past: make(map[pastQuad][]Assertion),
		last: make(map[[2]Term]Revision), time: math.MinInt64,
	}
}

func (m *logModel) apply(commit *Commit) {
	r := commit.Revision
	if t := commit.Time.UnixMilli(); t < m.time {
		m.c.problem("log: the time of entry %d is before that of the one before", r)
	} else {
		m.time = t
	}
	for i := range commit.Changes {
		ch := &commit.Changes[i]
		was, known := m.states[ch.Quad]
		if known && (was.since != ch.Since || !equalAssertions(was.assertions, ch.Before)) ||
			!known && m.gone[ch.Quad] && len(ch.Before) > 0 {
			m.c.problem("log: entry %d, change %d: the state before is not what earlier entries made", r, i)
		}
		if len(ch.Before) > 0 && ch.Since < r && r > m.c.s.floor() {
			m.past[pastQuad{ch.Quad, ch.Since, r}] = ch.Before
		}
		if len(ch.After) > 0 {
			m.states[ch.Quad] = state{r, ch.After}
			delete(m.gone, ch.Quad)
		} else {
			delete(m.states, ch.Quad)
			m.gone[ch.Quad] = true
		}
		m.last[[2]Term{ch.Quad.Graph, ch.Quad.Subject}] = r
	}
}

func equalAssertions(a, b []Assertion) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Source != b[i].Source || !a[i].same(b[i]) || a[i].Revision != b[i].Revision || !a[i].Time.Equal(b[i].Time) {
			return false
		}
	}
	return true
}

// compare looks up in the index what the log says; with the whole log the
// numbers must be the same too.
func (m *logModel) compare(whole bool) {
	c := m.c
	for q, want := range m.states {
		ids, err := c.ids(q)
		value, there := c.states[ids]
		if err != nil || !there {
			c.problem("index: lacks %s of the log: %v", q.show(), err)
			continue
		}
		got, err := parseState([]byte(value), c.dict.agent)
		if err != nil || got.since != want.since || !equalAssertions(got.assertions, want.assertions) {
			c.problem("index: %s is backed otherwise than the log says", q.show())
		}
	}
	for q := range m.gone {
		if ids, err := c.ids(q); err == nil && c.states[ids] != "" {
			c.problem("index: still has %s, which the log removed", q.show())
		}
	}
	for k, want := range m.past {
		ids, err := c.ids(k.quad)
		value := c.past[pastKey{ids, uint64(k.from), uint64(k.to)}]
		got, parseErr := parseState([]byte(value), c.dict.agent)
		if err = errors.Join(err, parseErr); err != nil || !equalAssertions(got.assertions, want) {
			c.problem("past: %s from %d to %d is not what the log says: %v", k.quad.show(), k.from, k.to, err)
		}
	}
	for k, want := range m.last {
		graph, _, err := c.dict.id(k[0])
		subject, _, err2 := c.dict.id(k[1])
		if got := c.last[subjectInGraph{graph, subject}]; got != want {
			c.problem("last change of %s in %s is %d, the log says %d: %v", k[1], k[0], got, want, errors.Join(err, err2))
		}
	}
	if !whole {
		return
	}
	for _, n := range []struct {
		what      string
		got, want int
	}{{"statements", len(c.states), len(m.states)}, {"intervals of the past", c.kept, len(m.past)}, {"last changes", len(c.last), len(m.last)}} {
		if n.got != n.want {
			c.problem("index: %d %s, the log makes %d", n.got, n.what, n.want)
		}
	}
}

func (c *checker) ids(q Quad) (ids IDQuad, err error) {
	for _, part := range [...]struct {
		t  Term
		id *ID
	}{{q.Subject, &ids.Subject}, {q.Predicate, &ids.Predicate}, {q.Object, &ids.Object}, {q.Graph, &ids.Graph}} {
		id, ok, err := c.dict.id(part.t)
		if err != nil {
			return ids, err
		}
		if !ok {
			return ids, fmt.Errorf("the dictionary lacks %s", clip(part.t.String()))
		}
		*part.id = id
	}
	return ids, nil
}

func (q Quad) show() string {
	return clip(fmt.Sprintf("%s %s %s %s", q.Subject, q.Predicate, q.Object, q.Graph))
}

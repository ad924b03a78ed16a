package knowledge

import (
	"fmt"
	"math"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/operation"
)

// cut is the state of a page that a budget may end after any element. The page
// is written closed first, without elements. A cutter then fills it with the
// elements that fit.
//
// Without a budget a page has no cut: each level is loaded in one batch.
type cut struct {
	cutter *cutter
	feed   feed
	seal   func(key []byte) string // makes the cursor after the element with this key, or at the page's beginning for nil
	first  int

	texts       []fragment // for each of the connection's fields that lists the elements; the paths of errors are whole
	size        int        // elements taken
	found       bool       // the feed has another element ready
	ended       bool       // the feed is exhausted
	examinedKey []byte     // the key looked at before the ready element

	startKey, endKey []byte // of the cursors; endKey is also set if nothing was taken
	reason           operation.CutReason

	// The end of a page that is not cut: whether more follows, and the cursor
	// if it is not that of the last element.
	rest    bool
	restEnd string

	at          *writer // at the page's place in the answer
	occurrences int     // how often the enclosing element contains it
	opened      bool    // it is being filled, or is full
	base        int     // bytes as written closed
	fixed       int     // the bytes of base without pageInfo
	cursor      int     // bytes of an element's cursor
	end         int     // bytes of endCursor while there is no element
	known       bool    // it is known whether there is an element
}

// closePage prepares a page to be filled from the feed by a cutter. peek means
// that looking for the first element is almost free, so that an empty page is
// recognized at once. keyBytes is the length of the feed's keys. seal makes
// the cursor after the element with a key, or at the page's beginning for nil.
func (l *loader) closePage(g *page, f feed, peek bool, keyBytes int, seal func(key []byte) string) error {
	c := l.run.cutter
	t := &cut{cutter: c, feed: f, seal: seal, first: g.connection.first, texts: make([]fragment, len(g.connection.fields))}
	g.cut = t
	c.feeds = append(c.feeds, f)
	if peek {
		_, err := t.findNext()
		if err != nil && !fault.IsSpent(err) {
			return err
		}
		t.known = err == nil
	}
	if g.connection.cursors {
		t.cursor, t.end = quotedLen(seal(make([]byte, keyBytes))), quotedLen(seal(nil))
	}
	t.rest, t.restEnd, g.end = g.more, g.end, ""
	g.more, g.truncated = true, true
	if t.ended {
		g.finish()
	}
	return nil
}

// finish gives a page the pageInfo of one that was not cut.
func (g *page) finish() { g.more, g.truncated, g.end = g.cut.rest, false, g.cut.restEnd }

func quotedLen(s string) int { return len(s) + len(`""`) }

// findNext makes the next element ready and reports whether there is one.
func (t *cut) findNext() (bool, error) {
	if t.found || t.ended {
		return t.found, nil
	}
	found, err := t.feed.next()
	if err != nil {
		return false, err
	}
	t.found, t.ended, t.examinedKey = found, !found, t.feed.lastKey()
	return found, nil
}

// cutter fills the closed pages of one root field, depth first, within the
// allowance.
type cutter struct {
	run        *Run
	fieldBound limit.Allowance // the field's own budget
	// bound is the allowance that bounds the bytes of pages being filled: the
	// field's own (ownBytes) or the operation's.
	bound      limit.Allowance
	ownBytes   bool
	spent      int64 // statements read for the field
	meterStart int64 // the meter's count when work on the field was resumed
	feeds      []feed

	value executor.Value // of the field; nil if it failed
	size  int            // bytes of the value with empty lists

	pages         []*page // closed pages that were written and wait to be filled
	givenElements int     // elements given, in all lists

	measuring bool // the text is only measured, then dropped
}

// enterField resumes work on the field: statements read count for it.
func (c *cutter) enterField() {
	r := c.run
	c.meterStart = r.Meter.Read()
	limit := r.Allowed.Reads
	if left := c.fieldBound.Reads - c.spent; left < limit-c.meterStart {
		limit = c.meterStart + left
	}
	if limit == math.MaxInt64 {
		limit = 0
	} else if limit <= c.meterStart {
		limit = max(c.meterStart, 1) // no further statement
	}
	r.Meter.Limit(limit)
	r.cutter = c
}

func (c *cutter) leaveField() {
	c.spent += c.run.Meter.Read() - c.meterStart
	c.run.cutter = nil
	c.run.Meter.Limit(0)
	if n := c.run.Allowed.Reads; n != math.MaxInt64 {
		c.run.Meter.Limit(n)
	}
}

func (c *cutter) close() {
	for _, f := range c.feeds {
		f.close()
	}
}

// queuePage queues a closed page that is being written. It is filled once the rest
// of its enclosing element is known to fit.
func (c *cutter) queuePage(g *page, w *writer) {
	if c.measuring {
		return
	}
	t := g.cut
	if t.occurrences == 0 {
		t.at = w.Fork(nil)
		c.pages = append(c.pages, g)
	}
	t.occurrences++
}

// slackBytes is by how many bytes a page may grow without getting an element.
func (g *page) slackBytes() int {
	t := g.cut
	longest := g.frameBytes(0, t.rest, false)
	if !t.known { // it may be cut after a key that was looked at
		longest = max(longest, g.frameBytes(0, true, true)+(t.cursor-t.end)*g.connection.countInfoFields("endCursor"))
	}
	return max(0, longest-t.base) * t.occurrences
}

// fillPages fills waiting pages, which may grow by room bytes together. It returns
// the reason of the first cut, "" if none was cut.
func (c *cutter) fillPages(pages []*page, room int) (reason operation.CutReason, err error) {
	for _, g := range pages {
		t := g.cut
		room += g.slackBytes()
		most := t.base + room/t.occurrences
		if err := c.fillPage(g, most); err != nil {
			return "", fault.AtPath(g.answerPath()[1:], err) // below the root field, whose path the writer has
		}
		room -= (g.frameBytes(t.size, g.more, g.truncated) + t.textBytes() - t.base) * t.occurrences
		if reason == "" {
			reason = t.reason
		}
	}
	return reason, nil
}

// fillPage takes elements into the page, which may have up to most bytes.
func (c *cutter) fillPage(g *page, most int) error {
	t := g.cut
	t.opened = true
	g.finish()
	defer t.feed.close()
	for t.size < t.first {
		found, err := t.findNext()
		switch {
		case fault.IsSpent(err):
			return c.endPage(g, operation.CutStatements, t.feed.lastKey())
		case err != nil:
			return err
		case !found:
			return nil
		}
		if on, err := c.takeElement(g, most); !on || err != nil {
			return err
		}
	}
	if t.first == 0 || t.size > 0 {
		found, err := t.findNext()
		if fault.IsSpent(err) {
			return c.endPage(g, operation.CutStatements, t.feed.lastKey())
		}
		g.more = found || g.more
		return err
	}
	return nil
}

// takeElement adds the ready element to the page, with as much of its inner pages as
// fits. It reports whether the page goes on.
func (c *cutter) takeElement(g *page, most int) (on bool, err error) {
	t := g.cut
	e, err := t.feed.load()
	if fault.IsSpent(err) {
		return false, c.endPage(g, operation.CutStatements, t.examinedKey)
	}
	if err != nil {
		return false, err
	}
	t.found = false
	before := t.examinedKey
	more := false
	if t.size+1 == t.first {
		// After the last element nothing else makes room for a longer "false".
		if more, err = t.findNext(); fault.IsSpent(err) {
			more, err = true, nil
		}
		more = more || t.rest
		if err != nil {
			return false, err
		}
	}
	outer := c.pages
	c.pages = nil
	marks := t.appendElement(g, e)
	inner := c.pages
	size := max(g.frameBytes(t.size+1, true, true), g.frameBytes(t.size+1, more, false)) + t.textBytes()
	for _, p := range inner {
		size += p.slackBytes()
	}
	if size > most {
		t.truncateTexts(marks)
		c.pages = outer
		return false, c.endFullPage(g, size-most, before)
	}
	c.givenElements++
	c.run.givenElements++
	t.noteTaken(e)
	reason, err := c.fillPages(inner, most-size)
	if err == nil && len(inner) > 0 {
		t.truncateTexts(marks)
		t.appendElement(g, e)
	}
	c.pages = outer
	if err != nil || reason == "" || t.size == t.first {
		return err == nil, err
	}
	// After an incomplete element the page ends.
	found, err := t.findNext()
	if fault.IsSpent(err) || found {
		return false, c.endPage(g, reason, e.key)
	}
	return false, err
}

// textMark is the end of a text, to which it can be truncated.
type textMark struct{ bytes, errs int }

// appendElement writes the element after the others and returns the previous ends
// of the texts.
func (t *cut) appendElement(g *page, e element) (marks []textMark) {
	marks = make([]textMark, len(t.texts))
	for i := range g.connection.fields {
		f, text := &g.connection.fields[i], &t.texts[i]
		marks[i] = textMark{len(text.json), len(text.errs)}
		if e.eventOnly && !f.events || f.kind != connectionNodes && f.kind != connectionEdges {
			continue
		}
		w := t.at.Fork(text.json)
		if len(w.B) > 0 {
			w.B = append(w.B, ',')
		}
		w.EnterList(f.key, t.size)
		if f.kind == connectionNodes {
			e.write(w, f.selection)
		} else {
			f.writeEdge(w, func(b []byte) []byte { return scalar.AppendString(b, t.seal(e.key)) }, func(selection int) { e.write(w, selection) })
		}
		text.json, text.errs = w.B, append(text.errs, w.Errors...)
	}
	return marks
}

func (t *cut) truncateTexts(marks []textMark) {
	for i, m := range marks {
		t.texts[i].json, t.texts[i].errs = t.texts[i].json[:m.bytes], t.texts[i].errs[:m.errs]
	}
}

func (t *cut) noteTaken(e element) {
	t.size++
	t.endKey = e.key
	if t.size == 1 {
		t.startKey = e.key
	}
}

func (t *cut) textBytes() (n int) {
	for i := range t.texts {
		n += len(t.texts[i].json)
	}
	return n
}

// endPage ends a page after the element with the key.
func (c *cutter) endPage(g *page, reason operation.CutReason, key []byte) error {
	t := g.cut
	if reason == operation.CutStatements && key == nil && !c.mayBeEmpty(c.fieldBound.Reads <= c.run.Allowed.Reads) {
		return c.needsStatements(g)
	}
	cursor := t.seal(key)
	t.reason, t.endKey = reason, key
	if g.connection.cursors {
		t.end = quotedLen(cursor)
	}
	g.more, g.truncated, g.end = true, true, ""
	c.run.noteCut(operation.Cut{Path: g.answerPath(), Reason: reason, Cursor: cursor})
	return nil
}

// endFullPage ends a page before an element that is too long by over bytes.
func (c *cutter) endFullPage(g *page, over int, key []byte) error {
	if key == nil && !c.mayBeEmpty(c.ownBytes) {
		return fault.NeedsBytes(c.bound, c.bound.Bytes+over)
	}
	return c.endPage(g, c.bound.CutReason(), key)
}

// mayBeEmpty reports whether a page may stay without an element. Another page
// under the same budget must have got one, so that a walk makes progress.
func (c *cutter) mayBeEmpty(own bool) bool {
	return c.givenElements > 0 || !own && c.run.givenElements > 0
}

// needsStatements measures, bounded by time only, how many statements the
// first element takes.
func (c *cutter) needsStatements(g *page) error {
	return c.measureReads(func() error {
		g.cut.feed.limitToOne()
		return g.cut.readOne()
	})
}

// readOne reads the next element.
func (t *cut) readOne() error {
	found, err := t.findNext()
	if found && err == nil {
		_, err = t.feed.load()
	}
	return err
}

// measureReads measures how many statements read takes.
func (c *cutter) measureReads(read func() error) error {
	c.run.Meter.Limit(0)
	if err := read(); err != nil {
		return err
	}
	used, most := c.run.Meter.Read(), c.run.Allowed.Reads
	if c.fieldBound.Reads <= most {
		used, most = c.spent+used-c.meterStart, c.fieldBound.Reads
	}
	return &fault.BudgetError{
		Message: fmt.Sprintf("the first element needs more than %d statements", most),
		Member:  "maxStatements", Needs: int(used),
	}
}

// answerPath is the page's path in the answer.
func (g *page) answerPath() ast.Path { return g.cut.at.Path() }

// frameBytes is the number of bytes of the page without its elements.
func (g *page) frameBytes(size int, more, truncated bool) int {
	return g.cut.fixed + g.infoBytes(size, more, truncated)
}

// endCursors returns the cursors of the page.
func (t *cut) endCursors(truncated bool) (start, end string) {
	if t.size > 0 {
		start = t.seal(t.startKey)
	}
	if t.size > 0 || truncated {
		end = t.seal(t.endKey)
	}
	return start, end
}

// countInfoFields counts the fields of pageInfo with this name.
func (c *connection) countInfoFields(name string) (n int) {
	for i := range c.fields {
		for _, f := range c.fields[i].info {
			if f.name == name {
				n++
			}
		}
	}
	return n
}

// infoBytes is the number of bytes of all values in pageInfo.
func (g *page) infoBytes(size int, more, truncated bool) (n int) {
	t := g.cut
	for i := range g.connection.fields {
		for _, f := range g.connection.fields[i].info {
			switch {
			case f.name == "hasNextPage":
				n += boolLen(more)
			case f.name == "truncated":
				n += boolLen(truncated)
			case f.name != "startCursor" && f.name != "endCursor":
			case size > 0:
				n += t.cursor
			case f.name == "endCursor" && (truncated || t.restEnd != ""):
				n += t.end
			default:
				n += len("null")
			}
		}
	}
	return n
}

func boolLen(b bool) int {
	if b {
		return len("true")
	}
	return len("false")
}

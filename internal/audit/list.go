package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/channels/actions"
	"koine/channels/channel"
	"koine/kg"
)

// Commits reads commits (kg.Store).
type Commits interface {
	Head() kg.Position
	Oldest() kg.Position
	Commit(context.Context, kg.Principal, kg.Revision) (*kg.Commit, error)
	Resolve(context.Context, kg.Moment) (kg.Revision, error)
}

// MaxScanned is the maximum number of commits read for one page.
const MaxScanned = 10_000

// Query selects entries. The zero value of a field selects all.
type Query struct {
	First            int // maximum number of entries, at least 1
	After            string
	Principal, Actor kg.AgentID
	Since, Until     time.Time // both inclusive
	Kinds            []Kind
	// Channel selects the entries that concern this channel.
	Channel channel.ID
}

// Page is a page of entries, newest first.
type Page struct {
	Entries []Entry
	// End is the cursor for the next page.
	End  string
	More bool
}

// cursor is a position in the list. Entries that are older than both parts follow.
type cursor struct {
	revision kg.Revision // of the next commit; 0 for none
	number   uint64      // of the last returned refusal
}

func (p cursor) String() string {
	return strconv.FormatUint(uint64(p.revision), 10) + "." + strconv.FormatUint(p.number, 10)
}

func parseCursor(text string) (p cursor, err error) {
	revision, number, ok := strings.Cut(text, ".")
	r, rerr := strconv.ParseUint(revision, 10, 64)
	n, nerr := strconv.ParseUint(number, 10, 64)
	if !ok || rerr != nil || nerr != nil {
		return p, kg.Errorf(kg.CodeInvalid, "is not a cursor of this list").At("after")
	}
	return cursor{kg.Revision(r), n}, nil
}

// List returns commits and refusals, newest first. It does not check permissions: the
// caller must ensure that only administrators see the result. A page ends after
// MaxScanned commits, possibly without an entry, and continues at its End.
func List(ctx context.Context, commits Commits, trail *Trail, q Query) (*Page, error) {
	at := cursor{commits.Head().Revision, math.MaxUint64}
	if q.After != "" {
		var err error
		if at, err = parseCursor(q.After); err != nil {
			return nil, err
		}
		at.revision = min(at.revision, commits.Head().Revision)
	}
	l := &lister{ctx: ctx, commits: commits, query: q, cursor: at, oldest: commits.Oldest().Revision, page: &Page{}}
	if q.After == "" && !q.Until.IsZero() {
		if err := l.seekUntil(); err != nil {
			return nil, err
		}
	}
	l.refusals = trail.entriesBefore(at.number, l.matchesQuery)
	if err := l.run(); err != nil {
		return nil, err
	}
	return l.page, nil
}

// seekUntil moves to the newest commit that is not later than Query.Until.
func (l *lister) seekUntil() error {
	r, err := l.commits.Resolve(l.ctx, kg.Moment{Time: l.query.Until})
	switch {
	case kg.CodeOf(err) == kg.CodeRevisionGone:
		l.cursor.revision = l.oldest
	case err != nil:
		return err
	default:
		l.cursor.revision = min(l.cursor.revision, r)
	}
	return nil
}

// lister merges commits and refusals into a page.
type lister struct {
	ctx      context.Context
	commits  Commits
	query    Query
	cursor   cursor
	oldest   kg.Revision // the log begins after it
	refusals []Entry     // remaining matching refusals, newest first
	commit   *Entry      // read but not yet in the page
	scanned  int
	page     *Page
}

// run adds entries until the page is full, the list ends, or MaxScanned commits were
// read.
func (l *lister) run() error {
	for {
		if err := l.readCommit(); err != nil {
			return err
		}
		ended := l.commit == nil && l.cursor.revision <= l.oldest
		if ended && len(l.refusals) == 0 {
			break
		}
		if l.commit == nil && !ended || len(l.page.Entries) == l.query.First {
			l.page.More = true
			break
		}
		l.appendNewest()
	}
	l.page.End = l.cursor.String()
	return nil
}

// readCommit reads the next matching commit into l.commit. l.commit stays nil at the
// end of the log or after MaxScanned commits.
func (l *lister) readCommit() error {
	for l.commit == nil && l.cursor.revision > l.oldest && l.scanned < MaxScanned {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		c, err := l.commits.Commit(l.ctx, kg.SystemPrincipal(), l.cursor.revision)
		if kg.CodeOf(err) == kg.CodeRevisionGone { // the log was truncated concurrently
			l.oldest = l.cursor.revision
			return nil
		}
		if err != nil {
			return fmt.Errorf("revision %d: %w", l.cursor.revision, err)
		}
		l.scanned++
		e := entryOf(c)
		if !l.query.Since.IsZero() && e.Time.Before(l.query.Since) {
			l.oldest = l.cursor.revision // all further commits are older
			return nil
		}
		if !l.matchesQuery(&e) {
			l.cursor.revision--
			continue
		}
		l.commit = &e
	}
	return nil
}

// appendNewest appends the newer of the next commit and the next refusal.
func (l *lister) appendNewest() {
	if l.commit != nil && (len(l.refusals) == 0 || !l.refusals[0].Time.After(l.commit.Time)) {
		l.cursor.revision--
		l.appendEntry(*l.commit)
		l.commit = nil
		return
	}
	e := l.refusals[0]
	l.refusals = l.refusals[1:]
	l.cursor.number = e.Refusal.number
	l.appendEntry(e)
}

func (l *lister) appendEntry(e Entry) {
	e.Cursor = l.cursor.String()
	l.page.Entries = append(l.page.Entries, e)
}

func (l *lister) matchesQuery(e *Entry) bool {
	q := &l.query
	return (q.Channel == "" || slices.ContainsFunc(e.Channels, func(a actions.Action) bool { return a.Channel == q.Channel })) &&
		(len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind)) &&
		(q.Principal == "" || q.Principal == e.Principal) && (q.Actor == "" || q.Actor == e.Actor) &&
		(q.Since.IsZero() || !e.Time.Before(q.Since)) && (q.Until.IsZero() || !e.Time.After(q.Until))
}

package channels

import (
	"cmp"
	"context"
	"slices"
	"time"

	"koine/kg"
)

// Bounds of a CountQuery.
const (
	MaxCountDays = 366
	MaxCounts    = 10_000 // of days and authors together
)

// CountQuery says which messages of a channel are counted.
type CountQuery struct {
	// From and To are in the first and in the last day that is looked at, in UTC. The
	// zero From is MaxCountDays before To or the making of the channel, whichever is
	// later; the zero To is today.
	From, To time.Time
	// Authors, if any, leaves out the messages of others.
	Authors []kg.AgentID
}

// AuthorCount is how many messages an author published in a channel in one day.
type AuthorCount struct {
	Day      time.Time // its beginning, in UTC
	Author   kg.AgentID
	Messages int64
}

// Counts tells how many messages there were in a channel, by day and author, in this
// order, and nothing of those who said nothing. The day is that of Message.Time.
// Whatever becomes of a message later, it stays counted: those of all days and authors
// together are as many as Channel.Messages, but for what was erased before it was
// counted. Who reads the channel may ask.
//
// Errors: CodeChannelNotFound; CodeInvalid for a period that ends before it begins;
// CodeLimitExceeded past MaxCountDays, MaxAuthorIDs or MaxCounts; CodeOverloaded while
// too much that was published just now is not counted yet.
func (s *Service) Counts(ctx context.Context, by Caller, id ChannelID, q CountQuery) ([]AuthorCount, error) {
	_, e, err := s.requireReadable(by, id)
	if err != nil {
		return nil, err
	}
	if err := q.normalize(e, s.options.Clock()); err != nil {
		return nil, err
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	found := tally{}
	for at := q.From; !at.After(q.To); at = at.AddDate(0, 0, 1) {
		if err := found.addStored(snapshot.Match, id, dayOf(at), q.Authors); err != nil {
			return nil, err
		}
		if len(found) > MaxCounts {
			return nil, errTooManyCounts()
		}
	}
	counted, err := countedUpTo(snapshot.Match, id)
	if err != nil {
		return nil, err
	}
	head, err := countMessages(snapshot, id)
	if err != nil {
		return nil, err
	}
	most := int64(s.options.CountBatch) * maxUncounted
	if head-counted >= int64(s.options.CountBatch) {
		s.counter.enqueue(id)
	}
	if head-counted > most {
		e := kg.Errorf(kg.CodeOverloaded, "%d messages of the channel are not counted yet", head-counted)
		e.RetryAfter = countPause
		return nil, e
	}
	if _, err := found.countFrom(snapshot, id, counted+1, most, nil); err != nil {
		return nil, err
	}
	return found.listCounts(&q)
}

// normalize refuses what cannot be, and brings the query into one form.
func (q *CountQuery) normalize(e *entry, now time.Time) error {
	if q.To.IsZero() {
		q.To = now
	}
	q.To = startOfDay(q.To)
	first := startOfDay(e.CreatedAt)
	if q.From.IsZero() {
		if q.From = q.To.AddDate(0, 0, 1-MaxCountDays); q.From.Before(first) {
			q.From = first
		}
		q.From = earlierOf(q.From, q.To)
	}
	q.From = startOfDay(q.From)
	switch days := q.To.Sub(q.From) / (24 * time.Hour); {
	case days < 0:
		return kg.Errorf(kg.CodeInvalid, "the period ends before it begins").At("to")
	case days >= MaxCountDays:
		return errTooMuch("from", "%d days are more than the %d that one counts at once", days+1, MaxCountDays)
	case len(q.Authors) > MaxAuthorIDs:
		return errTooMuch("authorIds", "%d authors are more than the %d that can be asked for", len(q.Authors), MaxAuthorIDs)
	}
	if q.From.Before(first) { // nothing was said by then
		q.From = first
	}
	q.To = earlierOf(q.To, startOfDay(now.Add(24*time.Hour))) // clocks differ
	q.Authors = sortedAgents(q.Authors)
	return nil
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func startOfDay(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// day is one of the calendar, in UTC, as 2026-11-22.
type day string

func dayOf(t time.Time) day { return day(t.UTC().Format(time.DateOnly)) }

// listCounts is what of the tally the query is about.
func (t tally) listCounts(q *CountQuery) ([]AuthorCount, error) {
	out := []AuthorCount{}
	from, to := dayOf(q.From), dayOf(q.To)
	for of, n := range t {
		if of.day < from || of.day > to || len(q.Authors) > 0 && !slices.Contains(q.Authors, of.author) {
			continue
		}
		at, err := time.Parse(time.DateOnly, string(of.day))
		if err != nil {
			return nil, err
		}
		out = append(out, AuthorCount{at, of.author, n})
	}
	if len(out) > MaxCounts {
		return nil, errTooManyCounts()
	}
	slices.SortFunc(out, func(a, b AuthorCount) int { return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Author, b.Author)) })
	return out, nil
}

func errTooManyCounts() *kg.Error {
	return errTooMuch("from", "there are more than %d counts by day and author: ask for fewer days, or authors", MaxCounts)
}

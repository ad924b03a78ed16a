package channels

import (
	"cmp"
	"context"
	"slices"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/counting"
	"koine/channels/internal/journal"
	"koine/kg"
)

// Limits of a CountQuery.
const (
	MaxCountDays = 366
	MaxCounts    = 10_000 // pairs of day and author
)

// CountQuery selects the messages to count.
type CountQuery struct {
	// From and To are times in the first and the last day, in UTC. The zero To means
	// today. The zero From means MaxCountDays before To, or the day on which the
	// channel was created if that is later.
	From, To time.Time
	// Authors restricts the count to these authors; nil counts all.
	Authors []kg.AgentID
}

// AuthorCount is the number of messages that an author published in a channel on one
// day.
type AuthorCount struct {
	Day      time.Time // start of the day, in UTC
	Author   kg.AgentID
	Messages int64
}

// Counts returns the number of messages in a channel by day and author, in this order,
// without zero counts. A message counts on the day of Message.Time and stays counted
// after its retraction or expiry: over all days and authors the counts add up to
// Channel.Messages, except for messages that were erased before they were counted. It
// requires read access.
//
// Errors: CodeChannelNotFound; CodeInvalid for a period that ends before it begins;
// CodeLimitExceeded above MaxCountDays, MaxAuthorIDs or MaxCounts; CodeOverloaded while
// too many recent messages are uncounted.
func (s *Service) Counts(ctx context.Context, by Caller, id channel.ID, q CountQuery) ([]AuthorCount, error) {
	_, e, snapshot, err := s.journal.ReadableView(ctx, by, id)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	if err := q.normalize(e, s.options.Clock()); err != nil {
		return nil, err
	}
	found := counting.Tally{}
	for at := q.From; !at.After(q.To); at = at.AddDate(0, 0, 1) {
		if err := found.AddStored(snapshot.Match, id, counting.DayOf(at), q.Authors); err != nil {
			return nil, err
		}
		if len(found) > MaxCounts {
			return nil, errTooManyCounts()
		}
	}
	counted, err := counting.CountedUpTo(snapshot.Match, id)
	if err != nil {
		return nil, err
	}
	head, err := journal.Count(snapshot, id)
	if err != nil {
		return nil, err
	}
	most := int64(s.options.CountBatch) * counting.MaxUncounted
	if head-counted >= int64(s.options.CountBatch) {
		s.counter.Enqueue(id)
	}
	if head-counted > most {
		e := kg.Errorf(kg.CodeOverloaded, "%d messages of the channel are still uncounted: retry later", head-counted)
		e.RetryAfter = counting.CountPause
		return nil, e
	}
	if _, err := found.CountFrom(snapshot, id, counted+1, most, nil); err != nil {
		return nil, err
	}
	return q.listCounts(found)
}

// normalize validates the query and fills in defaults.
func (q *CountQuery) normalize(e *access.Entry, now time.Time) error {
	if q.To.IsZero() {
		q.To = now
	}
	q.To = counting.StartOfDay(q.To)
	first := counting.StartOfDay(e.CreatedAt)
	if q.From.IsZero() {
		if q.From = q.To.AddDate(0, 0, 1-MaxCountDays); q.From.Before(first) {
			q.From = first
		}
		q.From = earlierOf(q.From, q.To)
	}
	q.From = counting.StartOfDay(q.From)
	switch days := q.To.Sub(q.From) / (24 * time.Hour); {
	case days < 0:
		return kg.Errorf(kg.CodeInvalid, "to is before from").At("to")
	case days >= MaxCountDays:
		return check.TooMuch("from", "period has %d days; the limit is %d", days+1, MaxCountDays)
	case len(q.Authors) > MaxAuthorIDs:
		return check.TooMuch("authorIds", "authorIds has %d authors; the limit is %d", len(q.Authors), MaxAuthorIDs)
	}
	if q.From.Before(first) { // the channel did not exist before
		q.From = first
	}
	q.To = earlierOf(q.To, counting.StartOfDay(now.Add(24*time.Hour))) // allows for clock skew
	q.Authors = check.SortedAgents(q.Authors)
	return nil
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// listCounts returns the counts that the query selects.
func (q *CountQuery) listCounts(t counting.Tally) ([]AuthorCount, error) {
	out := []AuthorCount{}
	from, to := counting.DayOf(q.From), counting.DayOf(q.To)
	for of, n := range t {
		if of.Day < from || of.Day > to || len(q.Authors) > 0 && !slices.Contains(q.Authors, of.Author) {
			continue
		}
		at, err := time.Parse(time.DateOnly, string(of.Day))
		if err != nil {
			return nil, err
		}
		out = append(out, AuthorCount{at, of.Author, n})
	}
	if len(out) > MaxCounts {
		return nil, errTooManyCounts()
	}
	slices.SortFunc(out, func(a, b AuthorCount) int { return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Author, b.Author)) })
	return out, nil
}

func errTooManyCounts() *kg.Error {
	return check.TooMuch("from", "result has more than %d counts by day and author: request fewer days or authors", MaxCounts)
}

// Package counting counts the messages of channels by day and author. Counter stores the
// counts in the background, in batches, so that publishing does not pay for them; a Tally
// adds the stored counts and the messages that are not counted yet.
package counting

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// authorDay is the key by which messages are counted.
type authorDay struct {
	Day    day
	Author kg.AgentID
}

// Tally is the number of messages by author and day.
type Tally map[authorDay]int64

// dayEntity returns the entity of a day of a channel. Channel ids have no slash.
func dayEntity(id channel.ID, d day) kg.Term {
	return kg.IRI(tallyPrefix + string(id) + "/" + string(d))
}

// tallyEntity returns the entity of the author's tally on a day of the channel.
func (a authorDay) tallyEntity(id channel.ID) kg.Term {
	sum := sha256.Sum256([]byte(a.Author))
	return kg.IRI(dayEntity(id, a.Day).Value() + "/" + hex.EncodeToString(sum[:16]))
}

// CountedUpTo returns the sequence up to which the messages of a channel are counted.
func CountedUpTo(match systemgraph.Matcher, id channel.ID) (n int64, err error) {
	st, _, err := systemgraph.First(match, kg.Pattern{Subject: id.Entity(), Predicate: vocab.CountedUpTo, Graph: id.ReceiptsGraph()})
	return vocab.IntegerOf(st.Object), err
}

// AddStored adds the stored counts of a day for these authors, or for all if there are
// none.
func (t Tally) AddStored(match systemgraph.Matcher, id channel.ID, d day, authors []kg.AgentID) error {
	graph := id.ReceiptsGraph()
	for _, author := range authors {
		of := authorDay{d, author}
		for st, err := range match(kg.Pattern{Subject: of.tallyEntity(id), Predicate: vocab.TallyCount, Graph: graph}) {
			if err != nil {
				return err
			}
			t[of] += vocab.IntegerOf(st.Object)
		}
	}
	if len(authors) > 0 {
		return nil
	}
	for link, err := range match(kg.Pattern{Subject: dayEntity(id, d), Predicate: vocab.Tally, Graph: graph}) {
		if err != nil {
			return err
		}
		of, n := authorDay{Day: d}, int64(0)
		for st, err := range match(kg.Pattern{Subject: link.Object, Graph: graph}) {
			if err != nil {
				return err
			}
			switch st.Predicate {
			case vocab.TallyAuthor:
				of.Author = kg.AgentID(st.Object.Value())
			case vocab.TallyCount:
				n = vocab.IntegerOf(st.Object)
			}
		}
		t[of] += n
	}
	return nil
}

// CountFrom counts up to most messages of a channel, starting with sequence from. It
// returns the last counted sequence, 0 for none. It stops early if full, if not nil,
// reports true.
func (t Tally) CountFrom(snapshot *kg.Snapshot, id channel.ID, from, most int64, full func(Tally) bool) (last int64, err error) {
	author, known, err := snapshot.ID(vocab.Author)
	if err != nil || !known {
		return 0, err
	}
	sent, known, err := snapshot.ID(vocab.Sent)
	if err != nil || !known {
		return 0, err
	}
	sweep := snapshot.Sweep()
	defer sweep.Close()
	object := func(row *kg.Row, property kg.ID) (object kg.Term, err error) {
		for sweep.Seek(kg.IDPattern{Subject: row.Subject, Predicate: property, Graph: row.Graph}, nil); sweep.Next(); {
			object, err = snapshot.Term(sweep.Row().Object)
		}
		if err == nil {
			err = sweep.Err()
		}
		return object, err
	}
	n := int64(0)
	for row, err := range snapshot.Numbered(id.MessagesGraph(), from) {
		if err != nil {
			return last, err
		}
		if n == most || full != nil && full(t) {
			break
		}
		by, err := object(&row, author)
		if err != nil {
			return last, err
		}
		when, err := object(&row, sent)
		if err != nil {
			return last, err
		}
		if at, ok := when.DateTimeValue(); ok && !by.IsZero() { // an erased message has no author
			t[authorDay{DayOf(at), kg.AgentID(by.Value())}]++
		}
		n++
		last = from + n - 1
	}
	return last, nil
}

// writeTo adds the counts to the stored ones within an update.
func (t Tally) writeTo(tx *kg.Tx, id channel.ID) error {
	graph := id.ReceiptsGraph()
	for of, n := range t {
		entity := of.tallyEntity(id)
		q := kg.Quad{Subject: entity, Predicate: vocab.TallyCount, Graph: graph}
		st, _, err := systemgraph.First(tx.MatchOwn, kg.Pattern(q))
		if err != nil {
			return err
		}
		before := vocab.IntegerOf(st.Object)
		q.Object = kg.Integer(before + n)
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q}); err != nil {
			return err
		}
		if before > 0 {
			continue
		}
		for _, q := range []kg.Quad{
			{Subject: dayEntity(id, of.Day), Predicate: vocab.Tally, Object: entity, Graph: graph},
			{Subject: entity, Predicate: vocab.TallyAuthor, Object: kg.IRI(string(of.Author)), Graph: graph},
		} {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
	}
	return nil
}

const tallyPrefix = "urn:koine:tally:"

func StartOfDay(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// day is a calendar day in UTC, formatted as 2026-11-22.
type day string

func DayOf(t time.Time) day { return day(t.UTC().Format(time.DateOnly)) }

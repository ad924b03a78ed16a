package channels_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/slowtest"
	"koine/kg"
)

// counted is the result of Counts, as "2025-06-15 ann:3" and so on.
func (s *server) counted(t testing.TB, id channel.ID, q channels.CountQuery) string {
	t.Helper()
	list, err := s.Counts(within(t), as("ann"), id, q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s %s:%d", c.Day.Format(time.DateOnly), strings.TrimPrefix(string(c.Author), "agent://"), c.Messages))
	}
	return strings.Join(out, " ")
}

// writtenDown is the sequence number up to which the stored counts of a channel include its
// messages.
func (s *server) writtenDown(t testing.TB, id channel.ID) (upTo int64) {
	t.Helper()
	snapshot, err := s.store.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Subject: id.Entity(), Predicate: kg.IRI(kg.OwnVocabulary + "countedUpTo"), Graph: id.ReceiptsGraph()}) {
		if err != nil {
			t.Fatal(err)
		}
		if upTo, err = strconv.ParseInt(st.Object.Value(), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return upTo
}

// Counts equal those of a separate computation, before and after they are written, after a
// restart, and regardless of later changes of the messages.
func TestCounts(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now, CountBatch: 4}, kg.Options{Clock: clock.now})
	c, err := s.Create(within(t), as("ann"), channel.Draft{KeepMessages: 7, Members: []channel.Member{{Agent: "agent://bob"}, {Agent: "agent://cleo"}}})
	if err != nil {
		t.Fatal(err)
	}
	first := clock.now()
	other := s.make(t, channel.Public, "bob")
	want := map[string]map[string]int{} // by day and author
	said := func(who string) {
		day := clock.now().Format(time.DateOnly)
		if want[day] == nil {
			want[day] = map[string]int{}
		}
		want[day][who]++
	}
	reckoned := func(from, to time.Time, authors ...string) string {
		var out []string
		for at := from; at.Format(time.DateOnly) <= to.Format(time.DateOnly); at = at.AddDate(0, 0, 1) {
			for _, who := range authors {
				if n := want[at.Format(time.DateOnly)][who]; n > 0 {
					out = append(out, fmt.Sprintf("%s %s:%d", at.Format(time.DateOnly), who, n))
				}
			}
		}
		return strings.Join(out, " ")
	}
	check := func() {
		t.Helper()
		now := clock.now()
		for _, row := range []struct {
			q    channels.CountQuery
			want string
		}{
			{channels.CountQuery{}, reckoned(first, now, "ann", "bob", "cleo")},
			{channels.CountQuery{Authors: []kg.AgentID{"cleo", "bob", "nobody"}}, reckoned(first, now, "bob", "cleo")},
			{channels.CountQuery{From: first.AddDate(0, 0, 1), To: first.AddDate(0, 0, 2)}, reckoned(first.AddDate(0, 0, 1), first.AddDate(0, 0, 2), "ann", "bob", "cleo")},
			{channels.CountQuery{From: now, To: now, Authors: []kg.AgentID{"agent://ann"}}, reckoned(now, now, "ann")},
			{channels.CountQuery{To: first.AddDate(0, 0, -1)}, ""},
			{channels.CountQuery{From: now.AddDate(1, 0, 0), To: now.AddDate(1, 0, 1)}, ""},
		} {
			if got := s.counted(t, c.ID, row.q); got != row.want {
				t.Fatalf("%+v:\ngot  %s\nwant %s", row.q, got, row.want)
			}
		}
	}
	check()
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 90 {
		who := []string{"ann", "bob", "cleo"}[dice.IntN(3)]
		var m *message.Message
		switch i % 4 {
		case 0:
			m = s.mustSend(t, who, c.ID, message.Envelope{To: "bob", ExpiresAt: clock.now().Add(time.Hour)})
		default:
			m = s.say(t, who, c.ID, "%d", i)
		}
		said(who)
		if i%7 == 0 {
			if _, err := s.Retract(within(t), as(who), channels.Retraction{Channel: c.ID, Message: m.ID}); err != nil {
				t.Fatal(err)
			}
			said(who)
		}
		s.say(t, "bob", other.ID, "elsewhere")
		clock.step(time.Duration(dice.IntN(3)) * time.Hour)
		if i%30 == 29 {
			s.restart(t)
			check()
		}
		if i%5 == 0 {
			check()
		}
	}
	total, now := int64(0), clock.now()
	list, err := s.Counts(within(t), as("cleo"), c.ID, channels.CountQuery{From: first, To: now})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		total += one.Messages
	}
	if c, err = s.Get(within(t), as("ann"), c.ID); err != nil || c.Messages != total {
		t.Errorf("%d messages are counted of %d, %v", total, c.Messages, err)
	}
	eventually(t, "they are written down", func() bool { return total-s.writtenDown(t, c.ID) < 4 })
	check()
	if _, err := s.CloseChannel(within(t), as("ann"), c.ID, ""); err != nil {
		t.Fatal(err)
	}
	check()
	_, err = s.Counts(within(t), as("eve"), c.ID, channels.CountQuery{})
	wantCode(t, "an outsider", err, kg.CodeChannelNotFound)
	_, err = s.Counts(within(t), as("eve"), other.ID, channels.CountQuery{})
	wantCode(t, "who reads it", err, "")
}

// To publish writes no count: so many messages share a commit.
func TestCountsAreGathered(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{CountBatch: 50}, kg.Options{})
	c := s.make(t, channel.Private)
	before := s.store.Head().Revision
	for range 49 {
		s.say(t, "ann", c.ID, "much")
	}
	if n := s.store.Head().Revision - before; n != 49 || s.writtenDown(t, c.ID) != 0 {
		t.Errorf("%d commits, counted up to %d", n, s.writtenDown(t, c.ID))
	}
	s.say(t, "ann", c.ID, "much")
	eventually(t, "counted", func() bool { return s.writtenDown(t, c.ID) == 50 })
	if n := s.store.Head().Revision - before; n != 51 {
		t.Errorf("%d commits", n)
	}
}

func TestBoundsOfCounts(t *testing.T) {
	s := serve(t, channels.Options{CountBatch: 2}, kg.Options{})
	c := s.make(t, channel.Private)
	count := func(q channels.CountQuery) error {
		_, err := s.Counts(within(t), as("ann"), c.ID, q)
		return err
	}
	now := time.Now()
	most := make([]kg.AgentID, channels.MaxAuthorIDs)
	for i := range most {
		most[i] = kg.AgentID(fmt.Sprint("a", i))
	}
	for what, row := range map[string]struct {
		q    channels.CountQuery
		want kg.Code
	}{
		"the most days":    {channels.CountQuery{From: now.AddDate(0, 0, 1-channels.MaxCountDays), To: now}, ""},
		"a day more":       {channels.CountQuery{From: now.AddDate(0, 0, -channels.MaxCountDays), To: now}, kg.CodeLimitExceeded},
		"no day":           {channels.CountQuery{From: now.AddDate(0, 0, 1), To: now}, kg.CodeInvalid},
		"the most authors": {channels.CountQuery{Authors: most}, ""},
		"an author more":   {channels.CountQuery{Authors: append(most, "one")}, kg.CodeLimitExceeded},
	} {
		wantCode(t, what, count(row.q), row.want)
	}
	// Messages not counted yet are read, up to a bound.
	s.Close()
	for range 40 {
		s.say(t, "ann", c.ID, "much")
	}
	wantCode(t, "as much as is read", count(channels.CountQuery{}), "")
	s.say(t, "ann", c.ID, "much")
	err := count(channels.CountQuery{})
	if wantCode(t, "more", err, kg.CodeOverloaded); kg.AsError(err).RetryAfter == 0 {
		t.Error("when to try again is not said")
	}
	s.restart(t)
	eventually(t, "counted", func() bool { return s.writtenDown(t, c.ID) == 40 })
	wantCode(t, "then", count(channels.CountQuery{}), "")
}

// A commit changes so many counts, and an answer has so many.
func TestBoundsOfTallies(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now, CountBatch: 100}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private)
	s.Close()
	const days = 1001
	for range days {
		s.say(t, "ann", c.ID, "one a day")
		clock.step(24 * time.Hour)
	}
	s.restart(t)
	eventually(t, "counted", func() bool { return s.writtenDown(t, c.ID) != 0 })
	if got := s.writtenDown(t, c.ID); got != 1000 {
		t.Errorf("the first commit counts up to %d", got)
	}
	list, err := s.Counts(within(t), as("ann"), c.ID, channels.CountQuery{From: c.CreatedAt.AddDate(0, 0, days-channels.MaxCountDays), To: c.CreatedAt.AddDate(0, 0, days-1)})
	if err != nil || len(list) != channels.MaxCountDays {
		t.Errorf("%d days, %v", len(list), err)
	}
	busy := s.make(t, channel.Private)
	day := kg.IRI("urn:koine:tally:" + string(busy.ID) + "/" + clock.now().Format(time.DateOnly))
	write := func(from, to int) {
		_, err := s.store.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			for i := from; i < to; i++ {
				one := kg.IRI(fmt.Sprintf("%s/%d", day.Value(), i))
				for _, q := range []kg.Quad{
					{Subject: day, Predicate: kg.IRI(kg.OwnVocabulary + "tally"), Object: one},
					{Subject: one, Predicate: kg.IRI(kg.OwnVocabulary + "tallyAuthor"), Object: kg.IRI(fmt.Sprintf("agent://a%d", i))},
					{Subject: one, Predicate: kg.IRI(kg.OwnVocabulary + "tallyCount"), Object: kg.Integer(1)},
				} {
					q.Graph = busy.ID.ReceiptsGraph()
					if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for from := 0; from < channels.MaxCounts; from += 1000 {
		write(from, from+1000)
	}
	if list, err = s.Counts(within(t), as("ann"), busy.ID, channels.CountQuery{}); err != nil || len(list) != channels.MaxCounts {
		t.Errorf("%d counts, %v", len(list), err)
	}
	write(channels.MaxCounts, channels.MaxCounts+1)
	_, err = s.Counts(within(t), as("ann"), busy.ID, channels.CountQuery{})
	wantCode(t, "one more", err, kg.CodeLimitExceeded)
}

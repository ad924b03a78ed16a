package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/audit"
	"koine/internal/caller"
	"koine/kg"
)

// bench is a store and a trail that share a clock.
type bench struct {
	t     *testing.T
	now   time.Time
	store *kg.Store
	trail *audit.Trail
	log   bytes.Buffer
}

var dawn = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newBench(t *testing.T, refusals int) *bench {
	b := &bench{t: t, now: dawn}
	clock := func() time.Time { return b.now }
	store, err := kg.Open(t.TempDir(), kg.Options{Clock: clock, FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	b.store = store
	b.trail = audit.NewTrail(audit.Options{MaxRefusals: refusals, Clock: clock, Logger: slog.New(slog.NewTextHandler(&b.log, nil))})
	return b
}

// tick lets time go on.
func (b *bench) tick() { b.now = b.now.Add(time.Second) }

// commit writes statements, one for each graph; a subject may stand before it.
func (b *bench) commit(principal, actor kg.AgentID, quads ...kg.Quad) {
	b.t.Helper()
	b.tick()
	_, err := b.store.Update(context.Background(), kg.Meta{Principal: kg.Principal{ID: principal}, Actor: actor, Justification: "because"}, func(tx *kg.Tx) error {
		for _, q := range quads {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func quad(subject, predicate string, graph kg.Term) kg.Quad {
	return kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI(predicate), Object: kg.String("x"), Graph: graph}
}

func (b *bench) refuse(kind audit.Kind, agent kg.AgentID, reason string) {
	b.tick()
	b.trail.Record(context.Background(), audit.Refusal{Kind: kind, Principal: agent, Reason: reason})
}

// format is an entry in a few words.
func format(e audit.Entry) string {
	text := fmt.Sprintf("%s %s", e.Kind, e.Principal)
	if e.Actor != e.Principal {
		text += " for " + string(e.Actor)
	}
	if e.Commit != nil {
		return fmt.Sprintf("%s r%d +%d -%d", text, e.Commit.Revision, e.Added, e.Removed)
	}
	return fmt.Sprintf("%s %s x%d", text, e.Refusal.Reason, e.Refusal.Count)
}

// list reads the whole list in pages of a size.
func (b *bench) list(size int, q audit.Query) (lines []string) {
	b.t.Helper()
	q.First = size
	for {
		page, err := audit.List(context.Background(), b.store, b.trail, q)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range page.Entries {
			lines = append(lines, format(e))
		}
		if len(page.Entries) > size || len(page.Entries) == 0 && page.More {
			b.t.Fatalf("a page of %d entries, more %t", len(page.Entries), page.More)
		}
		if !page.More {
			return lines
		}
		q.After = page.End
	}
}

func (b *bench) fill() {
	system, proposals := kg.SystemGraph, kg.IRI(kg.OwnGraphPrefix+"proposal:1")
	b.commit("agent://a", "", quad("urn:s", "urn:p", kg.DefaultGraph), quad("urn:s", "urn:q", kg.DefaultGraph))
	b.refuse(audit.Denied, "agent://b", "PERMISSION_DENIED")
	b.commit("agent://admin", "", quad("urn:koine:key:1", kg.OwnVocabulary+"keyOwner", system), quad("urn:s2", "urn:p", kg.DefaultGraph))
	b.commit("agent://admin", "agent://a", quad("urn:g", kg.OwnVocabulary+"graphOwner", system))
	b.refuse(audit.Authentication, "agent://anonymous", "UNAUTHENTICATED")
	b.commit("agent://a", "", quad("urn:koine:proposal:1", kg.OwnVocabulary+"proposedBy", proposals))
	b.commit("agent://admin", "", quad("urn:shape", "urn:p", kg.IRI(kg.OwnGraphPrefix+"shapes")))
}

func TestList(t *testing.T) {
	b := newBench(t, 0)
	b.fill()
	all := []string{
		"ADMIN agent://admin r5 +1 -0",
		"PROPOSAL agent://a r4 +1 -0",
		"AUTHENTICATION agent://anonymous UNAUTHENTICATED x1",
		"POLICY agent://admin for agent://a r3 +1 -0",
		"KEY agent://admin r2 +2 -0",
		"DENIED agent://b PERMISSION_DENIED x1",
		"UPDATE agent://a r1 +2 -0",
	}
	for _, size := range []int{1, 2, 3, 7, 100} {
		if diff := cmp.Diff(all, b.list(size, audit.Query{})); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", size, diff)
		}
	}
	for _, row := range []struct {
		name string
		q    audit.Query
		want []int
	}{
		{"a principal", audit.Query{Principal: "agent://a"}, []int{1, 6}},
		{"an actor", audit.Query{Actor: "agent://a"}, []int{1, 3, 6}},
		{"kinds", audit.Query{Kinds: []audit.Kind{audit.Denied, audit.Key}}, []int{4, 5}},
		{"since", audit.Query{Since: dawn.Add(5 * time.Second)}, []int{0, 1, 2}},
		{"until", audit.Query{Until: dawn.Add(5 * time.Second)}, []int{2, 3, 4, 5, 6}},
		{"a moment", audit.Query{Since: dawn.Add(2 * time.Second), Until: dawn.Add(2 * time.Second)}, []int{5}},
		{"before everything", audit.Query{Until: dawn}, nil},
		{"nobody", audit.Query{Principal: "agent://nobody"}, nil},
	} {
		var want []string
		for _, i := range row.want {
			want = append(want, all[i])
		}
		for _, size := range []int{1, 2, 100} {
			if diff := cmp.Diff(want, b.list(size, row.q)); diff != "" {
				t.Errorf("%s, pages of %d (-want +got):\n%s", row.name, size, diff)
			}
		}
	}
}

// Of a commit only author, time, reason and counts are listed, and no content.
func TestCommitsAreToldWithoutWhatTheyHold(t *testing.T) {
	b := newBench(t, 0)
	b.fill()
	page, err := audit.List(context.Background(), b.store, b.trail, audit.Query{First: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		if e.Commit != nil && (e.Commit.Changes != nil || e.Commit.IdempotencyKey != "" || e.Commit.Justification != "because") {
			t.Errorf("got %+v", e.Commit)
		}
	}
}

func TestAForeignCursor(t *testing.T) {
	b := newBench(t, 0)
	for _, cursor := range []string{"x", "1", "1.", ".1", "-1.2", "1.2.3", "99999999999999999999.1"} {
		_, err := audit.List(context.Background(), b.store, b.trail, audit.Query{First: 1, After: cursor})
		if e := kg.AsError(err); err == nil || e.Code != kg.CodeInvalid || e.Field != "after" {
			t.Errorf("%q: got %v", cursor, err)
		}
	}
	if _, err := audit.List(context.Background(), b.store, b.trail, audit.Query{First: 1, After: "99.99"}); err != nil {
		t.Errorf("a revision that is not there yet: %v", err)
	}
}

// Repetitions are counted for a minute, and logged once.
func TestRepetitionsAreOne(t *testing.T) {
	b := newBench(t, 0)
	for range 59 {
		b.refuse(audit.RateLimit, "agent://a", "RATE_LIMITED") // one a second
	}
	b.refuse(audit.RateLimit, "agent://b", "RATE_LIMITED")
	if diff := cmp.Diff([]string{"RATE_LIMIT agent://b RATE_LIMITED x1", "RATE_LIMIT agent://a RATE_LIMITED x59"}, b.list(10, audit.Query{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	b.refuse(audit.RateLimit, "agent://a", "RATE_LIMITED") // a minute after the first
	if got := b.list(1, audit.Query{})[0]; got != "RATE_LIMIT agent://a RATE_LIMITED x1" {
		t.Errorf("after a minute: got %s", got)
	}
	if n := strings.Count(b.log.String(), "msg=refused"); n != 3 {
		t.Errorf("%d lines, want 3:\n%s", n, b.log.String())
	}
}

// At the bound all are kept, past it the oldest goes.
func TestTheTrailIsBounded(t *testing.T) {
	b := newBench(t, 3)
	for _, agent := range []kg.AgentID{"agent://1", "agent://2", "agent://3"} {
		b.refuse(audit.Denied, agent, "RESERVED")
	}
	if got := b.list(10, audit.Query{}); len(got) != 3 || got[2] != "DENIED agent://1 RESERVED x1" {
		t.Errorf("at the bound: got %q", got)
	}
	b.refuse(audit.Denied, "agent://4", "RESERVED")
	if got := b.list(10, audit.Query{}); len(got) != 3 || got[2] != "DENIED agent://2 RESERVED x1" {
		t.Errorf("past the bound: got %q", got)
	}
	b.refuse(audit.Denied, "agent://1", "RESERVED") // which was forgotten
	if got := b.list(10, audit.Query{}); len(got) != 3 || got[0] != "DENIED agent://1 RESERVED x1" {
		t.Errorf("one that was forgotten: got %q", got)
	}
}

func TestRefusedTakesWhoTheContextCarries(t *testing.T) {
	b := newBench(t, 0)
	ctx := caller.With(context.Background(), caller.Caller{
		Principal: kg.Principal{ID: "agent://a"}, Actor: "agent://b", Address: netip.MustParseAddr("192.0.2.1"), Path: "/graphql", RequestID: "r1",
	})
	b.trail.RecordDenied(ctx, kg.CodeSourceForbidden)
	b.trail.RecordDenied(ctx, kg.CodeInvalid) // no refusal that matters
	page, err := audit.List(ctx, b.store, b.trail, audit.Query{First: 10})
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("got %v, %v, want one entry", page, err)
	}
	r := page.Entries[0].Refusal
	if r.Kind != audit.Denied || r.Principal != "agent://a" || r.Actor != "agent://b" || r.Address.String() != "192.0.2.1" ||
		r.Path != "/graphql" || r.RequestID != "r1" || r.Reason != "SOURCE_FORBIDDEN" || !r.First.Equal(dawn) {
		t.Errorf("got %+v", r)
	}
	want := `level=WARN msg=refused kind=DENIED reason=SOURCE_FORBIDDEN agent=agent://a actor=agent://b address=192.0.2.1 path=/graphql request=r1`
	if !strings.Contains(b.log.String(), want) {
		t.Errorf("logged %s", b.log.String())
	}
	var none *audit.Trail
	none.RecordDenied(ctx, kg.CodeReserved) // keeps nothing
}

// A page looks at so many commits and no more, and the next one goes on.
func TestAPageLooksAtABoundedPartOfTheLog(t *testing.T) {
	commits := &madeUp{head: audit.MaxScanned + 1}
	page, err := audit.List(context.Background(), commits, nil, audit.Query{First: 5, Principal: "agent://nobody"})
	if err != nil || len(page.Entries) != 0 || !page.More || commits.read != audit.MaxScanned {
		t.Fatalf("got %+v, %v after %d commits", page, err, commits.read)
	}
	page, err = audit.List(context.Background(), commits, nil, audit.Query{First: 5, Principal: "agent://nobody", After: page.End})
	if err != nil || len(page.Entries) != 0 || page.More || commits.read != audit.MaxScanned+1 {
		t.Fatalf("got %+v, %v after %d commits", page, err, commits.read)
	}
}

// madeUp is a log of commits that are all alike.
type madeUp struct {
	head kg.Revision
	read int
}

func (m *madeUp) Head() kg.Position   { return kg.Position{Revision: m.head} }
func (m *madeUp) Oldest() kg.Position { return kg.Position{} }
func (m *madeUp) Resolve(context.Context, kg.Moment) (kg.Revision, error) {
	return m.head, nil
}
func (m *madeUp) Commit(_ context.Context, _ kg.Principal, r kg.Revision) (*kg.Commit, error) {
	m.read++
	return &kg.Commit{Revision: r, Time: dawn, Principal: "agent://x", Actor: "agent://x"}, nil
}

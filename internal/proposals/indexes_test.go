package proposals_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"koine/internal/proposals"
	"koine/kg"
)

// TestLists compares the indexes with a full scan.
func TestLists(t *testing.T) {
	type proposal struct {
		author  kg.AgentID
		expires time.Time
		open    bool
	}
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, all := proposals.New(proposals.Options{}), map[string]proposal{}
	var handed, copied [][]string
	for range 2000 {
		id := fmt.Sprintf("%03d", random.IntN(300))
		p := proposal{kg.AgentID(fmt.Sprint("agent://", random.IntN(5))), start.Add(time.Duration(random.IntN(50)) * time.Hour), random.IntN(3) > 0}
		status := proposals.Pending
		if !p.open {
			status = proposals.Statuses[1+random.IntN(len(proposals.Statuses)-1)]
		}
		all[id] = p
		s.Note(id, p.author, p.expires, status)

		now, after := start.Add(time.Duration(random.IntN(50))*time.Hour), fmt.Sprintf("%03d", random.IntN(300))
		author := kg.AgentID(fmt.Sprint("agent://", random.IntN(5)))
		var ids, unended []string
		open, first := 0, time.Time{}
		for id, p := range all {
			if id > after {
				ids = append(ids, id)
			}
			if !p.open {
				continue
			}
			if id > after {
				unended = append(unended, id)
			}
			if p.author == author && now.Before(p.expires) {
				open++
			}
			if !now.Before(p.expires) && (first.IsZero() || p.expires.Before(first)) {
				first = p.expires
			}
		}
		slices.Sort(ids)
		slices.Sort(unended)
		got := s.All(after)
		if !slices.Equal(got, ids) || !slices.Equal(s.Unended(after), unended) {
			t.Fatalf("behind %s: got %v and %v, want %v and %v", after, got, s.Unended(after), ids, unended)
		}
		handed, copied = append(handed, got), append(copied, slices.Clone(got))
		if n := s.OpenOf(author, now); n != open {
			t.Fatalf("%s has %d open, want %d", author, n, open)
		}
		if id := s.Expired(now); !all[id].expires.Equal(first) || id != "" && !all[id].open {
			t.Fatalf("%q has expired: %+v, want one that did at %s", id, all[id], first)
		}
	}
	for i := range handed {
		if !slices.Equal(handed[i], copied[i]) {
			t.Fatal("a list that was handed out has changed")
		}
	}
}

// BenchmarkOpenProposals shows that the lookups of a held update do not depend on the
// number of ended proposals.
func BenchmarkOpenProposals(b *testing.B) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, decided := range []int{10, 10_000} {
		s := proposals.New(proposals.Options{})
		for i := range decided {
			s.Note(fmt.Sprintf("a%06d", i), "agent://ann", now.Add(time.Hour), proposals.Applied)
		}
		for i := range 20 {
			s.Note(fmt.Sprintf("b%06d", i), "agent://ann", now.Add(time.Hour), proposals.Pending)
		}
		b.Run(fmt.Sprint("decided=", decided), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s.OpenOf("agent://ann", now) != 20 || s.Expired(now) != "" || len(s.Unended("")) != 20 || len(s.All("b000010")) != 9 {
					b.Fatal("the lists are wrong")
				}
			}
		})
	}
}

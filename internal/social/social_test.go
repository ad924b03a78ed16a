package social_test

import (
	"testing"

	"koine/internal/social"
	"koine/kg"
)

// The network is deterministic, a longer one begins with a shorter one, all of it can
// be stored, and some statements repeat.
func TestStatements(t *testing.T) {
	const n = 20_000
	graph := kg.IRI("urn:g")
	var first []kg.Quad
	seen, again := make(map[kg.Quad]bool), 0
	for q := range social.Statements(n, graph) {
		for _, part := range []kg.Term{q.Subject, q.Predicate, q.Object} {
			if err := part.Valid(); err != nil {
				t.Fatalf("%v: %v", part, err)
			}
		}
		if q.Graph != graph {
			t.Fatalf("%v is in another graph", q)
		}
		if seen[q] {
			again++
		}
		seen[q] = true
		first = append(first, q)
	}
	if len(first) != n || again == 0 || again > n/20 {
		t.Errorf("%d statements, %d of them twice", len(first), again)
	}
	i := 0
	for q := range social.Statements(n/2, graph) {
		if q != first[i] {
			t.Fatalf("statement %d is %v, and was %v", i, q, first[i])
		}
		i++
	}
	if i != n/2 {
		t.Errorf("%d statements, want %d", i, n/2)
	}
	for range social.Statements(n, graph) {
		break
	}
}

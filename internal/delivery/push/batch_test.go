package push

import (
	"slices"
	"testing"

	"koine/kg"
)

// Configurations that have ended are written down as they are found: no more wait than
// one commit ends.
func TestEndedConfigurationsAreBatched(t *testing.T) {
	for n, want := range map[int][]int{0: nil, 1: {1}, maxEnded: {maxEnded}, maxEnded + 1: {maxEnded, 1}, 3*maxEnded + 5: {maxEnded, maxEnded, maxEnded, 5}} {
		var got []int
		b := batch{flush: func(list []kg.Statement) { got = append(got, len(list)) }}
		for i := range n {
			b.add(kg.Statement{})
			if len(b.list) >= maxEnded {
				t.Fatalf("of %d that were found, %d wait", i+1, len(b.list))
			}
		}
		b.finish()
		if !slices.Equal(got, want) {
			t.Errorf("%d are written down in batches of %v, want %v", n, got, want)
		}
	}
}

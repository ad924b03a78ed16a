package query

import (
	"testing"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// Sums and means with infinities are those of IEEE 754, in any order of the values.
func TestSumOfInfinities(t *testing.T) {
	for _, row := range []struct {
		values []string
		want   string
	}{
		{[]string{"INF"}, "INF"}, {[]string{"INF", "1.0E0"}, "INF"}, {[]string{"1.0E0", "INF"}, "INF"}, {[]string{"INF", "INF", "2"}, "INF"},
		{[]string{"-INF", "1"}, "-INF"}, {[]string{"1", "-INF"}, "-INF"}, {[]string{"INF", "-INF"}, "NaN"}, {[]string{"NaN", "1"}, "NaN"},
		{[]string{"1E308", "1E308", "1"}, "INF"}, {[]string{"1.5", "2"}, "3.5"},
	} {
		var s sum
		for _, text := range row.values {
			term := kg.Typed(text, kg.XSDDouble)
			s.add(&termValue{term: term, value: valuespace.Of(term)})
		}
		if got := s.sumTerm(); got != kg.Typed(row.want, kg.XSDDouble) {
			t.Errorf("the sum of %v is %v, want %s", row.values, got, row.want)
		}
		if got := s.meanTerm(); row.want != "3.5" && got != kg.Typed(row.want, kg.XSDDouble) {
			t.Errorf("the mean of %v is %v, want %s", row.values, got, row.want)
		}
	}
}

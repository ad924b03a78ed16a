package shapes

import (
	"context"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"time"
)

// TestMatchIsThatOfTheWholeText proves that a match that is paid for as it goes finds
// what one of the whole text finds, for short texts and for long ones.
func TestMatchIsThatOfTheWholeText(t *testing.T) {
	for _, pattern := range []string{`a`, `^a`, `a$`, `^a*$`, `^$`, `\bword\b`, `(?i)WORD`, `(?m)^word$`, `(?s)x.*y`, `ä+`, `[^\x00-\x7F]`, `b{2,40}c`, `z`, `\Aa+\z`, `a\B`} {
		re := regexp.MustCompile(pattern)
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"", "a", "word", "ä", "x\ny", strings.Repeat("b", 41) + "c", "one word", "no\nword\nno"} {
			for _, around := range []string{"", strings.Repeat("a", 1<<15), strings.Repeat("ä ", 1<<14)} {
				for _, whole := range []string{text, around + text, text + around, around + text + around} {
					m := newMeter(context.Background(), Budget{Steps: 1 << 30, Time: time.Hour})
					got, err := m.match(re, len(program.Inst), whole)
					if want := re.MatchString(whole); err != nil || got != want {
						t.Errorf("%q in %d bytes around %q: got %v, %v, want %v", pattern, len(whole), text, got, err, want)
					}
				}
			}
		}
	}
}

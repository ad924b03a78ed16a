package pacedregexp_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"koine/internal/pacedregexp"
	"koine/internal/slowtest"
)

// TestMatchIsThatOfTheWholeText proves that a match that pays as it reads finds the same as
// one of the whole text, for short texts and for long ones.
func TestMatchIsThatOfTheWholeText(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	free := func(int) error { return nil }
	for _, pattern := range []string{`a`, `^a`, `a$`, `^a*$`, `^$`, `\bword\b`, `(?i)WORD`, `(?m)^word$`, `(?s)x.*y`, `ä+`, `[^\x00-\x7F]`, `b{2,40}c`, `z`, `\Aa+\z`, `a\B`} {
		whole := regexp.MustCompile(pattern)
		paced, err := pacedregexp.Compile(pattern, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"", "a", "word", "ä", "x\ny", strings.Repeat("b", 41) + "c", "one word", "no\nword\nno"} {
			for _, around := range []string{"", strings.Repeat("a", 1<<15), strings.Repeat("ä ", 1<<14)} {
				for _, text := range []string{text, around + text, text + around, around + text + around} {
					got, err := paced.Match(text, free)
					if want := whole.MatchString(text); err != nil || got != want {
						t.Errorf("%q in %d bytes: got %v, %v, want %v", pattern, len(text), got, err, want)
					}
				}
			}
		}
	}
}

// TestMatchChargesAsItGoes proves that a match costs its instructions times the length
// of the text, that no charge is much larger than another, and that the first that is
// refused ends it.
func TestMatchChargesAsItGoes(t *testing.T) {
	re, err := pacedregexp.Compile(`[A-Z]{2,80}-[0-9]{4}`, 1000)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("A", 1<<16)
	paid, largest := 0, 0
	found, err := re.Match(text, func(steps int) error { paid += steps; largest = max(largest, steps); return nil })
	if want := re.Instructions() * len(text) / pacedregexp.InstructionsPerStep; found || err != nil || paid < want*9/10 || paid > want || largest > 64 {
		t.Errorf("got %v, %v, %d steps paid, at most %d at once, want %d", found, err, paid, largest, want)
	}
	refused, calls := errors.New("no more"), 0
	if _, err := re.Match(text, func(int) error { calls++; return refused }); err != refused || calls != 1 {
		t.Errorf("refused: got %v after %d charges", err, calls)
	}
}

// TestCompileIsBounded proves that an expression has so many instructions and no more.
func TestCompileIsBounded(t *testing.T) {
	re, err := pacedregexp.Compile(`a{10}`, 1000)
	if err != nil {
		t.Fatal(err)
	}
	n := re.Instructions()
	if _, err := pacedregexp.Compile(`a{10}`, n); err != nil {
		t.Errorf("%d instructions: %v", n, err)
	}
	var long *pacedregexp.TooLongError
	if _, err := pacedregexp.Compile(`a{10}`, n-1); !errors.As(err, &long) || long.Instructions != n {
		t.Errorf("%d instructions where %d are allowed: got %v", n, n-1, err)
	}
}

// Package pacedregexp matches regular expressions against texts of any length. A match
// is charged for while it runs, so that whoever pays can end it.
package pacedregexp

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// InstructionsPerStep is how many instructions of an expression count as one step,
	// each being executed for each character at most.
	InstructionsPerStep = 256
	// chargeEvery is after how many steps a match charges. They take some 100 µs.
	chargeEvery = 32
)

// Regexp is a compiled expression. It is safe for concurrent use.
type Regexp struct {
	re           *regexp.Regexp
	instructions int
}

// TooLongError reports an expression of more instructions than allowed.
type TooLongError struct{ Instructions, Max int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("comes to %d instructions, more than the %d that are allowed", e.Instructions, e.Max)
}

// Compile compiles an expression in the syntax of package regexp. The error is a
// *TooLongError if the expression has more than maxInstructions.
func Compile(source string, maxInstructions int) (*Regexp, error) {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > maxInstructions {
		return nil, &TooLongError{n, maxInstructions}
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	return &Regexp{re, len(program.Inst)}, nil
}

// Instructions is the number of instructions of the expression.
func (r *Regexp) Instructions() int { return r.instructions }

// Match reports whether the text has a match. It charges for what it executes as it
// goes, and returns the error of charge, which ends it.
func (r *Regexp) Match(text string, charge func(steps int) error) (bool, error) {
	if work := r.instructions * len(text); work <= chargeEvery*InstructionsPerStep {
		return r.re.MatchString(text), charge(work / InstructionsPerStep)
	}
	reader := runeReader{text: text, instructions: r.instructions, charge: charge}
	found := r.re.MatchReader(&reader)
	if reader.err == nil {
		reader.err = charge(reader.work / InstructionsPerStep)
	}
	return found && reader.err == nil, reader.err
}

// runeReader gives a text to an expression for as long as it is paid for.
type runeReader struct {
	text         string
	instructions int
	charge       func(steps int) error
	work         int // not charged for yet
	err          error
}

// ReadRune implements io.RuneReader. An error ends the match; it is kept in err.
func (r *runeReader) ReadRune() (c rune, size int, err error) {
	if r.text == "" || r.err != nil {
		return 0, 0, io.EOF
	}
	r.work += r.instructions
	if steps := r.work / InstructionsPerStep; steps >= chargeEvery {
		r.work %= InstructionsPerStep
		if r.err = r.charge(steps); r.err != nil {
			return 0, 0, io.EOF
		}
	}
	c, size = utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

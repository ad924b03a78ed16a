// Package pacedregexp matches regular expressions against texts of any length. It charges
// the caller's budget while a match runs, so that the caller can end it.
package pacedregexp

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// InstructionsPerStep is the number of instructions of an expression per step; each may be
	// executed once per character.
	InstructionsPerStep = 256
	// chargeEvery is the number of steps between two charges, which take some 100 µs.
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
	return fmt.Sprintf("compiles to %d instructions; the limit is %d", e.Instructions, e.Max)
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

// Instructions returns the number of instructions of the expression.
func (r *Regexp) Instructions() int { return r.instructions }

// Match reports whether the text has a match. It charges for the executed instructions as
// it goes. An error of charge ends the match and is returned.
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

// runeReader passes a text to an expression as long as charge accepts.
type runeReader struct {
	text         string
	instructions int
	charge       func(steps int) error
	work         int // uncharged instructions
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

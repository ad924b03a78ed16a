package query

import (
	"context"
	"errors"
	"fmt"
	"regexp/syntax"
	"runtime"
	"strings"

	"koine/internal/pacedregexp"
	"koine/kg"
)

// Bounds of a regular expression. RE2 takes at most time proportional to the
// length of the text times the number of compiled instructions. For a long
// text that may be seconds, so a match ends with its context.
const (
	MaxRegexBytes        = 1_000
	MaxRegexInstructions = 500
)

// matchRegex compiles a regular expression in RE2 syntax, nil for none. The
// test looks for a match anywhere in a text. It reports false when ctx is
// done, which does not matter: reading.answer discards answers read under such
// a context.
func matchRegex(ctx context.Context, expression *string) (func(text string) bool, error) {
	if expression == nil {
		return nil, nil
	}
	text := *expression
	if len(text) > MaxRegexBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the regular expression has %d bytes; at most %d are allowed", len(text), MaxRegexBytes).At("regex")
	}
	re, err := pacedregexp.Compile(text, MaxRegexInstructions)
	if long := (*pacedregexp.TooLongError)(nil); errors.As(err, &long) {
		e := kg.Errorf(kg.CodeLimitExceeded, "the regular expression compiles to %d instructions; at most %d are allowed", long.Instructions, MaxRegexInstructions)
		e.Hint = "Reduce the repetitions: {m,n} is expanded n times."
		return nil, e.At("regex")
	}
	if err != nil {
		return nil, regexError(text, err).At("regex")
	}
	charge := func(int) error {
		runtime.Gosched() // so that light queries do not wait for a long match
		return ctx.Err()
	}
	return func(text string) bool {
		found, err := re.Match(text, charge)
		return found && err == nil
	}, nil
}

// regexError describes a syntax error, with its offset if the parser reports
// one.
func regexError(text string, err error) *kg.Error {
	var wrong *syntax.Error
	if !errors.As(err, &wrong) {
		return kg.Errorf(kg.CodeInvalid, "the regular expression is invalid: %v", err)
	}
	where := ""
	if at := wrongAt(text, wrong); at >= 0 {
		where = fmt.Sprintf(" at offset %d, %.60q", at, text[at:min(len(text), at+max(1, len(wrong.Expr)))])
	}
	e := kg.Errorf(kg.CodeInvalid, "the regular expression %.60q is invalid: %s%s", text, wrong.Code, where)
	e.Hint = "The syntax is RE2, without backreferences and lookaround. Escape special characters with a backslash, which is doubled in a GraphQL string."
	return e
}

// wrongAt returns the offset of a syntax error, -1 if it has none. For
// parentheses the parser reports the whole expression.
func wrongAt(text string, wrong *syntax.Error) int {
	switch wrong.Code {
	case syntax.ErrMissingParen: // the outermost one left open
		for i := len(text) - 1; i >= 0; i-- {
			if text[i] == '(' && parsesRegex(text[:i]) {
				wrong.Expr = ""
				return i
			}
		}
	case syntax.ErrUnexpectedParen: // the first one that closes nothing
		for i := range len(text) {
			if text[i] == ')' && parsesRegex(text[:i]) && !parsesRegex(text[:i+1]) {
				wrong.Expr = ""
				return i
			}
		}
	}
	return strings.Index(text, wrong.Expr)
}

func parsesRegex(text string) bool {
	_, err := syntax.Parse(text, syntax.Perl)
	return err == nil
}

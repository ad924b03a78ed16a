package query

import (
	"context"
	"reflect"
	"strings"

	"koine/kg"
)

// textMatch reports whether a condition holds for a text that may be absent.
type textMatch func(text string, there bool) bool

// matchText compiles a condition on a text. Only `exists: false` holds for an
// absent text. A nil f holds for any text.
func matchText(ctx context.Context, f *StringFilter) (textMatch, error) {
	if f == nil {
		return func(string, bool) bool { return true }, nil
	}
	tests, err := f.Substring.compile(ctx)
	if err != nil {
		return nil, err
	}
	tests = append(tests, orderedTest(f.Ordered.present(), strings.Compare, identityKey))
	onlyExists := reflect.DeepEqual(*f, StringFilter{Ordered: Ordered[string]{Exists: f.Exists}})
	return func(text string, there bool) bool {
		if f.Exists != nil && *f.Exists != there {
			return false
		}
		if !there {
			return onlyExists
		}
		return holdAll(tests, text)
	}, nil
}

// toLower returns the condition in lower case, except for the regular
// expression.
func (f *StringFilter) toLower() *StringFilter {
	out := *f
	for _, s := range [...]**string{&out.Eq, &out.Ne, &out.Lt, &out.Lte, &out.Gt, &out.Gte, &out.Contains, &out.StartsWith, &out.EndsWith} {
		if *s != nil {
			text := strings.ToLower(**s)
			*s = &text
		}
	}
	if f.In != nil {
		out.In = LowerAll(f.In)
	}
	if f.Nin != nil {
		out.Nin = LowerAll(f.Nin)
	}
	return &out
}

// compile compiles the members that are given.
func (f Substring) compile(ctx context.Context) (tests []func(string) bool, err error) {
	for _, part := range [...]struct {
		of   *string
		test func(text, part string) bool
	}{{f.Contains, strings.Contains}, {f.StartsWith, strings.HasPrefix}, {f.EndsWith, strings.HasSuffix}} {
		if part.of != nil {
			tests = append(tests, func(text string) bool { return part.test(text, *part.of) })
		}
	}
	re, err := matchRegex(ctx, f.Regex)
	if re != nil {
		tests = append(tests, re)
	}
	return tests, err
}

// compileFor compiles the condition for the text of a term; it does not hold if
// the term has none. A nil test always holds.
func (f Substring) compileFor(ctx context.Context, text func(kg.Term) (string, bool)) (termTest, error) {
	tests, err := f.compile(ctx)
	if len(tests) == 0 || err != nil {
		return nil, err
	}
	return func(t kg.Term) bool {
		s, ok := text(t)
		return ok && holdAll(tests, s)
	}, nil
}

func isText(t kg.Term) bool {
	return t.IsLiteral() && (t.Lang() != "" || t.Datatype() == kg.XSDString)
}

// LowerAll returns the texts in lower case.
func LowerAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

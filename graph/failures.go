package graph

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// maxFailures bounds the objects with failed fields in one answer of the
// engine. Beyond it the whole answer fails.
const maxFailures = 100

// failures collects the errors of fields that the generated code wrote inside
// of an answer of the engine. The engine does not know the path at which it
// writes. So the text of such an object gets a mark, and the marks are located
// when the answer is complete. Answers without failures pay nothing.
type failures struct {
	mark   string          // prefix of the marks' names
	errors []gqlerror.List // indexed by the mark's number; paths begin at the object
}

// markObject marks the text of an object with errors.
func (f *failures) markObject(text []byte, errs gqlerror.List) []byte {
	if f.mark == "" {
		f.mark = "failed " + rand.Text() + " " // no name in GraphQL has a space
	}
	out := append([]byte(`{"`+f.mark+strconv.Itoa(len(f.errors))+`":0`), ',')
	f.errors = append(f.errors, errs)
	if rest := text[1:]; len(rest) > 1 {
		return append(out, rest...)
	}
	return append(out[:len(out)-1], '}')
}

// presentedError is an error in its public form.
type presentedError struct{ err *gqlerror.Error }

func (p presentedError) Error() string { return p.err.Error() }

func (p presentedError) Unwrap() error { return p.err }

// placeErrors removes the marks from an answer that stands at a path, and returns
// the errors with their paths in the whole result.
func (f *failures) placeErrors(text []byte, at ast.Path) ([]byte, []error, error) {
	if len(f.errors) == 0 {
		return text, nil, nil
	}
	w := failureWalk{failures: f, text: json.NewDecoder(bytes.NewReader(text))}
	if err := w.walkValue(slices.Clone(at)); err != nil {
		return nil, nil, err
	}
	marks := regexp.MustCompile(`"` + regexp.QuoteMeta(f.mark) + `\d+":0,?`)
	return marks.ReplaceAll(text, nil), w.found, nil
}

// failureWalk walks through an answer.
type failureWalk struct {
	*failures
	text  *json.Decoder
	found []error
}

// walkValue walks through the value at the path.
func (w *failureWalk) walkValue(at ast.Path) error {
	token, err := w.text.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		for i := 0; w.text.More(); i++ {
			if err := w.walkValue(append(at, ast.PathIndex(i))); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		for w.text.More() {
			name, err := w.text.Token()
			if err != nil {
				return err
			}
			key, _ := name.(string)
			if n, marked := strings.CutPrefix(key, w.mark); marked {
				w.collectErrors(n, at)
			}
			if err := w.walkValue(append(at, ast.PathName(key))); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = w.text.Token()
	return err
}

// collectErrors collects the errors of a mark at the path.
func (w *failureWalk) collectErrors(n string, at ast.Path) {
	i, err := strconv.Atoi(n)
	if err != nil || i < 0 || i >= len(w.errors) {
		return
	}
	for _, e := range w.errors[i] {
		whole := *e
		whole.Path = slices.Concat(at, e.Path)
		w.found = append(w.found, presentedError{&whole})
	}
}

// asPresented returns the error if it is already in its public form.
func asPresented(err error) (*gqlerror.Error, bool) {
	var p presentedError
	is := errors.As(err, &p)
	return p.err, is
}

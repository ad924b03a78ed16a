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

// maxFailures bounds the objects inside of one answer of the engine in which fields
// have failed; past it the whole answer has.
const maxFailures = 100

// failures are the errors of fields inside of an answer of the engine's, of objects
// that the generated code wrote there. The engine does not know where in the answer it
// is when it writes. So such an object gets a mark, and what is marked is looked for
// when the answer is whole: this costs nothing where nothing fails.
type failures struct {
	mark string          // what the names of marks begin with
	of   []gqlerror.List // by the number of the mark; paths begin in the object
}

// keep marks the text of an object with errors.
func (f *failures) keep(text []byte, errs gqlerror.List) []byte {
	if f.mark == "" {
		f.mark = "failed " + rand.Text() + " " // no name in GraphQL has a space
	}
	out := append([]byte(`{"`+f.mark+strconv.Itoa(len(f.of))+`":0`), ',')
	f.of = append(f.of, errs)
	if rest := text[1:]; len(rest) > 1 {
		return append(out, rest...)
	}
	return append(out[:len(out)-1], '}')
}

// placed is an error in its final form.
type placed struct{ of *gqlerror.Error }

func (p placed) Error() string { return p.of.Error() }

func (p placed) Unwrap() error { return p.of }

// place takes the marks out of an answer, and gives the errors with the paths that they
// have in the answer that stands at a path.
func (f *failures) place(text []byte, at ast.Path) ([]byte, []error, error) {
	if len(f.of) == 0 {
		return text, nil, nil
	}
	w := failureWalk{failures: f, text: json.NewDecoder(bytes.NewReader(text))}
	if err := w.value(slices.Clone(at)); err != nil {
		return nil, nil, err
	}
	marks := regexp.MustCompile(`"` + regexp.QuoteMeta(f.mark) + `\d+":0,?`)
	return marks.ReplaceAll(text, nil), w.found, nil
}

// failureWalk goes through an answer.
type failureWalk struct {
	*failures
	text  *json.Decoder
	found []error
}

// value goes through the value that stands at the path.
func (w *failureWalk) value(at ast.Path) error {
	token, err := w.text.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		for i := 0; w.text.More(); i++ {
			if err := w.value(append(at, ast.PathIndex(i))); err != nil {
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
				w.take(n, at)
			}
			if err := w.value(append(at, ast.PathName(key))); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = w.text.Token()
	return err
}

// take takes in the errors of a mark that stands at the path.
func (w *failureWalk) take(n string, at ast.Path) {
	i, err := strconv.Atoi(n)
	if err != nil || i < 0 || i >= len(w.of) {
		return
	}
	for _, e := range w.of[i] {
		whole := *e
		whole.Path = slices.Concat(at, e.Path)
		w.found = append(w.found, placed{&whole})
	}
}

// isPlaced gives an error that has its form already.
func isPlaced(err error) (*gqlerror.Error, bool) {
	var p placed
	is := errors.As(err, &p)
	return p.of, is
}

package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Writer writes an answer as JSON. A field that fails becomes null, or makes
// the field that contains it fail if it must not be null, and its error is
// kept with its path.
type Writer struct {
	Ctx context.Context
	B   []byte
	// Errors are the errors of the fields written so far.
	Errors gqlerror.List
	// Present gives an error its public form, Recover makes an error of a
	// recovered panic.
	Present func(ctx context.Context, path ast.Path, at *ast.Position, err error) *gqlerror.Error
	Recover func(ctx context.Context, value any) error

	path []step
	// exceeded is set while a root field has more errors than MaxErrors.
	exceeded bool
}

// MaxErrors bounds the errors of an operation. A root field with more of them
// fails as a whole.
const MaxErrors = 100

// ErrTooManyErrors is the error of a root field in which too many fields failed.
var ErrTooManyErrors = errors.New("too many fields have failed")

// step is a step of the path at which the Writer writes.
type step struct {
	key   []byte // of a field, nil for an element of a list
	index int
	field *Selected // nil for a field of a Value
}

// errFailed is the error of a field after its own error was kept.
var errFailed = errors.New("a field that must not be null has failed")

// errNull is the error of a value that must not be null.
var errNull = errors.New("the value must not be null")

// EnterField begins a field with a key, as from Key. LeaveField ends it.
func (w *Writer) EnterField(key []byte) {
	w.B = append(w.B, key...)
	w.path = append(w.path, step{key: key})
}

// LeaveField ends a field or an element.
func (w *Writer) LeaveField() { w.path = w.path[:len(w.path)-1] }

// EnterElement begins an element of a list. LeaveField ends it.
func (w *Writer) EnterElement(i int) { w.path = append(w.path, step{index: i}) }

// Path returns the path of the field being written.
func (w *Writer) Path() ast.Path {
	out := make(ast.Path, len(w.path))
	for i, s := range w.path {
		if s.key == nil {
			out[i] = ast.PathIndex(s.index)
		} else {
			out[i] = ast.PathName(s.key[1 : len(s.key)-2])
		}
	}
	return out
}

// Fork returns a Writer at the same path that writes a text of its own.
func (w *Writer) Fork(b []byte) *Writer {
	fork := *w
	fork.B, fork.Errors, fork.path = b, nil, slices.Clone(w.path)
	return &fork
}

// AddErrors keeps errors whose paths begin at the path of the field being
// written.
func (w *Writer) AddErrors(errs gqlerror.List) {
	for _, err := range errs {
		e := *err
		e.Path = append(w.Path(), e.Path...)
		w.keep(&e)
	}
}

// KeepErrors keeps errors that have their whole paths.
func (w *Writer) KeepErrors(errs gqlerror.List) {
	for _, err := range errs {
		w.keep(err)
	}
}

func (w *Writer) keep(err *gqlerror.Error) {
	if len(w.Errors) == MaxErrors {
		w.exceeded = true
		return
	}
	w.Errors = append(w.Errors, err)
}

// Object writes the selected fields of an object.
func (w *Writer) Object(sel *Selection, of any) error {
	w.B = append(w.B, '{')
	for i := range sel.Fields {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		if err := w.Field(sel.Object, &sel.Fields[i], of); err != nil {
			return err
		}
	}
	w.B = append(w.B, '}')
	return nil
}

// Field writes a field with its key. It returns an error only if the field
// must not be null; that error is already kept.
func (w *Writer) Field(object *Object, s *Selected, of any) error {
	if s.field == nil {
		w.B = append(append(append(append(w.B, s.key...), '"'), object.Name...), '"')
		return nil
	}
	begin := w.begin(s)
	return w.end(s, begin, w.resolve(s, of))
}

// FieldOf is Field with a function that writes the value.
func (w *Writer) FieldOf(s *Selected, write func(w *Writer) error) error {
	begin := w.begin(s)
	return w.end(s, begin, w.guard(func() error { return write(w) }))
}

// mark is the state of a Writer where the value of a field begins.
type mark struct{ bytes, depth, errs int }

func (w *Writer) begin(s *Selected) mark {
	w.B = append(w.B, s.key...)
	w.path = append(w.path, step{key: s.key, field: s})
	return mark{len(w.B), len(w.path), len(w.Errors)}
}

func (w *Writer) end(s *Selected, begin mark, err error) error {
	root := begin.depth == 1
	if err != nil && err != errFailed {
		w.path = w.path[:begin.depth] // a panic may have left more
		w.fail(err)
	}
	if w.exceeded {
		err = errFailed
		if root {
			w.Errors, w.exceeded = w.Errors[:min(begin.errs+1, len(w.Errors)-1)], false // the first says why
			w.path = w.path[:begin.depth]
			w.fail(ErrTooManyErrors)
		}
	}
	if err != nil {
		w.B = w.B[:begin.bytes]
		if !s.Definition.Type.NonNull && (root || !w.exceeded) {
			w.B, err = append(w.B, "null"...), nil
		} else {
			err = errFailed
		}
	}
	w.path = w.path[:begin.depth-1]
	return err
}

// Err returns ErrTooManyErrors if more fields have failed than errors are kept.
func (w *Writer) Err() error {
	if w.exceeded {
		return ErrTooManyErrors
	}
	return nil
}

// Failed writes null for a field of a Value that has failed, and keeps its error.
// at is the field's place in the document.
func (w *Writer) Failed(at *ast.Position, err error) {
	w.keep(w.Present(w.Ctx, w.Path(), at, err))
	w.B = append(w.B, "null"...)
}

// fail keeps the error of the field being written.
func (w *Writer) fail(err error) {
	if err == errFailed {
		return
	}
	var at *ast.Position
	for _, s := range w.path {
		if s.field != nil {
			at = s.field.Position
		}
	}
	w.keep(w.Present(w.Ctx, w.Path(), at, err))
}

func (w *Writer) resolve(s *Selected, of any) (err error) {
	defer w.recoverTo(&err)
	if s.argsErr != nil {
		return s.argsErr
	}
	return s.field.Write(w, s, of)
}

func (w *Writer) guard(write func() error) (err error) {
	defer w.recoverTo(&err)
	return write()
}

func (w *Writer) recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = w.Recover(w.Ctx, p)
	}
}

// List writes a list. element writes an element, which is null if it fails and
// nullable is true.
func List[T any](w *Writer, list []T, nullable bool, element func(v *T) error) error {
	return w.list(len(list), nullable, func(i int) error { return element(&list[i]) })
}

// list is List for elements by their index: one body for the lists of all types.
func (w *Writer) list(n int, nullable bool, element func(i int) error) error {
	w.B = append(w.B, '[')
	for i := range n {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		from := len(w.B)
		w.EnterElement(i)
		err := element(i)
		if err != nil && nullable && !w.exceeded {
			w.fail(err)
			w.B, err = append(w.B[:from], "null"...), nil
		}
		if err != nil {
			w.fail(err)
			return errFailed
		}
		w.LeaveField()
	}
	w.B = append(w.B, ']')
	return nil
}

// EnterList begins an element of a field that is a list, without writing the
// field's key.
func (w *Writer) EnterList(key []byte, i int) {
	w.path = append(w.path, step{key: key}, step{index: i})
}

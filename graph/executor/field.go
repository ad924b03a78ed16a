package executor

import (
	"context"
)

// An Encoder writes the value of a field. A nil value is null, or an error if
// the field must not be null.
type Encoder[V any] func(w *Writer, s *Selected, v V) error

// The constructors of fields are not inlined: each entry of the tables would have a
// copy of their closures.

// WrittenBy returns a field that a function writes.
//
//go:noinline
func WrittenBy(write func(w *Writer, s *Selected, of any) error) *Field { return &Field{Write: write} }

// Get returns a field that cannot fail.
//
//go:noinline
func Get[O, V any](get func(*O) V, write Encoder[V]) *Field {
	return &Field{Write: func(w *Writer, s *Selected, of any) error { return write(w, s, get(of.(*O))) }}
}

// GetErr returns a field that reads memory.
//
//go:noinline
func GetErr[O, V any](get func(*O) (V, error), write Encoder[V]) *Field {
	return &Field{Write: func(w *Writer, s *Selected, of any) error {
		v, err := get(of.(*O))
		if err != nil {
			return err
		}
		return write(w, s, v)
	}}
}

// GetContext is Get for a function with the operation's context.
//
//go:noinline
func GetContext[O, V any](get func(*O, context.Context) V, write Encoder[V]) *Field {
	return &Field{Write: func(w *Writer, s *Selected, of any) error { return write(w, s, get(of.(*O), w.Ctx)) }}
}

// Read returns a field that is read.
//
//go:noinline
func Read[O, V any](read func(*O, context.Context) (V, error), write Encoder[V]) *Field {
	return &Field{Write: func(w *Writer, s *Selected, of any) error {
		v, err := read(of.(*O), w.Ctx)
		if err != nil {
			return err
		}
		return write(w, s, v)
	}}
}

// ReadArgs returns a field with arguments.
//
//go:noinline
func ReadArgs[O, A, V any](coerce func(*Coercer, map[string]any) (*A, error), read func(*O, context.Context, *A) (V, error), write Encoder[V]) *Field {
	return &Field{Args: untyped(coerce), Write: func(w *Writer, s *Selected, of any) error {
		v, err := read(of.(*O), w.Ctx, s.Args.(*A))
		if err != nil {
			return err
		}
		return write(w, s, v)
	}}
}

// Plan returns a field that plans its selection. write is WriteValue, or that
// of an interface.
//
//go:noinline
func Plan[O, V any](read func(*O, context.Context, *Selected) (V, error), write Encoder[V]) *Field {
	return &Field{Write: func(w *Writer, s *Selected, of any) error {
		v, err := read(of.(*O), w.Ctx, s)
		if err != nil {
			return err
		}
		return write(w, s, v)
	}}
}

// PlanArgs is Plan for a field with arguments.
//
//go:noinline
func PlanArgs[O, A, V any](coerce func(*Coercer, map[string]any) (*A, error), read func(*O, context.Context, *Selected, *A) (V, error), write Encoder[V]) *Field {
	return &Field{Args: untyped(coerce), Write: func(w *Writer, s *Selected, of any) error {
		v, err := read(of.(*O), w.Ctx, s, s.Args.(*A))
		if err != nil {
			return err
		}
		return write(w, s, v)
	}}
}

// Subscribe returns a root field of subscriptions.
func Subscribe[O, A, S any](coerce func(*Coercer, map[string]any) (*A, error), subscribe func(*O, context.Context, *Selected, *A) (S, error)) *Field {
	return &Field{Args: untyped(coerce), Subscribe: func(ctx context.Context, s *Selected) (any, error) {
		return subscribe(new(O), ctx, s, s.Args.(*A))
	}}
}

func untyped[A any](coerce func(*Coercer, map[string]any) (*A, error)) func(*Coercer, map[string]any) (any, error) {
	return func(c *Coercer, raw map[string]any) (any, error) { return coerce(c, raw) }
}

// Nil writes null, or fails if the field must not be null.
func (w *Writer) Nil(s *Selected) error {
	if s.Definition.Type.NonNull {
		return errNull
	}
	w.B = append(w.B, "null"...)
	return nil
}

// Leaf returns the encoder of a scalar or an enum.
func Leaf[V any](appendTo func([]byte, V) []byte) Encoder[V] {
	return func(w *Writer, _ *Selected, v V) error {
		w.B = appendTo(w.B, v)
		return nil
	}
}

// Optional returns the encoder of pointers.
func Optional[V any](write Encoder[V]) Encoder[*V] {
	return func(w *Writer, s *Selected, v *V) error {
		if v == nil {
			return w.Nil(s)
		}
		return write(w, s, *v)
	}
}

// ObjectOf returns the encoder of pointers to objects.
func ObjectOf[T any](object *Object) Encoder[*T] {
	return func(w *Writer, s *Selected, v *T) error {
		if v == nil {
			return w.Nil(s)
		}
		return w.Object(s.On(object), v)
	}
}

// ListOf returns the encoder of lists.
func ListOf[V any](write Encoder[V]) Encoder[[]V] {
	return func(w *Writer, s *Selected, list []V) error {
		if list == nil && !s.Definition.Type.NonNull {
			return w.Nil(s)
		}
		return List(w, list, !s.Definition.Type.Elem.NonNull, func(v *V) error { return write(w, s, *v) })
	}
}

// ObjectsOf returns the encoder of lists of objects.
func ObjectsOf[T any](object *Object) Encoder[[]T] {
	return func(w *Writer, s *Selected, list []T) error {
		if list == nil && !s.Definition.Type.NonNull {
			return w.Nil(s)
		}
		return List(w, list, !s.Definition.Type.Elem.NonNull, func(v *T) error { return w.Object(s.On(object), v) })
	}
}

// WriteValue is the encoder of values that write themselves.
func WriteValue(w *Writer, s *Selected, v Value) error {
	if v == nil {
		return w.Nil(s)
	}
	return v.Write(w)
}

package plainjson

import (
	"encoding/json"
	"errors"
	"reflect"
)

// Mistyped returns, for a type error of encoding/json, the field and its expected type in
// the form "is a list". It reports false for other errors.
func Mistyped(err error) (field, should string, ok bool) {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return "", "", false
	}
	return wrong.Field, "is " + kindOf(wrong.Type), true
}

// kindOf returns the JSON name of the type, with its article.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

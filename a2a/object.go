package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"koine/internal/nearest"
	"koine/kg"
)

// object reads the members of a scanned JSON object. Names are compared exactly, null
// counts as absent, and unread members are an error at the end (done). The first
// failure of a request is kept, so that a reader need not check after each member.
type object struct {
	failure *failure
	path    string
	members []member
	// known are the requested names, for suggestions. An array, because an update reads
	// tens of thousands of objects.
	known [maxKnown]string
	asked int
}

// maxKnown is the number of names kept for suggestions.
const maxKnown = 12

type member struct {
	name  string
	value []byte
}

// failure holds the first error of a request.
type failure struct{ err *kg.Error }

func (f *failure) set(path string, err *kg.Error) {
	if f.err == nil {
		f.err = err.At(path)
	}
}

// error returns the error as a plain nil, not a nil *kg.Error, if there is none.
func (f *failure) error() error {
	if f.err == nil {
		return nil
	}
	return f.err
}

// readObject decodes raw, which may be absent (nil or null): an object without members.
// path names it in errors.
func readObject(f *failure, path string, raw []byte) object {
	o := object{failure: f, path: path}
	raw = bytes.TrimSpace(raw)
	switch {
	case isAbsent(raw):
	case raw[0] != '{':
		f.set(path, kg.Errorf(kg.CodeInvalid, "must be an object, not %s", kindOf(raw)))
	default:
		o.members = split(raw)
	}
	return o
}

// readParams decodes the params of a request. Errors name their members without the
// prefix params.
func readParams(f *failure, raw []byte) object {
	o := readObject(f, "params", raw)
	o.path = ""
	return o
}

func isAbsent(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// take returns a member's value and marks it as read; nil if absent.
func (o *object) take(name string) []byte {
	o.know(name)
	for i := range o.members {
		if o.members[i].name == name {
			raw := o.members[i].value
			o.members[i].name = takenName
			if isAbsent(raw) {
				return nil
			}
			return raw
		}
	}
	return nil
}

// peek returns a member's value without marking it; nil if absent.
func (o *object) peek(name string) []byte {
	for i := range o.members {
		if o.members[i].name == name && !isAbsent(o.members[i].value) {
			return o.members[i].value
		}
	}
	return nil
}

// know records a name that the object may have.
func (o *object) know(name string) {
	if o.asked < maxKnown {
		o.known[o.asked] = name
		o.asked++
	}
}

// takenName marks a member as read. No scanned name equals it, because it is not UTF-8.
const takenName = "\xff"

// done fails if a member was not read.
func (o *object) done() {
	for _, m := range o.members {
		if m.name != takenName && !isAbsent(m.value) {
			err := kg.Errorf(kg.CodeInvalid, "unknown member")
			if meant := nearest.Name(m.name, o.known[:o.asked]); meant != "" {
				err.Hint = "Did you mean " + meant + "?"
			} else if o.asked > 0 {
				err.Hint = "Known members are " + strings.Join(o.known[:o.asked], ", ") + "."
			}
			o.failure.set(join(o.path, clip(m.name)), err)
			return
		}
	}
}

func (o *object) fail(name, format string, args ...any) {
	o.failure.set(join(o.path, name), kg.Errorf(kg.CodeInvalid, format, args...))
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// text reads a string. ok reports whether it is present.
func (o *object) text(name string) (s string, ok bool) {
	raw := o.take(name)
	if raw == nil {
		return "", false
	}
	if raw[0] != '"' {
		o.fail(name, "must be a string, not %s", kindOf(raw))
		return "", false
	}
	return unquote(raw), true
}

// required reads a required, non-empty string.
func (o *object) required(name string) string {
	s, ok := o.text(name)
	if !ok || s == "" {
		o.fail(name, "is required")
	}
	return s
}

// number reads a number in its source form.
func (o *object) number(name string) (text string, ok bool) {
	raw := o.take(name)
	if raw == nil {
		return "", false
	}
	if kindOf(raw) != "a number" {
		o.fail(name, "must be a number, not %s", kindOf(raw))
		return "", false
	}
	return string(raw), true
}

// flag reads a boolean.
func (o *object) flag(name string) bool {
	raw := o.take(name)
	if raw == nil {
		return false
	}
	if raw[0] != 't' && raw[0] != 'f' {
		o.fail(name, "must be true or false, not %s", kindOf(raw))
	}
	return raw[0] == 't'
}

// certainty reads a number between 0 and 1.
func (o *object) certainty(name string) (c float64, ok bool) {
	text, ok := o.number(name)
	if !ok {
		return 0, false
	}
	c, err := strconv.ParseFloat(text, 64)
	if err != nil || c < 0 || c > 1 {
		o.fail(name, "must be between 0 and 1, not %s", clip(text))
	}
	return c, true
}

// natural reads a non-negative integer, also as a string, for writers whose numbers are
// too small.
func (o *object) natural(name string) (n uint64, ok bool) {
	raw := o.take(name)
	if raw == nil {
		return 0, false
	}
	text := string(raw)
	if raw[0] == '"' {
		text = unquote(raw)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		o.fail(name, "must be a whole number, not %s", clip(string(raw)))
		return 0, false
	}
	return n, true
}

// object reads an object; an absent one has no members.
func (o *object) object(name string) (inner object, ok bool) {
	raw := o.take(name)
	return readObject(o.failure, join(o.path, name), raw), raw != nil
}

// array reads an array and returns its elements.
func (o *object) array(name string) (elements [][]byte, ok bool) {
	raw := o.take(name)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '[' {
		o.fail(name, "must be an array, not %s", kindOf(raw))
		return nil, false
	}
	return splitArray(raw), true
}

// values reads an object with any content, decoded; numbers are json.Number to keep all
// digits.
func (o *object) values(name string) map[string]any {
	raw := o.take(name)
	if raw == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		o.fail(name, "must be an object, not %s", kindOf(raw))
	}
	return m
}

func kindOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// index formats the path of an array element.
func index(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// has reports whether the member is present.
func (o *object) has(name string) bool {
	for _, m := range o.members {
		if m.name == name {
			return !isAbsent(m.value)
		}
	}
	return false
}

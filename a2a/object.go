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

// object reads the members of a JSON object that was scanned. Names are
// compared exactly, null counts as absent, and what nobody asked for is an
// error at the end (done). The first failure of a request sticks, so that a
// reader need not check after each member.
type object struct {
	failure *failure
	path    string
	members []member
	// known are the names that were asked for, to guess what a misspelt one was
	// to be. An array, because an update reads tens of thousands of objects.
	known [maxKnown]string
	asked int
}

// maxKnown is how many names of an object are kept to guess from.
const maxKnown = 12

type member struct {
	name  string
	value []byte
}

// failure holds the first thing that is wrong with a request.
type failure struct{ err *kg.Error }

func (f *failure) set(path string, err *kg.Error) {
	if f.err == nil {
		f.err = err.At(path)
	}
}

// error is nil, and not a nil *kg.Error, if nothing is wrong.
func (f *failure) error() error {
	if f.err == nil {
		return nil
	}
	return f.err
}

// readObject reads raw, which may be absent (nil or null): an object without
// members. path names it in errors.
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

// readParams reads the params of a request. Errors name their members without
// saying params before.
func readParams(f *failure, raw []byte) object {
	o := readObject(f, "params", raw)
	o.path = ""
	return o
}

func isAbsent(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// take gives a member's value and takes it out; nil if absent.
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

// peek gives a member's value and leaves it; nil if absent.
func (o *object) peek(name string) []byte {
	for i := range o.members {
		if o.members[i].name == name && !isAbsent(o.members[i].value) {
			return o.members[i].value
		}
	}
	return nil
}

// know keeps a name that the object may have.
func (o *object) know(name string) {
	if o.asked < maxKnown {
		o.known[o.asked] = name
		o.asked++
	}
}

// takenName marks a member as read. No scanned name equals it: it is not UTF-8.
const takenName = "\xff"

// done fails if a member that is there was not read.
func (o *object) done() {
	for _, m := range o.members {
		if m.name != takenName && !isAbsent(m.value) {
			err := kg.Errorf(kg.CodeInvalid, "is not known here")
			if meant := nearest.Name(m.name, o.known[:o.asked]); meant != "" {
				err.Hint = "Did you mean " + meant + "?"
			} else if o.asked > 0 {
				err.Hint = "Known are " + strings.Join(o.known[:o.asked], ", ") + "."
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

// text is a string member. ok tells whether it is there.
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

// required is a string member that must be there and not be empty.
func (o *object) required(name string) string {
	s, ok := o.text(name)
	if !ok || s == "" {
		o.fail(name, "is required")
	}
	return s
}

// number is a number member as it was written.
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

// flag is a boolean member.
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

// certainty is a number member between 0 and 1.
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

// natural is a member that is a whole number, 0 or greater; the text of one
// will do, for writers whose numbers are too small for it.
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

// object is a member that is an object; one that is absent has no members.
func (o *object) object(name string) (inner object, ok bool) {
	raw := o.take(name)
	return readObject(o.failure, join(o.path, name), raw), raw != nil
}

// array is a member that is an array, as its elements.
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

// values is a member that is an object of any content, decoded; numbers are
// json.Number, so that none loses digits.
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

// index names an element of an array in errors.
func index(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// has tells whether the member is there.
func (o *object) has(name string) bool {
	for _, m := range o.members {
		if m.name == name {
			return !isAbsent(m.value)
		}
	}
	return false
}

package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"koine/internal/suggest"
	"koine/kg"
)

// object reads the members of a scanned JSON object. Names are compared exactly, null
// counts as absent, and unread members are an error at the end (checkAllRead). The first
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

func (f *failure) setAt(path string, err *kg.Error) {
	if f.err == nil {
		f.err = err.At(path)
	}
}

// firstError returns the error as a plain nil, not a nil *kg.Error, if there is none.
func (f *failure) firstError() error {
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
		f.setAt(path, kg.Errorf(kg.CodeInvalid, "must be an object, not %s", kindOf(raw)))
	default:
		o.members = splitObject(raw)
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

// takeMember returns a member's value and marks it as read; nil if absent.
func (o *object) takeMember(name string) []byte {
	o.addKnown(name)
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

// peekMember returns a member's value without marking it; nil if absent.
func (o *object) peekMember(name string) []byte {
	for i := range o.members {
		if o.members[i].name == name && !isAbsent(o.members[i].value) {
			return o.members[i].value
		}
	}
	return nil
}

// addKnown records a name that the object may have.
func (o *object) addKnown(name string) {
	if o.asked < maxKnown {
		o.known[o.asked] = name
		o.asked++
	}
}

// takenName marks a member as read. No scanned name equals it, because it is not UTF-8.
const takenName = "\xff"

// checkAllRead fails if a member was not read.
func (o *object) checkAllRead() {
	for _, m := range o.members {
		if m.name != takenName && !isAbsent(m.value) {
			err := kg.Errorf(kg.CodeInvalid, "unknown member")
			if meant := suggest.Name(m.name, o.known[:o.asked]); meant != "" {
				err.Hint = "Did you mean " + meant + "?"
			} else if o.asked > 0 {
				err.Hint = "Known members are " + strings.Join(o.known[:o.asked], ", ") + "."
			}
			o.failure.setAt(joinPath(o.path, clipText(m.name)), err)
			return
		}
	}
}

func (o *object) failAt(name, format string, args ...any) {
	o.failure.setAt(joinPath(o.path, name), kg.Errorf(kg.CodeInvalid, format, args...))
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// readText reads a string. ok reports whether it is present.
func (o *object) readText(name string) (s string, ok bool) {
	raw := o.takeMember(name)
	if raw == nil {
		return "", false
	}
	if raw[0] != '"' {
		o.failAt(name, "must be a string, not %s", kindOf(raw))
		return "", false
	}
	return decodeString(raw), true
}

// readRequired reads a required, non-empty string.
func (o *object) readRequired(name string) string {
	s, ok := o.readText(name)
	if !ok || s == "" {
		o.failAt(name, "is required")
	}
	return s
}

// readNumber reads a number in its source form.
func (o *object) readNumber(name string) (text string, ok bool) {
	raw := o.takeMember(name)
	if raw == nil {
		return "", false
	}
	if kindOf(raw) != "a number" {
		o.failAt(name, "must be a number, not %s", kindOf(raw))
		return "", false
	}
	return string(raw), true
}

// readEmbedding reads the embedding of an object, nil if absent.
func (o *object) readEmbedding() *kg.Embedding {
	inner, ok := o.readMember("embedding")
	if !ok {
		return nil
	}
	e := &kg.Embedding{Model: inner.readRequired("model")}
	var err error
	if e.Vector, err = kg.ParseVector(inner.takeMember("vector")); err != nil {
		o.failure.setAt(joinPath(inner.path, "vector"), kg.AsError(err))
	}
	inner.checkAllRead()
	return e
}

// readFlag reads a boolean.
func (o *object) readFlag(name string) bool {
	raw := o.takeMember(name)
	if raw == nil {
		return false
	}
	if raw[0] != 't' && raw[0] != 'f' {
		o.failAt(name, "must be true or false, not %s", kindOf(raw))
	}
	return raw[0] == 't'
}

// readCertainty reads a number between 0 and 1.
func (o *object) readCertainty(name string) (c float64, ok bool) {
	text, ok := o.readNumber(name)
	if !ok {
		return 0, false
	}
	c, err := strconv.ParseFloat(text, 64)
	if err != nil || c < 0 || c > 1 {
		o.failAt(name, "must be between 0 and 1, not %s", clipText(text))
	}
	return c, true
}

// readNatural reads a non-negative integer, also as a string, for writers whose numbers are
// too small.
func (o *object) readNatural(name string) (n uint64, ok bool) {
	raw := o.takeMember(name)
	if raw == nil {
		return 0, false
	}
	text := string(raw)
	if raw[0] == '"' {
		text = decodeString(raw)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		o.failAt(name, "must be a whole number, not %s", clipText(string(raw)))
		return 0, false
	}
	return n, true
}

// readMember reads an object; an absent one has no members.
func (o *object) readMember(name string) (inner object, ok bool) {
	raw := o.takeMember(name)
	return readObject(o.failure, joinPath(o.path, name), raw), raw != nil
}

// readArray reads an array and returns its elements.
func (o *object) readArray(name string) (elements [][]byte, ok bool) {
	raw := o.takeMember(name)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '[' {
		o.failAt(name, "must be an array, not %s", kindOf(raw))
		return nil, false
	}
	return splitArray(raw), true
}

// readValues reads an object with any content, decoded; numbers are json.Number to keep all
// digits.
func (o *object) readValues(name string) map[string]any {
	raw := o.takeMember(name)
	if raw == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		o.failAt(name, "must be an object, not %s", kindOf(raw))
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

// elementPath formats the path of an array element.
func elementPath(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// hasMember reports whether the member is present.
func (o *object) hasMember(name string) bool {
	for _, m := range o.members {
		if m.name == name {
			return !isAbsent(m.value)
		}
	}
	return false
}

package systemgraph

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/kg"
)

// Record holds the statements about one subject: the objects of each property, by the
// property's name in koine's vocabulary. Callers must not modify a record that they
// receive.
type Record map[string][]kg.Term

// Property returns the IRI of a property or class of koine's vocabulary.
func Property(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// Values returns strings as objects of a property.
func Values(list ...string) []kg.Term {
	out := make([]kg.Term, 0, len(list))
	for _, text := range list {
		out = append(out, kg.String(text))
	}
	return out
}

// Text returns a text as the object of a property; no object for "".
func Text(text string) []kg.Term {
	if text == "" {
		return nil
	}
	return Values(text)
}

// JSON returns a JSON text as the object of a property; no object for an empty one.
func JSON(raw []byte) []kg.Term {
	if len(raw) == 0 {
		return nil
	}
	return []kg.Term{kg.Typed(string(raw), kg.RDF+"JSON")}
}

// JSON returns the first object of a property as JSON, nil if there is none.
func (r Record) JSON(name string) json.RawMessage {
	if text := r.Text(name); text != "" {
		return json.RawMessage(text)
	}
	return nil
}

// Integer returns the first object of a property as an integer, 0 if it is not one.
func (r Record) Integer(name string) int64 {
	n, _ := strconv.ParseInt(r.Text(name), 10, 64)
	return n
}

// Text returns the first object of a property as text, "" if there is none.
func (r Record) Text(name string) string {
	if objects := r[name]; len(objects) > 0 {
		return objects[0].Value()
	}
	return ""
}

// Texts lists all objects of a property as text, sorted.
func (r Record) Texts(name string) []string {
	var out []string
	for _, o := range r[name] {
		out = append(out, o.Value())
	}
	slices.Sort(out)
	return out
}

// Agents is Texts for a property that holds agents.
func (r Record) Agents(name string) []kg.AgentID {
	var out []kg.AgentID
	for _, text := range r.Texts(name) {
		out = append(out, kg.AgentID(text))
	}
	return out
}

// Time returns the first object of a property as a time; the zero time if it is not
// one.
func (r Record) Time(name string) time.Time {
	if objects := r[name]; len(objects) > 0 {
		t, _ := objects[0].DateTimeValue()
		return t
	}
	return time.Time{}
}

// Is reports whether the record is of the class.
func (r Record) Is(class string) bool { return slices.Contains(r[Type], Property(class)) }

// Type is the key of rdf:type in a record.
const Type = "a"

// nameOf returns the key of a property in a record, "" if the property is not in
// koine's vocabulary.
func nameOf(predicate kg.Term) string {
	if predicate.Value() == kg.RDFType {
		return Type
	}
	name, ours := strings.CutPrefix(predicate.Value(), kg.OwnVocabulary)
	if !ours {
		return ""
	}
	return name
}

// withObject returns a copy of the record with one statement added or removed. It copies
// because readers may hold the old record.
func (r Record) withObject(name string, object kg.Term, exists bool) Record {
	out := Record{}
	maps.Copy(out, r)
	objects := slices.Clone(out[name])
	switch at, found := slices.BinarySearchFunc(objects, object, kg.Term.Compare); {
	case found && !exists:
		objects = slices.Delete(objects, at, at+1)
	case !found && exists:
		objects = slices.Insert(objects, at, object)
	}
	if len(objects) == 0 {
		delete(out, name)
	} else {
		out[name] = objects
	}
	return out
}

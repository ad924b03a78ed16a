package systemgraph

import (
	"slices"
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
func (r Record) Is(class string) bool { return slices.Contains(r[classes], Property(class)) }

// classes is the key of rdf:type in a record.
const classes = "a"

// nameOf returns the key of a property in a record, "" if the property is not in
// koine's vocabulary.
func nameOf(predicate kg.Term) string {
	text := predicate.Value()
	switch {
	case text == kg.RDFType:
		return classes
	case len(text) > len(kg.OwnVocabulary) && text[:len(kg.OwnVocabulary)] == kg.OwnVocabulary:
		return text[len(kg.OwnVocabulary):]
	}
	return ""
}

// withObject returns a copy of the record with one statement added or removed. It copies
// because readers may hold the old record.
func (r Record) withObject(name string, object kg.Term, exists bool) Record {
	out := make(Record, len(r)+1)
	for n, objects := range r {
		out[n] = objects
	}
	objects := slices.DeleteFunc(slices.Clone(out[name]), func(o kg.Term) bool { return o == object })
	if exists {
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		delete(out, name)
	} else {
		out[name] = objects
	}
	return out
}

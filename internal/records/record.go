package records

import (
	"slices"
	"time"

	"koine/kg"
)

// Record is what stands about one subject: the objects of each property, by the
// property's name in koine's vocabulary. Not to be changed by who gets it.
type Record map[string][]kg.Term

// Property is the IRI of a property or class of koine's vocabulary.
func Property(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// Values are texts as objects of a property.
func Values(list ...string) []kg.Term {
	out := make([]kg.Term, 0, len(list))
	for _, text := range list {
		out = append(out, kg.String(text))
	}
	return out
}

// Text is the first object of a property as text, "" if there is none.
func (r Record) Text(name string) string {
	if objects := r[name]; len(objects) > 0 {
		return objects[0].Value()
	}
	return ""
}

// Texts lists all objects of a property as text, in order.
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

// Time is the first object of a property as a time; the zero time if it is none.
func (r Record) Time(name string) time.Time {
	if objects := r[name]; len(objects) > 0 {
		t, _ := objects[0].DateTimeValue()
		return t
	}
	return time.Time{}
}

// Is tells whether the record is of the class.
func (r Record) Is(class string) bool { return slices.Contains(r[classes], Property(class)) }

// classes is the name under which a record has its rdf:type.
const classes = "a"

// nameOf is the name of a property in a record, "" for one that is not koine's.
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

// with is the record with one statement more, or one less. It is a new record:
// somebody may have the old one.
func (r Record) with(name string, object kg.Term, stands bool) Record {
	out := make(Record, len(r)+1)
	for n, objects := range r {
		out[n] = objects
	}
	objects := slices.DeleteFunc(slices.Clone(out[name]), func(o kg.Term) bool { return o == object })
	if stands {
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		delete(out, name)
	} else {
		out[name] = objects
	}
	return out
}

package a2a

import (
	"bytes"
	"encoding/json"

	"koine/internal/caller"
	"koine/internal/update"
	"koine/kg"
)

// reader decodes KnowledgeGraphPatch objects (knowledge graph extension, sections 2 and
// 3) to mutations. It records an error with its path as the request's failure.
type reader struct {
	failure  *failure
	prefixes *kg.Prefixes
}

func (r *reader) mutation(path string, raw []byte) (m update.Mutation) {
	var ok bool
	patch := readObject(r.failure, path, raw)
	op := patch.required("op")
	if m.Op, ok = opNamed(op); !ok {
		patch.fail("op", "must be add, remove or replace, not %q", clip(op))
	}
	statement, ok := patch.object("statement")
	if !ok {
		patch.fail("statement", "is required")
	}
	patch.done()
	r.statement(&statement, &m)
	statement.done()
	return m
}

func (r *reader) statement(s *object, m *update.Mutation) {
	subject := r.inner(s, "subject")
	m.Quad.Subject = r.resource(&subject, "id")
	m.SubjectType = r.iri(&subject, "type")
	subject.done()

	predicate := r.inner(s, "predicate")
	m.Quad.Predicate = r.iri(&predicate, "id")
	if m.Quad.Predicate.IsZero() {
		predicate.fail("id", "is required")
	}
	predicate.done()

	object := r.inner(s, "object")
	r.object(&object, m)
	object.done()

	m.Quad.Graph = r.graph(s)
	m.Certainty, m.HasCertainty = s.certainty("certainty")
	m.Validity = kg.TimeSpan{From: s.time("validFrom"), Until: s.time("validTo")}
	r.provenance(s, m)
}

func (r *reader) inner(s *object, name string) object {
	inner, ok := s.object(name)
	if !ok {
		s.fail(name, "is required")
	}
	return inner
}

// object reads a KGObject: exactly one of id and value.
func (r *reader) object(o *object, m *update.Mutation) {
	language, _ := o.text("language")
	value := o.take("value")
	id := o.has("id")
	if id == (value != nil) {
		r.failure.set(o.path, kg.Errorf(kg.CodeInvalid, "must have exactly one of id and value"))
		return
	}
	if id {
		m.Quad.Object = r.resource(o, "id")
		m.ObjectType = r.iri(o, "type")
		if language != "" {
			o.fail("language", "language requires a string value")
		}
		return
	}
	datatype, _ := o.text("type")
	literal, err := kg.LiteralFromJSON(value, r.datatype(datatype), language)
	if err != nil {
		r.failure.set(o.path, kg.AsError(err))
	}
	m.Quad.Object = literal
}

// datatype expands a registered prefix:name; kg expands xsd: itself.
func (r *reader) datatype(text string) string {
	if text == "" {
		return ""
	}
	if t, err := r.prefixes.Resource(text); err == nil {
		return t.Value()
	}
	return text
}

// resource reads a required resource: a registered prefix:name, an IRI, a blank node,
// or any text, which is returned unchanged in answers.
func (r *reader) resource(o *object, name string) kg.Term {
	t, err := r.named(o.required(name))
	if err != nil {
		r.failure.set(join(o.path, name), kg.AsError(err))
	}
	return t
}

func (r *reader) named(text string) (kg.Term, error) {
	if t, err := r.prefixes.Resource(text); err == nil {
		return t, nil
	}
	return kg.ResourceFromID(text)
}

// iri reads an IRI; the zero Term if absent.
func (r *reader) iri(o *object, name string) kg.Term {
	text, ok := o.text(name)
	if !ok {
		return kg.Term{}
	}
	t, err := r.prefixes.Resource(text)
	switch {
	case err != nil:
		r.failure.set(join(o.path, name), kg.AsError(err))
	case t.Kind() != kg.KindIRI:
		o.fail(name, "must be an IRI, not a blank node")
	}
	return t
}

// graph reads the graph of a statement, an IRI or a blank node; the zero Term if
// absent.
func (r *reader) graph(s *object) kg.Term {
	text, ok := s.text("graph")
	if !ok {
		return kg.Term{}
	}
	t, err := r.prefixes.Resource(text)
	if err != nil {
		r.failure.set(join(s.path, "graph"), kg.AsError(err))
	}
	return t
}

// provenance keeps the object as sent, without spaces. The agent in it is the source of
// the assertion.
func (r *reader) provenance(s *object, m *update.Mutation) {
	raw := s.take("provenance")
	if raw == nil {
		return
	}
	provenance := readObject(r.failure, join(s.path, "provenance"), raw)
	if text, ok := provenance.text("sourceAgentId"); ok {
		source, err := caller.ParseAgent(text)
		if err != nil {
			r.failure.set(join(provenance.path, "sourceAgentId"), kg.AsError(err))
		}
		m.Source = source
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		s.fail("provenance", "is not JSON")
	}
	m.Provenance = compact.Bytes()
}

// opNamed parses PatchOperationType.
func opNamed(name string) (kg.Op, bool) {
	for _, op := range [...]kg.Op{kg.Add, kg.Remove, kg.Replace} {
		if op.String() == name {
			return op, true
		}
	}
	return 0, false
}

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

func (r *reader) readMutation(path string, raw []byte) (m update.Mutation) {
	var ok bool
	patch := readObject(r.failure, path, raw)
	op := patch.readRequired("op")
	if m.Op, ok = opNamed(op); !ok {
		patch.failAt("op", "must be add, remove or replace, not %q", clipText(op))
	}
	statement, ok := patch.readMember("statement")
	if !ok {
		patch.failAt("statement", "is required")
	}
	m.Embedding = patch.readEmbedding()
	patch.checkAllRead()
	r.readStatement(&statement, &m)
	statement.checkAllRead()
	return m
}

func (r *reader) readStatement(s *object, m *update.Mutation) {
	subject := r.readInner(s, "subject")
	m.Quad.Subject = r.readResource(&subject, "id")
	m.SubjectType = r.readIRI(&subject, "type")
	subject.checkAllRead()

	predicate := r.readInner(s, "predicate")
	m.Quad.Predicate = r.readIRI(&predicate, "id")
	if m.Quad.Predicate.IsZero() {
		predicate.failAt("id", "is required")
	}
	predicate.checkAllRead()

	object := r.readInner(s, "object")
	r.readKGObject(&object, m)
	object.checkAllRead()

	m.Quad.Graph = r.readGraph(s)
	m.Certainty, m.HasCertainty = s.readCertainty("certainty")
	m.Validity = kg.TimeSpan{From: s.readTime("validFrom"), Until: s.readTime("validTo")}
	r.readProvenance(s, m)
}

func (r *reader) readInner(s *object, name string) object {
	inner, ok := s.readMember(name)
	if !ok {
		s.failAt(name, "is required")
	}
	return inner
}

// readKGObject reads a KGObject: exactly one of id and value.
func (r *reader) readKGObject(o *object, m *update.Mutation) {
	language, _ := o.readText("language")
	value := o.takeMember("value")
	id := o.hasMember("id")
	if id == (value != nil) {
		r.failure.setAt(o.path, kg.Errorf(kg.CodeInvalid, "must have exactly one of id and value"))
		return
	}
	if id {
		m.Quad.Object = r.readResource(o, "id")
		m.ObjectType = r.readIRI(o, "type")
		if language != "" {
			o.failAt("language", "language requires a string value")
		}
		return
	}
	datatype, _ := o.readText("type")
	literal, err := kg.LiteralFromJSON(value, r.expandDatatype(datatype), language)
	if err != nil {
		r.failure.setAt(o.path, kg.AsError(err))
	}
	m.Quad.Object = literal
}

// expandDatatype expands a registered prefix:name; kg expands xsd: itself.
func (r *reader) expandDatatype(text string) string {
	if text == "" {
		return ""
	}
	if t, err := r.prefixes.Resource(text); err == nil {
		return t.Value()
	}
	return text
}

// readResource reads a required resource: a registered prefix:name, an IRI, a blank node,
// or any text, which is returned unchanged in answers.
func (r *reader) readResource(o *object, name string) kg.Term {
	t, err := r.resourceNamed(o.readRequired(name))
	if err != nil {
		r.failure.setAt(joinPath(o.path, name), kg.AsError(err))
	}
	return t
}

func (r *reader) resourceNamed(text string) (kg.Term, error) {
	if t, err := r.prefixes.Resource(text); err == nil {
		return t, nil
	}
	return kg.ResourceFromID(text)
}

// readIRI reads an IRI; the zero Term if absent.
func (r *reader) readIRI(o *object, name string) kg.Term {
	text, ok := o.readText(name)
	if !ok {
		return kg.Term{}
	}
	t, err := r.prefixes.Resource(text)
	switch {
	case err != nil:
		r.failure.setAt(joinPath(o.path, name), kg.AsError(err))
	case t.Kind() != kg.KindIRI:
		o.failAt(name, "must be an IRI, not a blank node")
	}
	return t
}

// readGraph reads the graph of a statement, an IRI or a blank node; the zero Term if
// absent.
func (r *reader) readGraph(s *object) kg.Term {
	text, ok := s.readText("graph")
	if !ok {
		return kg.Term{}
	}
	t, err := r.prefixes.Resource(text)
	if err != nil {
		r.failure.setAt(joinPath(s.path, "graph"), kg.AsError(err))
	}
	return t
}

// readProvenance keeps the object as sent, without spaces. The agent in it is the source of
// the assertion.
func (r *reader) readProvenance(s *object, m *update.Mutation) {
	raw := s.takeMember("provenance")
	if raw == nil {
		return
	}
	provenance := readObject(r.failure, joinPath(s.path, "provenance"), raw)
	if text, ok := provenance.readText("sourceAgentId"); ok {
		source, err := caller.ParseAgent(text)
		if err != nil {
			r.failure.setAt(joinPath(provenance.path, "sourceAgentId"), kg.AsError(err))
		}
		m.Source = source
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		s.failAt("provenance", "is not JSON")
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

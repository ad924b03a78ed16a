package assertions

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"koine/kg"
)

// maxNodeStatements bounds the statements of a description: two classes at most, and each
// property once. A node with more is data.
const maxNodeStatements = 16

// node is a subject with its statements in one graph that may be part of a description.
type node struct {
	subject kg.Term
	quads   []kg.Quad
	more    bool // has more statements and is not a description
}

// isAssertion reports whether the node has the class of descriptions.
func (n *node) isAssertion() bool {
	return !n.more && slices.ContainsFunc(n.quads, func(q kg.Quad) bool { return q.Predicate == rdfType && q.Object == assertion })
}

// statesVersion reports whether the node only states the version of the vocabulary.
func (n *node) statesVersion() bool {
	return n.subject == namespace && !n.more && !slices.ContainsFunc(n.quads, func(q kg.Quad) bool { return q.Predicate != versionInfo })
}

func (n *node) checkVersion() error {
	for i := range n.quads {
		if v := n.quads[i].Object.Value(); v != Version && v != VersionWithoutEmbedding {
			e := kg.Errorf(kg.CodeInvalid, "the document uses version %s of the assertion vocabulary; this version of koine supports version %s", clipText(v), Version)
			e.Hint = "Load it without assertions, or with a newer version of koine."
			return e
		}
	}
	return nil
}

// decodeAssertion decodes a description: an assertion and its quad.
func (n *node) decodeAssertion() (q kg.Quad, a Assertion, err error) {
	q.Graph = kg.DefaultGraph
	said := map[kg.Term]bool{}
	for i := range n.quads {
		p, o := n.quads[i].Predicate, n.quads[i].Object
		if p == rdfType {
			continue
		}
		if said[p] {
			return q, a, n.errorf("more than one %s", p)
		}
		said[p] = true
		if err := setProperty(&q, &a, p, o); err != nil {
			return q, a, n.errorf("%s %s: %s", p, clipText(o.String()), kg.AsError(err).Message)
		}
	}
	for _, p := range [...]kg.Term{subject, predicate, object, wasAttributedTo} {
		if !said[p] {
			return q, a, n.errorf("%s is missing", p)
		}
	}
	return q, a, nil
}

func (n *node) errorf(format string, args ...any) error {
	return kg.Errorf(kg.CodeInvalid, "the description "+n.subject.String()+" of an assertion: "+format, args...)
}

// setProperty decodes one property of a description.
func setProperty(q *kg.Quad, a *Assertion, property, o kg.Term) (err error) {
	switch property {
	case subject:
		q.Subject = o
	case predicate:
		q.Predicate = o
	case object:
		q.Object = o
	case graph:
		q.Graph = o
		if !o.IsResource() {
			err = kg.Errorf(kg.CodeInvalid, "a graph must be a resource")
		}
	case wasAttributedTo:
		a.Source = kg.CanonicalAgent(o.Value())
		if err = a.Source.Valid(); err == nil && o.Kind() != kg.KindIRI {
			err = kg.Errorf(kg.CodeInvalid, "an agent must be an IRI")
		}
	case generatedAtTime:
		a.Time, err = dateTime(o)
	case validFrom:
		a.Validity.From, err = dateTime(o)
	case validTo:
		a.Validity.Until, err = dateTime(o)
	case certainty:
		a.HasCertainty = true
		a.Certainty, err = parseCertainty(o)
	case revision:
		var n uint64
		if n, err = strconv.ParseUint(o.Value(), 10, 64); err != nil {
			err = kg.Errorf(kg.CodeInvalid, "a revision must be a number")
		}
		a.Revision = kg.Revision(n)
	case provenance:
		a.Provenance, err = []byte(o.Value()), requireLiteral(o)
	case justification:
		a.Justification, err = o.Value(), requireLiteral(o)
	case embedding:
		a.Embedding, err = parseEmbedding(o.Value())
	}
	return err
}

// parseEmbedding parses an embedding in JSON.
func parseEmbedding(text string) (*kg.Embedding, error) {
	e := new(kg.Embedding)
	if err := json.Unmarshal([]byte(text), e); err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "expected an embedding in JSON, with model and vector")
	}
	return e, e.Valid()
}

func requireLiteral(o kg.Term) error {
	if !o.IsLiteral() {
		return kg.Errorf(kg.CodeInvalid, "expected a literal")
	}
	return nil
}

func dateTime(o kg.Term) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, o.Value())
	if err != nil || o.Datatype() != kg.XSDDateTime {
		return t, kg.Errorf(kg.CodeInvalid, "expected an xsd:dateTime with a time zone")
	}
	return t.UTC().Truncate(time.Millisecond), nil
}

func parseCertainty(o kg.Term) (float64, error) {
	f, err := strconv.ParseFloat(o.Value(), 64)
	switch o.Datatype() {
	case kg.XSDDouble, kg.XSDDecimal, kg.XSDInteger, kg.XSD + "float":
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return f, kg.Errorf(kg.CodeInvalid, "a certainty must be a number between 0 and 1")
	}
	return f, nil
}

func clipText(s string) string { return kg.Excerpt(s, maxErrorBytes) }

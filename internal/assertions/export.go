package assertions

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"koine/kg"
)

// Prefixes of blank node labels in a document.
const (
	storeLabel       = "s-" // of nodes of the store
	descriptionLabel = "a"  // of descriptions
)

// Export yields a document with all statements in the snapshot's view, laid out as the
// package comment describes: the statements graph by graph, sorted by graph name, then the
// version of the vocabulary, then a description of each assertion. An empty view yields
// nothing.
func Export(s *kg.Snapshot) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		some, version := false, VersionWithoutEmbedding
		for st, err := range viewStatements(s) {
			if err != nil {
				yield(kg.Quad{}, err)
				return
			}
			if some = true; !yield(relabelBlank(st.Quad), nil) {
				return
			}
			if slices.ContainsFunc(st.Assertions, func(a kg.Assertion) bool { return a.Embedding != nil }) {
				version = Version
			}
		}
		if !some || !yield(kg.Quad{Subject: namespace, Predicate: versionInfo, Object: kg.String(version), Graph: Graph}, nil) {
			return
		}
		number := 0
		for st, err := range Statements(s) {
			if err != nil {
				yield(kg.Quad{}, err)
				return
			}
			for i := range st.Assertions {
				number++
				node := kg.Blank(descriptionLabel + strconv.Itoa(number))
				description, err := descriptionOf(node, &st.Quad, &st.Assertions[i])
				if err != nil {
					yield(kg.Quad{}, err)
					return
				}
				for _, q := range description {
					if !yield(q, nil) {
						return
					}
				}
			}
		}
	}
}

// Statements yields all statements in the snapshot's view with their assertions and reasons.
func Statements(s *kg.Snapshot) iter.Seq2[Statement, error] {
	return func(yield func(Statement, error) bool) {
		explain := Explain(s)
		for st, err := range viewStatements(s) {
			var out Statement
			if err == nil {
				out, err = explain(st)
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// Explain returns a function that adds the reasons of its assertions to a statement, as far
// as the snapshot's principal may see them.
func Explain(s *kg.Snapshot) func(kg.Statement) (Statement, error) {
	why := reasonCache{snapshot: s}
	return func(st kg.Statement) (Statement, error) {
		list, err := why.withReasons(st.Assertions)
		return Statement{st.Quad, list}, err
	}
}

func viewStatements(s *kg.Snapshot) iter.Seq2[kg.Statement, error] {
	return func(yield func(kg.Statement, error) bool) {
		graphs, err := s.Graphs()
		if err != nil {
			yield(kg.Statement{}, err)
			return
		}
		slices.SortFunc(graphs, func(a, b kg.TermCount) int { return a.Term.Compare(b.Term) })
		for _, g := range graphs {
			for st, err := range s.Match(kg.Pattern{Graph: g.Term}) {
				if !yield(st, err) || err != nil {
					return
				}
			}
		}
	}
}

// maxReasons bounds the size of the reason cache in bytes.
const maxReasons = 8 << 20

// reasonCache caches the justifications of commits: adjacent statements are mostly asserted in
// the same commit.
type reasonCache struct {
	snapshot *kg.Snapshot
	known    map[kg.Revision]string
	bytes    int
}

func (r *reasonCache) withReasons(list []kg.Assertion) ([]Assertion, error) {
	out := make([]Assertion, len(list))
	for i, a := range list {
		why, err := r.reasonOf(a.Revision)
		if err != nil {
			return nil, err
		}
		out[i] = Assertion{a, why}
	}
	return out, nil
}

func (r *reasonCache) reasonOf(revision kg.Revision) (string, error) {
	const perEntry = 64
	if why, ok := r.known[revision]; ok {
		return why, nil
	}
	why, err := r.snapshot.Justification(revision)
	if err != nil {
		return "", err
	}
	if r.known == nil || r.bytes > maxReasons {
		r.known, r.bytes = map[kg.Revision]string{}, 0
	}
	r.known[revision] = why
	r.bytes += perEntry + len(why)
	return why, nil
}

func descriptionOf(node kg.Term, q *kg.Quad, a *Assertion) ([]kg.Quad, error) {
	out := make([]kg.Quad, 0, 15)
	say := func(p, o kg.Term) {
		out = append(out, kg.Quad{Subject: node, Predicate: p, Object: o, Graph: Graph})
	}
	labelled := relabelBlank(*q)
	say(rdfType, rdfStatement)
	say(rdfType, assertion)
	say(subject, labelled.Subject)
	say(predicate, labelled.Predicate)
	say(object, labelled.Object)
	if labelled.Graph != kg.DefaultGraph {
		say(graph, labelled.Graph)
	}
	say(wasAttributedTo, kg.IRI(string(a.Source)))
	say(generatedAtTime, kg.DateTime(a.Time))
	say(revision, kg.Integer(int64(a.Revision)))
	if a.HasCertainty {
		say(certainty, kg.Double(a.Certainty))
	}
	if !a.Validity.From.IsZero() {
		say(validFrom, kg.DateTime(a.Validity.From))
	}
	if !a.Validity.Until.IsZero() {
		say(validTo, kg.DateTime(a.Validity.Until))
	}
	if a.Provenance != nil {
		say(provenance, kg.String(string(a.Provenance)))
	}
	if a.Justification != "" {
		say(justification, kg.String(a.Justification))
	}
	if a.Embedding != nil {
		text, err := json.Marshal(a.Embedding)
		if err != nil {
			return nil, err
		}
		say(embedding, kg.String(string(text)))
	}
	return out, nil
}

// relabelBlank returns the quad with blank nodes labelled as in a document with descriptions.
func relabelBlank(q kg.Quad) kg.Quad {
	for _, t := range [...]*kg.Term{&q.Subject, &q.Object, &q.Graph} {
		if t.Kind() == kg.KindBlank {
			*t = kg.Blank(storeLabel + t.Value())
		}
	}
	return q
}

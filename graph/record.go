package graph

import (
	"encoding/json"
	"time"

	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/kg"
)

// recordOf returns a statement in the form of a patch.
func recordOf(q kg.Quad) *StatementRecord {
	r := &StatementRecord{
		StatementID: views.PresentIDs.StatementID(q), Subject: &ResourceRecord{ID: q.Subject.ExternalID()}, Predicate: &ResourceRecord{ID: q.Predicate.ExternalID()},
		Object: objectRecordOf(q.Object),
	}
	if q.Graph != kg.DefaultGraph {
		name := q.Graph.ExternalID()
		r.Graph = &name
	}
	return r
}

func objectRecordOf(t kg.Term) *ObjectRecord {
	r := &ObjectRecord{}
	if t.IsResource() {
		id := t.ExternalID()
		r.ID = &id
		return r
	}
	r.Value = t.ValueJSON()
	if lang := t.Lang(); lang != "" {
		r.Language = &lang
	} else if datatype := t.Datatype(); datatype != kg.XSDString {
		r.Type = &datatype
	}
	return r
}

// assertionOf and commitOf serve small answers. The engine writes large ones
// itself.
func assertionOf(a kg.Assertion) *Assertion {
	out := &Assertion{
		Source: agentOf(a.Source), SourceID: string(a.Source), RecordedAt: a.Time, Revision: a.Revision, Provenance: json.RawMessage(a.Provenance), Embedding: a.Embedding,
		ValidFrom: timeOrNil(a.Validity.From), ValidTo: timeOrNil(a.Validity.Until),
	}
	if a.HasCertainty {
		out.Certainty = &a.Certainty
	}
	return out
}

func assertionsOf(list []kg.Assertion) []Assertion {
	out := make([]Assertion, len(list))
	for i, a := range list {
		out[i] = *assertionOf(a)
	}
	return out
}

// commitOf converts a commit, nil for nil.
func (r *run) commitOf(c *kg.Commit) *Commit {
	if c == nil {
		return nil
	}
	actor := knowledge.ActorOf(c)
	return &Commit{
		ID: views.CommitNodeID(c.Revision), CommitID: r.engine.deps.Store.CommitID(c.Revision), Revision: c.Revision, Time: c.Time,
		Principal: agentOf(c.Principal), PrincipalID: string(c.Principal), Actor: agentOf(actor), ActorID: string(actor),
		Justification: textOrNil(c.Justification), TaskID: textOrNil(c.TaskID), SessionID: textOrNil(c.SessionID), MessageID: textOrNil(c.MessageID),
	}
}

// textOrNil returns nil for "".
func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// timeOrNil returns nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// statementRef finds the statement of an input in the snapshot. found is false
// if the snapshot does not show it.
func (r *run) statementRef(s *kg.Snapshot, ref *StatementRef) (st kg.Statement, found bool, err error) {
	if ref.ID != nil {
		if ref.Subject != nil || ref.Predicate != nil || ref.Object != nil || ref.Graph != nil {
			return st, false, kg.Errorf(kg.CodeInvalid, "id excludes subject, predicate, object and graph")
		}
		_, key, ours, err := views.ParseNodeID(*ref.ID, views.StatementIDPrefix)
		if !ours || err != nil {
			return st, false, err
		}
		row, found, err := views.FindStatement(s, key)
		if !found || err != nil {
			return st, false, err
		}
		st, err = s.Statement(row)
		return st, err == nil, err
	}
	if ref.Subject == nil || ref.Predicate == nil || ref.Object == nil {
		return st, false, kg.Errorf(kg.CodeInvalid, "a statement requires its id, or subject, predicate and object")
	}
	m, err := r.convertPatch(&PatchInput{Op: kg.Remove, Statement: &StatementInput{Subject: ref.Subject, Predicate: ref.Predicate, Object: ref.Object, Graph: ref.Graph}})
	if err != nil {
		return st, false, err
	}
	for st, err = range s.Match(kg.Pattern(m.Quad)) {
		return st, err == nil, err
	}
	return st, false, nil
}

// orZero returns a time in UTC, so that equal views compare equal; the zero
// time for nil.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

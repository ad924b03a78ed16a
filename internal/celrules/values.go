package celrules

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// Limits of the part of the graph that a rule sees. A rule that asks for more cannot be
// evaluated: leaving statements out would let a caller hide one from a rule by adding
// others.
const (
	MaxBefore       = 1000 // existing statements with the same subject, predicate and graph
	MaxEntityValues = 1000 // of the subject: of one property if the rule names it, or of all
	MaxEntityTypes  = 256  // of the subject, with and without the update
)

// valueOf converts an object for rules: a number, a boolean, a time, or else its text;
// for a resource its IRI.
func valueOf(t kg.Term) any {
	switch v := valuespace.Of(t); v.Kind {
	case valuespace.KindBoolean:
		return v.Boolean
	case valuespace.KindMoment:
		if t.Datatype() == kg.XSDDateTime {
			return v.Moment.Time()
		}
	case valuespace.KindNumber:
		if n, err := strconv.ParseInt(t.Value(), 10, 64); err == nil {
			return n
		}
		return v.Number
	}
	return t.ExternalID()
}

// textOf converts a resource or a graph for rules; "" for the default graph.
func textOf(t kg.Term) string {
	if t == kg.DefaultGraph {
		return ""
	}
	return t.ExternalID()
}

func setObject(m map[string]any, t kg.Term) map[string]any {
	m["object"], m["datatype"], m["language"] = valueOf(t), t.Datatype(), t.Lang()
	return m
}

// jsonObject decodes a JSON object for rules; it is empty if there is none.
func jsonObject(raw []byte) map[string]any {
	m := map[string]any{}
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return map[string]any{}
	}
	return m
}

// patchValue converts a change for rules.
func patchValue(c *kg.Change) map[string]any {
	m := setObject(map[string]any{
		"op": c.Op.String(), "subject": textOf(c.Quad.Subject), "predicate": textOf(c.Quad.Predicate), "graph": textOf(c.Quad.Graph),
		"certainty": c.Assertion.EffectiveCertainty(), "hasCertainty": c.Assertion.HasCertainty,
		"source": string(c.Assertion.Source), "provenance": jsonObject(c.Assertion.Provenance),
		"withdrawn": withdrawnSources(c), "replaced": c.Op == kg.Remove && c.ReplacedBy >= 0,
	}, c.Quad.Object)
	if len(c.Replaces) > 0 {
		m["op"] = kg.Replace.String()
	}
	return m
}

// withdrawnSources lists the sources whose assertions a change removes.
func withdrawnSources(c *kg.Change) []string {
	list := []string{}
	if c.Op != kg.Remove {
		return list
	}
	stays := map[kg.AgentID]bool{}
	for _, a := range c.After {
		stays[a.Source] = true
	}
	for _, a := range c.Before {
		if !stays[a.Source] {
			list = append(list, string(a.Source))
		}
	}
	return list
}

// byteSize is the number of bytes of an object and of the provenance of its statement that
// rules may see.
func byteSize(object kg.Term, assertions []kg.Assertion) int {
	n := len(object.Value())
	for i := range assertions {
		n += len(assertions[i].Provenance)
	}
	return n
}

// statementValue converts a statement for rules; a statement that does not exist has no
// assertions and certainty 0.
func statementValue(s kg.Statement) map[string]any {
	sources, assertions := []string{}, []any{}
	for _, a := range s.Assertions {
		sources = append(sources, string(a.Source))
		assertions = append(assertions, map[string]any{
			"source": string(a.Source), "certainty": a.EffectiveCertainty(), "hasCertainty": a.HasCertainty,
			"recordedAt": a.Time, "provenance": jsonObject(a.Provenance),
		})
	}
	certainty, _ := s.Certainty()
	return setObject(map[string]any{
		"subject": textOf(s.Subject), "predicate": textOf(s.Predicate), "graph": textOf(s.Graph),
		"certainty": certainty, "sources": sources, "assertions": assertions,
	}, s.Object)
}

// beforeVariable returns a function for the existing statements with the change's subject,
// predicate and graph.
func beforeVariable(b *budget, j *kg.Judgement, c *kg.Change) func() ref.Val {
	return func() ref.Val {
		list := []any{}
		for s, err := range j.Before.Match(kg.Pattern{Subject: c.Quad.Subject, Predicate: c.Quad.Predicate, Graph: c.Quad.Graph}) {
			if err != nil {
				return types.WrapErr(err)
			}
			if len(list) == MaxBefore {
				return types.WrapErr(kg.Errorf(kg.CodeInvalid, "more than %d statements exist before the change", MaxBefore))
			}
			if err := b.chargeRead(byteSize(s.Object, s.Assertions)); err != nil {
				return types.WrapErr(err)
			}
			list = append(list, statementValue(s))
		}
		return types.DefaultTypeAdapter.NativeToValue(list)
	}
}

// entityVariable returns a function for the subject of a change with its properties after the
// update; its types are those before and after.
func entityVariable(b *budget, j *kg.Judgement, subject kg.Term) func() ref.Val {
	return func() ref.Val {
		kinds := []string{}
		for _, side := range [...]*kg.Snapshot{j.After, j.Before} {
			var err error
			if kinds, err = addTypes(b, kinds, side, subject); err != nil {
				return types.WrapErr(err)
			}
		}
		return types.DefaultTypeAdapter.NativeToValue(map[string]any{
			"iri": textOf(subject), "types": kinds, "properties": &properties{budget: b, snapshot: j.After, subject: subject},
		})
	}
}

func addTypes(b *budget, kinds []string, side *kg.Snapshot, subject kg.Term) ([]string, error) {
	read := 0
	for s, err := range side.Match(kg.Pattern{Subject: subject, Predicate: kg.IRI(kg.RDFType)}) {
		if err != nil {
			return nil, err
		}
		if read++; read > MaxEntityTypes {
			return nil, kg.Errorf(kg.CodeInvalid, "the entity has more than %d types", MaxEntityTypes)
		}
		if err := b.chargeRead(byteSize(s.Object, nil)); err != nil {
			return nil, err
		}
		if kind := textOf(s.Object); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// callerValue converts the caller for rules.
func callerValue(p kg.Principal, actor kg.AgentID) map[string]any {
	if actor == "" {
		actor = p.ID
	}
	roles := append([]string{}, p.Roles...)
	return map[string]any{"id": string(p.ID), "roles": roles, "actor": string(actor), "method": p.Method}
}

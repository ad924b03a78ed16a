package modelcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"koine/internal/compact"
	"koine/kg"
)

type rememberArgs struct {
	Facts     string   `json:"facts,omitempty" jsonschema:"lines of facts"`
	Triples   [][]any  `json:"triples,omitempty" jsonschema:"facts in words: subject, predicate and object; a text that is no label stands in quotes of its own"`
	Define    []string `json:"define,omitempty" jsonschema:"words in the triples that are made predicates or classes if there are none; use existing ones where they mean the same"`
	Why       string   `json:"why,omitempty" jsonschema:"the reason, kept with the facts"`
	Certainty *float64 `json:"certainty,omitempty" jsonschema:"of facts that give none, 0 to 1; without it they are facts"`
}

type defineArgs struct {
	Label   string `json:"label" jsonschema:"the word, such as wrote"`
	Class   bool   `json:"class,omitempty" jsonschema:"true for a class of things, such as Person"`
	Comment string `json:"comment,omitempty" jsonschema:"what it means"`
	Why     string `json:"why,omitempty" jsonschema:"the reason, kept with it"`
}

type rememberAnswer struct {
	changeAnswer
	Known          int             `json:"known" jsonschema:"how many of the facts there were before"`
	Entities       []namedEntity   `json:"entities" jsonschema:"what the labels stand for"`
	Contradictions []contradiction `json:"contradictions" jsonschema:"of which the facts are part"`
}

type namedEntity struct {
	Label string `json:"label"`
	Name  string `json:"name"`
	Made  bool   `json:"made" jsonschema:"true if there was none"`
}

// remembered is a RememberPayload.
type remembered struct {
	Entities []struct {
		Label, IRI string
		Made       bool
	}
	Known          []struct{ Predicate struct{ ID string } }
	Contradictions []contradictionNode
	Update         updateNode
}

const rememberedFields = ` { entities { label iri made } known { predicate { id } } contradictions ` + contradictionFields + ` update ` + updateFields + ` }`

func (t tools) rememberFacts(ctx context.Context, a rememberArgs) (string, rememberAnswer, error) {
	input := map[string]any{}
	if a.Facts != "" {
		input["facts"] = a.Facts
	}
	if a.Triples != nil {
		input["triples"] = a.Triples
	}
	if a.Define != nil {
		input["define"] = a.Define
	}
	if a.Why != "" {
		input["justification"] = a.Why
	}
	if a.Certainty != nil {
		input["certainty"] = *a.Certainty
	}
	var answer struct{ Remember remembered }
	if err := t.GraphQL(ctx, `mutation($input: RememberInput!) { remember(input: $input)`+rememberedFields+` }`, map[string]any{"input": input}, &answer); err != nil {
		return "", rememberAnswer{}, err
	}
	return t.rememberAnswer(ctx, "Remembered", &answer.Remember)
}

func (t tools) defineWord(ctx context.Context, a defineArgs) (string, rememberAnswer, error) {
	input := map[string]any{"label": a.Label, "class": a.Class}
	if a.Comment != "" {
		input["comment"] = a.Comment
	}
	if a.Why != "" {
		input["justification"] = a.Why
	}
	var answer struct{ Define remembered }
	if err := t.GraphQL(ctx, `mutation($input: DefineInput!) { define(input: $input)`+rememberedFields+` }`, map[string]any{"input": input}, &answer); err != nil {
		return "", rememberAnswer{}, err
	}
	return t.rememberAnswer(ctx, "Defined", &answer.Define)
}

// rememberAnswer returns the answer for a payload, and a text that begins with a verb.
func (t tools) rememberAnswer(ctx context.Context, verb string, r *remembered) (string, rememberAnswer, error) {
	text, change, err := r.Update.describeUpdate(fmt.Sprintf("%s with %d new statements", verb, r.Update.StatementsAffected))
	out := rememberAnswer{changeAnswer: change, Known: len(r.Known), Entities: []namedEntity{}, Contradictions: []contradiction{}}
	if err != nil {
		return "", out, err
	}
	prefixes, err := t.readPrefixes(ctx)
	if err != nil {
		return "", out, err
	}
	if out.Known > 0 {
		text += fmt.Sprintf("; %d of the facts were known", out.Known)
	}
	for _, e := range r.Entities {
		out.Entities = append(out.Entities, namedEntity{e.Label, prefixes.Shorten(e.IRI), e.Made})
		how := "is"
		if e.Made {
			how = "is new:"
		}
		text += fmt.Sprintf("\n(%s) %s %s", e.Label, how, prefixes.Shorten(e.IRI))
	}
	for i := range r.Contradictions {
		c := r.Contradictions[i].describeContradiction(prefixes)
		out.Contradictions = append(out.Contradictions, c)
		text += "\nContradiction: " + c.formatText()
	}
	return text, out, nil
}

// labelled finds the entities that labels stand for.
type labelled struct {
	t        tools
	found    map[string]kg.Term
	prefixes *kg.Prefixes
}

// patchOf returns a fact as a PatchInput.
func (l *labelled) patchOf(ctx context.Context, f *compact.Fact) (map[string]any, error) {
	if len(f.Sources) > 0 || !f.Time.IsZero() {
		return nil, fmt.Errorf("the source and the time of a fact are you and now: leave \"by\" and \"at\" out")
	}
	subject, err := l.termOf(ctx, f.Subject)
	if err != nil {
		return nil, err
	}
	predicate, err := l.termOf(ctx, f.Predicate)
	if err != nil {
		return nil, err
	}
	object, err := l.termOf(ctx, f.Object)
	if err != nil {
		return nil, err
	}
	st := map[string]any{"subject": map[string]any{"id": subject.Name()}, "predicate": map[string]any{"id": predicate.Name()}, "object": objectInput(object)}
	if f.Graph != kg.DefaultGraph {
		st["graph"] = f.Graph.Name()
	}
	if f.HasCertainty {
		st["certainty"] = f.Certainty
	}
	for name, at := range map[string]time.Time{"validFrom": f.Validity.From, "validTo": f.Validity.Until} {
		if !at.IsZero() {
			st[name] = at.Format(time.RFC3339Nano)
		}
	}
	return map[string]any{"op": "add", "statement": st}, nil
}

func objectInput(t kg.Term) map[string]any {
	switch {
	case !t.IsLiteral():
		return map[string]any{"id": t.Name()}
	case t.Lang() != "":
		return map[string]any{"value": t.Value(), "language": t.Lang()}
	case t.ExplicitDatatype() != "":
		return map[string]any{"value": json.RawMessage(t.ValueJSON()), "type": t.Datatype()}
	}
	return map[string]any{"value": t.Value()}
}

// maxCandidates bounds the entities that are listed for a label.
const maxCandidates = 5

// termOf returns the term of a Ref: of a label, the one entity that has it.
func (l *labelled) termOf(ctx context.Context, r compact.Ref) (kg.Term, error) {
	if !r.Term.IsZero() {
		return r.Term, nil
	}
	if t, ok := l.found[r.Label]; ok {
		return t, nil
	}
	var answer struct {
		Entities struct {
			Nodes []struct {
				IRI   string
				Types []string
			}
		}
	}
	const query = `query($label: String!, $first: Int) { entities(where: {label: {eq: $label}}, first: $first) { nodes { iri types } } }`
	if err := l.t.GraphQL(ctx, query, map[string]any{"label": r.Label, "first": maxCandidates}, &answer); err != nil {
		return kg.Term{}, err
	}
	switch nodes := answer.Entities.Nodes; len(nodes) {
	case 0:
		return kg.Term{}, fmt.Errorf("no entity has the label %q; search for it under other words, or remember it", r.Label)
	case 1:
		t, err := l.prefixes.Resource(nodes[0].IRI)
		l.found[r.Label] = t
		return t, err
	default:
		var list []string
		for _, n := range nodes {
			name := l.prefixes.Shorten(n.IRI)
			for _, class := range n.Types {
				name += " a " + l.prefixes.Shorten(class)
			}
			list = append(list, name)
		}
		return kg.Term{}, fmt.Errorf("several entities have the label %q; write the name of the one that you mean: %s", r.Label, strings.Join(list, "; "))
	}
}

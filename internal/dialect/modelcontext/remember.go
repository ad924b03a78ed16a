package modelcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"koine/internal/compact"
	"koine/kg"
)

func (t tools) rememberFacts(ctx context.Context, a factsArgs) (string, changeAnswer, error) {
	patches, err := t.patchesOf(ctx, a.Facts)
	if err != nil {
		return "", changeAnswer{}, err
	}
	text, out, err := t.apply(ctx, "Remembered", patches, a.Why)
	if err == nil && out.Proposal == "" && out.Changed < len(patches) {
		text += "; the others were known"
	}
	return text, out, err
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
		id, err := uuid.NewV7()
		if err != nil {
			return kg.Term{}, err
		}
		return kg.Term{}, fmt.Errorf("no entity has the label %q; search for it under other words, or create it with the line: <urn:uuid:%s> (%s)", r.Label, id, r.Label)
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

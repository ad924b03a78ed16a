package modelcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"koine/internal/compact"
	"koine/kg"
)

type rememberArgs struct {
	Facts string `json:"facts" jsonschema:"lines of facts"`
	Why   string `json:"why,omitempty" jsonschema:"the reason, kept with the facts"`
}

func (t tools) rememberFacts(ctx context.Context, _ *mcp.CallToolRequest, a rememberArgs) (*mcp.CallToolResult, any, error) {
	prefixes, err := t.readPrefixes(ctx)
	if err != nil {
		return nil, nil, err
	}
	facts, err := compact.Read(a.Facts, prefixes)
	if err != nil {
		return nil, nil, fmt.Errorf("facts: %w", err)
	}
	if len(facts) == 0 {
		return nil, nil, fmt.Errorf("facts has no fact; write a subject at the beginning of a line, then indented lines with a predicate and its objects")
	}
	labels := &labelled{t: t, found: map[string]kg.Term{}, prefixes: prefixes}
	patches := make([]any, len(facts))
	for i := range facts {
		if patches[i], err = labels.patchOf(ctx, &facts[i]); err != nil {
			return nil, nil, err
		}
	}
	input := map[string]any{"patches": patches}
	if a.Why != "" {
		input["justification"] = a.Why
	}
	var answer struct {
		ApplyPatches struct {
			Success              bool
			StatementsAffected   int
			VerificationStatus   string
			VerificationDetails  string
			Revision             uint64
			CommitID, ProposalID string
		}
	}
	const mutation = `mutation($input: ApplyPatchesInput!) { applyPatches(input: $input) { success statementsAffected verificationStatus verificationDetails revision commitId proposalId } }`
	if err := t.GraphQL(ctx, mutation, map[string]any{"input": input}, &answer); err != nil {
		return nil, nil, err
	}
	switch r := &answer.ApplyPatches; {
	case r.ProposalID != "":
		return textResult(fmt.Sprintf("Held for review as proposal %s: %s", r.ProposalID, r.VerificationDetails)), nil, nil
	case !r.Success:
		return nil, nil, fmt.Errorf("%s: %s", r.VerificationStatus, r.VerificationDetails)
	default:
		return textResult(fmt.Sprintf("Remembered %d of %d facts in revision %d; the others were known.", r.StatementsAffected, len(facts), r.Revision)), nil, nil
	}
}

// labelled finds the entities that labels stand for.
type labelled struct {
	t        tools
	found    map[string]kg.Term
	prefixes *kg.Prefixes
}

// patchOf returns a fact as a PatchInput.
func (l *labelled) patchOf(ctx context.Context, f *compact.Fact) (any, error) {
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

package modelcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

type proposalsArgs struct {
	Status string `json:"status,omitempty" jsonschema:"PENDING (if absent), APPLIED, REJECTED, WITHDRAWN, EXPIRED or CONFLICTED"`
	pageArgs
}

type proposal struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Author   string   `json:"author"`
	Why      string   `json:"why,omitempty" jsonschema:"its author's reason"`
	Held     string   `json:"held,omitempty" jsonschema:"why it is held"`
	Patches  []patch  `json:"changes"`
	Left     int      `json:"left,omitempty" jsonschema:"how many more changes it has"`
	Message  *heldOne `json:"message,omitempty" jsonschema:"that it holds"`
	Approved int      `json:"approved" jsonschema:"how many approved it"`
	Required int      `json:"required" jsonschema:"how many must"`
}

type heldOne struct {
	Channel string `json:"channel"`
	Parts   []any  `json:"parts"`
}

// patch is a patch of a proposal, in the answer of GraphQL and of the tool.
type patch struct {
	Op        string          `json:"op"`
	Fact      string          `json:"fact"`
	Statement json.RawMessage `json:"-"`
}

func (p *patch) UnmarshalJSON(raw []byte) error {
	var from struct {
		Op        string
		Statement json.RawMessage
	}
	err := json.Unmarshal(raw, &from)
	p.Op, p.Statement = from.Op, from.Statement
	return err
}

func (t tools) listProposals(ctx context.Context, a proposalsArgs) (string, list[proposal], error) {
	if a.Status == "" {
		a.Status = "PENDING"
	}
	variables, err := a.pageVariables("status", a.Status)
	if err != nil {
		return "", list[proposal]{}, err
	}
	var answer struct{ Proposals connection[proposal] }
	const query = `query($status: ProposalStatus, $first: Int, $after: Cursor) { proposals(status: $status, first: $first, after: $after) { nodes { id status author: authorId why: justification held: reason changes: patches message: heldMessage { channel: channelId parts } approved: approvalCount required: requiredApprovals }` + pageInfo + ` } }`
	prefixes, err := t.runRead(ctx, query, variables, &answer)
	if err != nil {
		return "", list[proposal]{}, err
	}
	for i := range answer.Proposals.Nodes {
		of := &answer.Proposals.Nodes[i]
		of.Patches, of.Left = cutParts(of.Patches)
		changes := of.Patches
		for n := range changes {
			var st struct {
				record
				Certainty *float64
			}
			if err := json.Unmarshal(changes[n].Statement, &st); err != nil {
				return "", list[proposal]{}, err
			}
			changes[n].Fact = writeFact(&st.record, prefixes)
			if st.Certainty != nil {
				changes[n].Fact += fmt.Sprintf(" [%v]", *st.Certainty)
			}
		}
	}
	return listOf(answer.Proposals, "There are none.", func(p *proposal) string {
		var b strings.Builder
		fmt.Fprintf(&b, "%s by %s, %s, %d of %d approvals", p.ID, shortAgent(p.Author), strings.ToLower(p.Status), p.Approved, p.Required)
		if p.Why != "" {
			fmt.Fprintf(&b, " (%s)", p.Why)
		}
		if p.Held != "" {
			b.WriteString("; held: " + p.Held)
		}
		for _, c := range p.Patches {
			fmt.Fprintf(&b, "\n  %s %s", c.Op, strings.ReplaceAll(c.Fact, "\n", "\n  "))
		}
		if p.Left > 0 {
			fmt.Fprintf(&b, "\n  # %d more changes", p.Left)
		}
		if p.Message != nil {
			parts, err := json.Marshal(p.Message.Parts)
			if err != nil {
				return err.Error()
			}
			fmt.Fprintf(&b, "\n  message in %s: %s", p.Message.Channel, parts)
		}
		return b.String()
	})
}

type reviewArgs struct {
	Proposal string `json:"proposal" jsonschema:"its id"`
	Approve  bool   `json:"approve" jsonschema:"true applies it once enough approve; false rejects it"`
	Comment  string `json:"comment,omitempty"`
}

type reviewAnswer struct {
	Status   string `json:"status"`
	Approved int    `json:"approved"`
	Required int    `json:"required"`
}

func (t tools) reviewProposal(ctx context.Context, a reviewArgs) (string, reviewAnswer, error) {
	input := map[string]any{"proposalId": a.Proposal, "decision": "REJECT"}
	if a.Approve {
		input["decision"] = "APPROVE"
	}
	if a.Comment != "" {
		input["comment"] = a.Comment
	}
	var answer struct {
		ReviewProposal struct{ Proposal reviewAnswer }
	}
	if err := t.GraphQL(ctx, `mutation($input: ReviewProposalInput!) { reviewProposal(input: $input) { proposal { status approved: approvalCount required: requiredApprovals } } }`, map[string]any{"input": input}, &answer); err != nil {
		return "", reviewAnswer{}, err
	}
	p := answer.ReviewProposal.Proposal
	return fmt.Sprintf("The proposal is %s, with %d of %d approvals.", strings.ToLower(p.Status), p.Approved, p.Required), p, nil
}

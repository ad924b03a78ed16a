package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/graph/internal/knowledge"
	"koine/internal/proposals"
	"koine/kg"
)

// Reviews keeps held updates and decides on them (proposals.Service).
type Reviews interface {
	Get(ctx context.Context, by proposals.Caller, id string) (*proposals.Proposal, error)
	List(ctx context.Context, by proposals.Caller, q proposals.Query) (*proposals.Page, error)
	Count(ctx context.Context, by proposals.Caller, q proposals.Query) (n int, exact bool, err error)
	Decide(ctx context.Context, by proposals.Caller, id string, d proposals.Decision, comment string, expected *kg.Revision) (*proposals.Proposal, error)
	// GetAt is Get at a revision.
	GetAt(ctx context.Context, by proposals.Caller, id string, r kg.Revision) (*proposals.Proposal, error)
	Withdraw(ctx context.Context, by proposals.Caller, id string) (*proposals.Proposal, error)
}

// reviewService returns the review service and the caller.
func (r *run) reviewService() (Reviews, proposals.Caller, error) {
	by := proposals.Caller{Principal: r.request.Principal, Actor: r.request.Actor}
	if r.engine.deps.Reviews == nil {
		return nil, by, kg.Errorf(kg.CodeNotFound, "reviews are disabled on this server")
	}
	return r.engine.deps.Reviews, by, nil
}

// Proposals answers Query.proposals.
func (*queryRoot) Proposals(ctx context.Context, status *ProposalStatus, author *string, first *int, after *Cursor, last *int, before *Cursor) (*ProposalConnection, error) {
	r := runOf(ctx)
	service, by, err := r.reviewService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("proposals", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, proposals.MaxPage)
	if err != nil {
		return nil, err
	}
	q := proposals.Query{Author: kg.AgentID(deref(author)), First: p.size, Behind: p.key, Backward: p.backward}
	if status != nil {
		q.Status = proposals.Status(strings.ToLower(string(*status)))
	}
	found, err := service.List(ctx, by, q)
	if err != nil {
		return nil, err
	}
	shown := make([]Proposal, len(found.Proposals))
	for i, p := range found.Proposals {
		one, err := shownProposal(ctx, r.engine.deps.Channels, p)
		if err != nil {
			return nil, err
		}
		shown[i] = *one
	}
	page := newListPage(p, shown, found.More, "", func(p *Proposal) string { return p.ID }, func(p *Proposal) Proposal { return *p })
	page.count = func(ctx context.Context) (int64, bool, error) {
		n, exact, err := service.Count(ctx, by, q)
		return int64(n), exact, err
	}
	return page, nil
}

func readProposal(ctx context.Context, id string) (*Proposal, error) {
	service, by, err := runOf(ctx).reviewService()
	if err != nil {
		return nil, err
	}
	p, err := service.Get(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return shownProposal(ctx, runOf(ctx).engine.deps.Channels, p)
}

// ReviewProposal answers Mutation.reviewProposal.
func (*mutationRoot) ReviewProposal(ctx context.Context, input ReviewProposalInput) (*ProposalPayload, error) {
	r := runOf(ctx)
	service, by, err := r.reviewService()
	if err != nil {
		return nil, err
	}
	p, err := service.Decide(ctx, by, input.ProposalID, proposals.Decision(strings.ToLower(string(input.Decision))), deref(input.Comment), input.ExpectedRevision)
	return r.proposalPayload(ctx, p, err)
}

// WithdrawProposal answers Mutation.withdrawProposal.
func (*mutationRoot) WithdrawProposal(ctx context.Context, input WithdrawProposalInput) (*ProposalPayload, error) {
	r := runOf(ctx)
	service, by, err := r.reviewService()
	if err != nil {
		return nil, err
	}
	p, err := service.Withdraw(ctx, by, input.ProposalID)
	return r.proposalPayload(ctx, p, err)
}

// proposalPayload answers a mutation of a proposal and notes the position after its
// commit.
func (r *run) proposalPayload(ctx context.Context, p *proposals.Proposal, err error) (*ProposalPayload, error) {
	if err != nil {
		return nil, inInput(withFieldNames(err, map[string]string{"id": "proposalId"}))
	}
	position := r.engine.deps.Store.Head()
	position.Revision = p.Revision
	r.notePosition(position)
	shown, err := shownProposal(ctx, r.engine.deps.Channels, p)
	return &ProposalPayload{Proposal: shown}, err
}

// shownProposal converts a proposal that the caller may read, with the message that it
// holds. from may be nil.
func shownProposal(ctx context.Context, from *channels.Service, p *proposals.Proposal) (*Proposal, error) {
	out := &Proposal{
		ID: p.ID, Status: ProposalStatus(strings.ToUpper(string(p.Status))), Author: agentOf(p.Author), AuthorID: string(p.Author), Actor: agentOf(p.Actor), ActorID: string(p.Actor),
		Patches: make([]json.RawMessage, len(p.Patches)), Justification: nilIfZero(p.Justification), TaskID: nilIfZero(p.TaskID), SessionID: nilIfZero(p.SessionID),
		Reason: nilIfZero(p.Reason), Rules: append([]string{}, p.Rules...), RequiredApprovals: p.RequiredApprovals, ApprovalCount: p.Approvals(),
		ReviewerRoles: append([]string{}, p.ReviewerRoles...), CreatedAt: p.Created, ExpiresAt: p.Expires, EndedAt: nilIfZero(p.Ended),
		ConflictReason: nilIfZero(p.Conflict), AppliedRevision: nilIfZero(p.AppliedIn), Revision: p.Revision, Reviews: make([]ProposalReview, len(p.Reviews)),
	}
	for i := range p.Patches {
		out.Patches[i] = patchJSON(&p.Patches[i])
	}
	for i, r := range p.Reviews {
		actor := cmp.Or(r.Actor, r.Reviewer)
		out.Reviews[i] = ProposalReview{
			Reviewer: agentOf(r.Reviewer), ReviewerID: string(r.Reviewer), Actor: agentOf(actor), ActorID: string(actor), Decision: ReviewDecision(strings.ToUpper(string(r.Decision))),
			Comment: nilIfZero(r.Comment), Time: r.Time,
		}
	}
	if p.Channel == "" || p.Status != proposals.Pending || from == nil {
		return out, nil
	}
	m, err := channels.NewHeld(from).Message(ctx, channel.ID(p.Channel), message.ID(p.MessageID))
	if m != nil {
		out.HeldMessage = &HeldMessage{
			MessageID: string(m.ID), ChannelID: string(m.Channel), AuthorID: string(m.Author), Parts: m.Parts, Metadata: m.Metadata, ArtifactRefs: append([]string{}, m.ArtifactRefs...),
			MessageType: enumOrNil[MessageType](m.Interaction), ContentType: enumOrNil[MessageContentType](m.ContentType), Format: nilIfZero(m.Format),
			Tags: append([]string{}, m.Tags...), Recipient: nilIfZero(m.To), CorrelationID: nilIfZero(string(m.Correlation)), ReplyToID: nilIfZero(string(m.ReplyTo)),
			ThreadID: nilIfZero(m.Thread), ExpiresAt: nilIfZero(m.ExpiresAt),
		}
	}
	return out, err
}

// nilIfZero returns a pointer to a value, nil for the zero value.
func nilIfZero[T string | time.Time | kg.Revision](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// patchJSON encodes a patch in the form of PatchInput.
func patchJSON(p *kg.Patch) json.RawMessage {
	type id struct {
		ID string `json:"id"`
	}
	type object struct {
		ID       string          `json:"id,omitempty"`
		Value    json.RawMessage `json:"value,omitempty"`
		Type     string          `json:"type,omitempty"`
		Language string          `json:"language,omitempty"`
	}
	type statement struct {
		Subject    id              `json:"subject"`
		Predicate  id              `json:"predicate"`
		Object     object          `json:"object"`
		Graph      string          `json:"graph,omitempty"`
		Certainty  *float64        `json:"certainty,omitempty"`
		ValidFrom  *time.Time      `json:"validFrom,omitempty"`
		ValidTo    *time.Time      `json:"validTo,omitempty"`
		Source     string          `json:"source,omitempty"`
		Provenance json.RawMessage `json:"provenance,omitempty"`
	}
	s := statement{Subject: id{p.Quad.Subject.ExternalID()}, Predicate: id{p.Quad.Predicate.Value()}, Source: string(p.Source), Provenance: p.Provenance}
	if o := p.Quad.Object; o.IsLiteral() {
		s.Object = object{Value: o.ValueJSON(), Type: o.Datatype(), Language: o.Lang()}
	} else {
		s.Object.ID = o.ExternalID()
	}
	if p.Quad.Graph != kg.DefaultGraph {
		s.Graph = p.Quad.Graph.Value()
	}
	if p.HasCertainty {
		s.Certainty = &p.Certainty
	}
	s.ValidFrom, s.ValidTo = nilIfZero(p.Validity.From), nilIfZero(p.Validity.Until)
	raw, err := json.Marshal(struct {
		Op        string    `json:"op"`
		Statement statement `json:"statement"`
	}{p.Op.String(), s})
	if err != nil {
		return json.RawMessage("null") // not a number: never stored
	}
	return raw
}

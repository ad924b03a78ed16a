package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/update"
	"koine/kg"
)

// PublishMessage answers Mutation.publishMessage.
func (*mutationRoot) PublishMessage(ctx context.Context, input PublishMessageInput) (*PublishMessagePayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, facts, err := r.convertPublication(ctx, &input)
	if err != nil {
		return nil, err
	}
	receipt, err := publishTo(ctx, service, by, &input, p)
	if held := heldPayload(err); held != nil {
		r.notePosition(r.engine.deps.Store.Head())
		return held, nil
	}
	if err != nil {
		return nil, placePublishError(err, facts.Mutation)
	}
	r.notePosition(r.positionOf(receipt))
	return publicationPayload(receipt), nil
}

// positionOf returns the position after the commit of a publication.
func (r *run) positionOf(receipt *channels.Receipt) kg.Position {
	if m := receipt.Message; m != nil && !receipt.Replayed {
		return endOf(r.engine.deps.Store, m.Revision)
	}
	return r.engine.deps.Store.Head()
}

// publishTo publishes to the channel named in the input, or to the one with
// its id.
func publishTo(ctx context.Context, service *channels.Service, by channels.Caller, input *PublishMessageInput, p channels.Publication) (*channels.Receipt, error) {
	switch {
	case input.ScopeID == nil && input.ChannelName == nil:
		return service.Publish(ctx, by, p)
	case input.ScopeID == nil:
		return nil, kg.Errorf(kg.CodeInvalid, "channelName requires scopeId").At("scopeId")
	case input.ChannelName == nil:
		return nil, kg.Errorf(kg.CodeInvalid, "scopeId requires channelName").At("channelName")
	}
	receipt, err := service.PublishByName(ctx, by, scope.ID(*input.ScopeID), *input.ChannelName, p)
	if err != nil {
		return nil, withFieldNames(err, map[string]string{"name": "channelName"})
	}
	return receipt, nil
}

// convertPublication converts the input. The domain checks it.
func (r *run) convertPublication(ctx context.Context, input *PublishMessageInput) (channels.Publication, update.Facts, error) {
	facts, err := r.convertFacts(ctx, input.Patches)
	if err != nil {
		return channels.Publication{}, facts, kg.AsError(err).At("input")
	}
	return channels.Publication{
		Patches: facts.Patches, Implied: facts.Implied,
		Channel: channel.ID(deref(input.ChannelID)), To: kg.AgentID(deref(input.To)), Parts: input.Parts, ArtifactRefs: input.ArtifactRefs,
		Metadata: input.Metadata, Embedding: input.Embedding, IdempotencyKey: deref(input.IdempotencyKey), Justification: deref(input.Justification),
		TaskID: cmp.Or(deref(input.TaskID), r.request.TaskID), SessionID: cmp.Or(deref(input.SessionID), r.request.SessionID),
		Envelope: message.Envelope{
			Interaction: message.Interaction(inDomain(deref(input.MessageType))), ContentType: message.ContentType(inDomain(deref(input.ContentType))),
			Format: deref(input.Format), Tags: input.Tags, To: deref(input.Recipient), Correlation: message.ID(deref(input.CorrelationID)),
			ExpiresAt: orZero(input.ExpiresAt), ReplyTo: message.ID(deref(input.ReplyToID)), Thread: deref(input.ThreadID),
		},
	}, facts, nil
}

// convertFacts converts patches.
func (r *run) convertFacts(ctx context.Context, patches []PatchInput) (update.Facts, error) {
	mutations, err := r.convertPatches(patches)
	if err != nil {
		return update.Facts{}, kg.AsError(r.TellPrefixed(ctx, err)).At("patches")
	}
	for i := range mutations {
		if patches[i].Statement.Graph == nil {
			mutations[i].Quad.Graph = kg.Term{} // the channel chooses the graph
		}
	}
	facts, err := update.Expand(ctx, r.engine.deps.Names, r.request.Principal, mutations)
	if err != nil {
		e := *kg.AsError(err)
		if !strings.Contains(e.Field, "].embedding") {
			e.Field = strings.Replace(e.Field, "].", "].statement.", 1)
		}
		return facts, e.At("patches")
	}
	return facts, nil
}

// patchIndex matches the index of a patch in an error of the domain.
var patchIndex = regexp.MustCompile(`^patches\[(\d+)\]`)

// placePublishError places an error of the domain in the mutation's input. of
// maps the domain's patches to elements of `patches`.
func placePublishError(err error, of []int) error {
	e := kg.AsError(err)
	at := patchIndex.FindStringSubmatch(e.Field)
	if at == nil {
		return inInput(err)
	}
	n, failed := strconv.Atoi(at[1])
	if failed != nil || n >= len(of) {
		return inInput(err)
	}
	out := *e
	out.Field = fmt.Sprintf("[%d]%s", of[n], e.Field[len(at[0]):])
	return placeUpdateError(&out)
}

// heldPayload is the payload of a message that is held for review, nil for another
// error.
func heldPayload(err error) *PublishMessagePayload {
	if kg.CodeOf(err) != kg.CodeContentHeld {
		return nil
	}
	e := kg.AsError(err)
	return &PublishMessagePayload{VerificationStatus: kg.ReasonHeld, VerificationDetails: &e.Message, ProposalID: &e.ProposalID}
}

func publicationPayload(receipt *channels.Receipt) *PublishMessagePayload {
	verdict := &receipt.Verdict
	p := &PublishMessagePayload{
		Success: receipt.Message != nil, Replayed: receipt.Replayed, StatementsAffected: int64(receipt.Affected),
		VerificationStatus: "Verified", VerificationDetails: nilIfEmpty(verdict.Details),
	}
	if receipt.Message != nil {
		p.Message, p.ProposalID = messageOf(receipt.Message), nilIfEmpty(receipt.Message.ProposalID)
	}
	switch verdict.Outcome {
	case kg.Accepted:
	case kg.Held:
		p.VerificationStatus = kg.ReasonHeld
	default:
		p.VerificationStatus = "Rejected - " + verdict.Reason
	}
	return p
}

// RetractMessage answers Mutation.retractMessage.
func (*mutationRoot) RetractMessage(ctx context.Context, input RetractMessageInput) (*RetractMessagePayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	receipt, err := service.Retract(ctx, by, channels.Retraction{
		Channel: channel.ID(input.ChannelID), Message: message.ID(input.MessageID), Reason: deref(input.Reason),
		WithdrawFacts: deref(input.WithdrawFacts), DryRun: deref(input.DryRun),
	})
	if err != nil {
		return nil, inInput(err)
	}
	r.notePosition(r.positionOf(&receipt.Receipt))
	return retractionPayload(receipt), nil
}

func retractionPayload(receipt *channels.RetractionReceipt) *RetractMessagePayload {
	shown := publicationPayload(&receipt.Receipt)
	p := &RetractMessagePayload{
		Success: receipt.Verdict.Outcome == kg.Accepted || receipt.Verdict.Outcome == kg.Held,
		Message: shown.Message, Replayed: receipt.Replayed, DryRun: receipt.DryRun, KeptCount: receipt.Kept,
		Withdrawn: make([]json.RawMessage, len(receipt.Withdrawn)), StatementsAffected: shown.StatementsAffected,
		VerificationStatus: shown.VerificationStatus, VerificationDetails: shown.VerificationDetails, ProposalID: cmp.Or(nilIfEmpty(receipt.Proposal), shown.ProposalID),
		WithdrawnProposalID: nilIfEmpty(receipt.WithdrawnProposal),
	}
	for i := range receipt.Withdrawn {
		p.Withdrawn[i] = patchJSON(&receipt.Withdrawn[i])
	}
	return p
}

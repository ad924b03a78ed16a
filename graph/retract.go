package graph

import (
	"cmp"
	"context"
	"encoding/json"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

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

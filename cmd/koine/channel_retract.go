package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"koine/client"
	"koine/kg"
)

// retractMessage retracts a message.
type retractMessage struct {
	oneMessage
	Reason string `help:"Reason, for readers of the channel." placeholder:"TEXT"`
	Facts  bool   `help:"Withdraw the facts of the message as well, as far as they still hold and you may."`
	DryRun bool   `help:"Print what would be withdrawn without changing anything."`
	JSON   bool   `help:"Print the response as JSON."`
}

// Help is shown by --help.
func (retractMessage) Help() string {
	return `Publishes a retraction and prints its sequence and id. The content of the retracted message is no longer shown. The author of the message may retract it, and owners and moderators of the channel.

Facts that are still pending review are withdrawn with the message, also without --facts. --facts --dry-run prints the patches that would withdraw its facts, as JSON. A fact belongs to the message that asserted it first: if the same author repeated it in a later message, it is withdrawn with the first one, and must be published again to remain. Assertions of other authors remain.

With --json, the message is an event in the form of koine channel history --json; the other fields are those of GraphQL (RetractMessagePayload).

Examples:
  koine channel retract lab 7 --reason 'Wrong sample'
  koine channel retract lab 7 --facts --dry-run
  koine channel retract --to bob 2`
}

const retraction = `mutation($input: RetractMessageInput!) { retractMessage(input: $input) {
  success message { ...message } replayed dryRun withdrawn keptCount statementsAffected verificationStatus verificationDetails proposalId withdrawnProposalId } } ` + messageFields

// retractionResult is the server's answer to a retraction.
type retractionResult struct {
	Success             bool
	Message             *graphQLMessage
	Replayed            bool
	DryRun              bool
	Withdrawn           []json.RawMessage
	KeptCount           int
	StatementsAffected  int64
	VerificationStatus  string
	VerificationDetails string
	ProposalID          string
	WithdrawnProposalID string
}

// Run retracts the message, or with --dry-run prints the effect of a retraction.
func (c *retractMessage) Run(ctx context.Context, t terminal) error {
	server, id, err := c.openChannel(ctx)
	if err != nil {
		return err
	}
	message, err := messageNamed(ctx, server, id, c.messageArgument())
	if err != nil {
		return err
	}
	answer, err := c.sendRetraction(ctx, server, id, message)
	if err != nil {
		return err
	}
	return c.printOutcome(t, answer)
}

func (c *retractMessage) sendRetraction(ctx context.Context, server *client.Client, channel, message string) (json.RawMessage, error) {
	input := map[string]any{"channelId": channel, "messageId": message, "withdrawFacts": c.Facts, "dryRun": c.DryRun}
	if c.Reason != "" {
		input["reason"] = c.Reason
	}
	var answer struct{ RetractMessage json.RawMessage }
	err := server.GraphQL(ctx, retraction, map[string]any{"input": input}, &answer)
	return answer.RetractMessage, err
}

func (c *retractMessage) printOutcome(t terminal, raw json.RawMessage) error {
	var became retractionResult
	if err := json.Unmarshal(raw, &became); err != nil {
		return invalidResponse(err)
	}
	if c.JSON {
		if err := became.printJSON(t); err != nil {
			return err
		}
	}
	switch {
	case !became.Success:
		return exitError{errors.New("the message was not retracted: " + stripControls(reasonText(became.VerificationStatus, became.VerificationDetails))), exitRefused}
	case c.JSON:
		return nil
	case became.Replayed:
		t.sayf("The message was retracted before.")
	case c.DryRun && !c.Facts:
		t.sayf("The message would be retracted.")
	}
	if became.WithdrawnProposalID != "" {
		t.sayf("%s", became.pendingFactsText(c.DryRun))
	} else if c.Facts {
		t.sayf("%s", stripControls(became.factsText(c.DryRun)))
	}
	if c.DryRun {
		for _, patch := range became.Withdrawn {
			if err := printJSON(t.out, patch, true); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := fmt.Fprintf(t.out, "%d  %s\n", became.Message.Sequence, became.Message.ID)
	return err
}

// printJSON prints the result as JSON, with the message in the form of a channel event.
func (r *retractionResult) printJSON(t terminal) error {
	out := struct {
		Success             bool              `json:"success"`
		Event               json.RawMessage   `json:"event,omitempty"`
		Replayed            bool              `json:"replayed"`
		DryRun              bool              `json:"dryRun"`
		Withdrawn           []json.RawMessage `json:"withdrawn"`
		KeptCount           int               `json:"keptCount"`
		StatementsAffected  int64             `json:"statementsAffected"`
		VerificationStatus  string            `json:"verificationStatus"`
		VerificationDetails string            `json:"verificationDetails,omitempty"`
		ProposalID          string            `json:"proposalId,omitempty"`
		WithdrawnProposalID string            `json:"withdrawnProposalId,omitempty"`
	}{
		Success: r.Success, Replayed: r.Replayed, DryRun: r.DryRun, Withdrawn: r.Withdrawn, KeptCount: r.KeptCount, StatementsAffected: r.StatementsAffected,
		VerificationStatus: r.VerificationStatus, VerificationDetails: r.VerificationDetails, ProposalID: r.ProposalID, WithdrawnProposalID: r.WithdrawnProposalID,
	}
	if r.Message != nil {
		m, err := r.Message.clientMessage()
		if err != nil {
			return err
		}
		out.Event = m.Raw
	}
	text, err := encodeJSON(out)
	if err != nil {
		return err
	}
	return printJSON(t.out, text, true)
}

// pendingFactsText describes facts that were pending review. Their proposal is withdrawn
// with the message.
func (r *retractionResult) pendingFactsText(dryRun bool) string {
	if dryRun {
		return "facts: pending as proposal " + r.WithdrawnProposalID + ", which would be withdrawn with the message; none is asserted"
	}
	return "facts: were pending as proposal " + r.WithdrawnProposalID + ", which was withdrawn with the message; none was asserted"
}

// factsText describes the withdrawal of the message's facts, or with dryRun the expected
// withdrawal.
func (r *retractionResult) factsText(dryRun bool) string {
	held := r.VerificationStatus == kg.ReasonHeld
	text := fmt.Sprintf("facts: %d withdrawn", len(r.Withdrawn))
	switch {
	case len(r.Withdrawn) == 0 && r.KeptCount == 0 && !held:
		return "facts: none of the message is asserted anymore; nothing is withdrawn"
	case held:
		text = fmt.Sprintf("facts: %d to be withdrawn once approved", len(r.Withdrawn))
	case dryRun:
		text = fmt.Sprintf("facts: %d to be withdrawn", len(r.Withdrawn))
	}
	if r.KeptCount > 0 {
		text += fmt.Sprintf(", %d remain that you may not withdraw", r.KeptCount)
	}
	if r.ProposalID != "" {
		text += ", as proposal " + r.ProposalID
	}
	return reasonText(text+": "+r.VerificationStatus, r.VerificationDetails)
}

func reasonText(status, details string) string {
	if details == "" {
		return status
	}
	return status + "\n" + details
}

package online

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"koine/channels/message"
	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// publishInput holds the arguments and flags that ask and publish share.
type publishInput struct {
	Channel *string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	Text    *string `arg:"" optional:"" help:"Text of the message; - or no text reads standard input."`
	cli.ServerFlags
	Scope     string   `help:"Scope of the channel, if its name is not unique." placeholder:"ID"`
	To        string   `help:"Publish in the direct channel with this agent." placeholder:"AGENT"`
	Recipient string   `help:"Recipient: an agent or role:NAME, and then only the recipients and the author can read the message; or * for all members." placeholder:"AGENT"`
	Data      []string `help:"JSON data to add to the message as a part; may be repeated." placeholder:"JSON" sep:"none"`
	Once      string   `help:"Idempotency key: commands with the same key publish one message." placeholder:"KEY"`
	Thread    string   `help:"Thread of the message." placeholder:"TEXT"`
	Tag       []string `help:"Tag of the message; may be repeated." placeholder:"TEXT"`
	Why       string   `help:"Justification for the history." placeholder:"TEXT"`
	JSON      bool     `help:"Print the response as JSON."`
}

// checkFlags reports an error if arguments or flags exclude each other.
func (c *publishInput) checkFlags() error {
	switch {
	case c.To != "" && c.Text != nil:
		return errors.New("--to and a channel are mutually exclusive: omit the channel, and quote the text")
	case c.To != "" && c.Scope != "":
		return errors.New("a direct channel has no scope: omit --scope or --to")
	case c.To == "" && (c.Channel == nil || *c.Channel == ""):
		return errors.New("no channel given: pass one, or --to AGENT")
	}
	if text := c.textArgument(); text != nil && *text == "" && len(c.Data) == 0 {
		return errors.New("the text is empty: pass one, or omit it to read standard input")
	}
	return nil
}

// textArgument returns the text argument, nil if it is absent.
func (c *publishInput) textArgument() *string {
	if c.To != "" {
		return c.Channel // with --to the first argument is the text
	}
	return c.Text
}

func (c *publishInput) basePublication(ctx context.Context, t cli.Terminal, server *client.Client) (p client.Publication, err error) {
	p = client.Publication{To: c.To, Recipient: c.Recipient, IdempotencyKey: c.Once, ThreadID: c.Thread, Tags: c.Tag, Justification: c.Why}
	if c.To == "" {
		if p.Channel, err = findChannel(ctx, server, c.Scope, *c.Channel, preferOpen); err != nil {
			return p, err
		}
	}
	text := ""
	if given := c.textArgument(); given != nil {
		text = *given
	}
	p.Parts, err = c.messageParts(t, text)
	return p, err
}

// resolveMessage returns the id of the earlier message that a flag names. The channel is
// the one that the new message goes to, "" with --to.
func (c *publishInput) resolveMessage(ctx context.Context, server *client.Client, channel, message string) (id string, err error) {
	if _, ok := sequenceIn(message); ok && channel == "" {
		if channel, err = directChannel(ctx, server, c.To); err != nil {
			return "", err
		}
	}
	return messageNamed(ctx, server, channel, message)
}

// messageParts returns a text part, unless --data alone is given, and a part for each
// --data.
func (c *publishInput) messageParts(t cli.Terminal, text string) (parts []any, err error) {
	if text != "" || len(c.Data) == 0 {
		if text, err = cli.ReadText(t, text, ""); err != nil {
			return nil, err
		}
		parts = append(parts, client.TextPart(strings.TrimSuffix(text, "\n")))
	}
	for _, data := range c.Data {
		if !json.Valid([]byte(data)) {
			return nil, cli.Usagef("--data must be JSON, not %s", data)
		}
		parts = append(parts, client.DataPart(json.RawMessage(data)))
	}
	return parts, nil
}

// publishMessage publishes a message.
type publishMessage struct {
	publishInput
	Facts   string `help:"File with the facts of the message: a JSON array of patches, as in knowledge/update." placeholder:"FILE" type:"path"`
	Type    string `help:"Type of the message: request, response, notify or broadcast." enum:"request,response,notify,broadcast," default:"" placeholder:"TYPE"`
	Answers string `help:"Request that the message responds to, by sequence or id." placeholder:"MESSAGE"`
	ReplyTo string `help:"Message that this one replies to, by sequence or id." placeholder:"MESSAGE"`
}

// Help is shown by --help.
func (publishMessage) Help() string {
	return `Prints the sequence and the id of the message, and with --to the id of the channel.

If its facts are refused, the message is not published. Standard error reports the outcome of the facts.

Examples:
  koine channel publish lab 'Shall we look at finding 1?'
  git log -1 | koine channel publish lab
  koine channel publish lab 'I measured it again.' --facts measured.json --once run-17
  koine channel publish lab '4 days.' --answers 7
  koine channel publish --to bob 'Between the two of us.'`
}

// Run publishes the message.
func (c *publishMessage) Run(ctx context.Context, t cli.Terminal) error {
	if c.Answers != "" && c.Type != "" && c.Type != "response" {
		return cli.Usagef("--answers publishes a response, not a %s: omit --type or --answers", c.Type)
	}
	if err := c.checkFlags(); err != nil {
		return cli.AsUsage(err)
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	p, err := c.newPublication(ctx, t, server)
	if err != nil {
		return err
	}
	made, err := server.Publish(ctx, p)
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(t.Out, made.Raw, true)
	}
	if made.Replayed {
		t.Notef("The message was published before; nothing has changed.")
	}
	if made.VerificationStatus != "" {
		t.Notef("%s", cli.StripControls(factsLine(made)))
	}
	line := fmt.Sprintf("%d  %s", made.Message.Sequence, made.Message.ID)
	if c.To != "" {
		line += "  " + made.Message.ChannelID
	}
	_, err = fmt.Fprintln(t.Out, line)
	return err
}

func (c *publishMessage) newPublication(ctx context.Context, t cli.Terminal, server *client.Client) (p client.Publication, err error) {
	if p, err = c.basePublication(ctx, t, server); err != nil {
		return p, err
	}
	p.Type = c.Type
	if c.Answers != "" {
		p.Type = "response"
	}
	if p.CorrelationID, err = c.resolveMessage(ctx, server, p.Channel, c.Answers); err != nil {
		return p, err
	}
	if p.ReplyToID, err = c.resolveMessage(ctx, server, p.Channel, c.ReplyTo); err != nil {
		return p, err
	}
	if c.Facts != "" {
		p.Patches, err = factsIn(c.Facts)
	}
	return p, err
}

// factsLine describes the outcome of the facts in a published message.
func factsLine(p *client.Published) string {
	text := fmt.Sprintf("facts: %s, %d affected", p.VerificationStatus, p.StatementsAffected)
	if p.Replayed {
		text = "facts: " + p.VerificationStatus
	}
	if p.ProposalID != "" {
		text = fmt.Sprintf("facts: %s as proposal %s", p.VerificationStatus, p.ProposalID)
	}
	if p.VerificationDetails != "" {
		text += "\n" + p.VerificationDetails
	}
	return text
}

// factsIn reads the patches in a JSON file.
func factsIn(file string) (patches []client.Patch, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usagef("--facts: %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, cli.Refusedf("--facts: %s is not a JSON array of patches: %w", file, err)
	}
	for _, raw := range list {
		patches = append(patches, client.RawPatch(raw))
	}
	return patches, nil
}

// askInChannel publishes a request and waits for its response.
type askInChannel struct {
	publishInput
	Wait time.Duration `help:"How long to wait for the response." default:"30s"`
}

// Help is shown by --help.
func (askInChannel) Help() string {
	return `Prints the first response that was not retracted. If the server does not know the agent, the request is published, the command says so, and waits: the agent may still connect. Without a response in time, the exit code is 6. After a timeout or an interrupt, the command prints how to continue waiting: with the same --once, it publishes no new request, and finds responses that arrived in between.

Examples:
  koine channel ask --to bob 'Was it dry?'
  koine channel ask lab 'Who measured run 7?' --recipient role:reviewer --wait 10m
  koine channel publish lab 'I did.' --answers 7`
}

// Run publishes the request and prints the response.
func (c *askInChannel) Run(ctx context.Context, t cli.Terminal) error {
	err := c.checkFlags()
	switch {
	case err != nil:
		return cli.AsUsage(err)
	case c.To == "" && c.Recipient == "":
		return cli.Usagef("ask requires a recipient: pass --recipient AGENT, --recipient role:NAME or --to AGENT")
	case c.Wait <= 0:
		return cli.Usagef("--wait must be positive")
	}
	server, err := c.OpenStream(ctx, t)
	if err != nil {
		return err
	}
	p, err := c.basePublication(ctx, t, server)
	if err != nil {
		return err
	}
	if p.IdempotencyKey == "" {
		p.IdempotencyKey = uuid.NewString() // the key with which the caller can resume waiting
	}
	if whom := cmp.Or(c.Recipient, c.To); unknownAgent(ctx, server, whom) {
		p.Type = "request" // Ask publishes with the same key, so the request exists once
		if _, err := server.Publish(ctx, p); err != nil {
			return err
		}
		t.Notef("The server does not know %s: no agent of this name is registered or has written anything. It may still connect; waiting for %s.", kg.CanonicalAgent(whom), c.Wait)
	}
	m, err := server.Ask(ctx, p, c.Wait)
	switch {
	case errors.Is(err, client.Unanswered):
		return cli.WithCode(fmt.Errorf("%w\nContinue waiting with --once %s", err, p.IdempotencyKey), cli.ExitUnanswered)
	case ctx.Err() != nil:
		t.Notef("Continue waiting with --once %s", p.IdempotencyKey)
		return ctx.Err()
	case err != nil:
		return c.StreamError(err)
	}
	return printMessage(ctx, t, server, m, cli.OutputFlags{JSON: c.JSON})
}

// unknownAgent reports whether the server has neither a record of the agent nor, as far as
// the caller may see, any commit by it. The second test is needed because agents have no
// records in open mode. It returns false for a role, and if the server does not tell.
func unknownAgent(ctx context.Context, server *client.Client, whom string) bool {
	if whom == string(message.Everyone) || strings.HasPrefix(whom, "role:") {
		return false
	}
	var answer struct {
		Agent *struct{ ID string }
		Audit struct{ Nodes []struct{ Actor string } }
	}
	const record = `query($agent: ID!) { agent(id: $agent) { id } }`
	if err := server.GraphQL(ctx, record, map[string]any{"agent": whom}, &answer); err != nil || answer.Agent != nil {
		return false
	}
	const actions = `query($agent: ID!) { audit(actorId: $agent, first: 1) { nodes { actor: actorId } } }`
	if err := server.GraphQL(ctx, actions, map[string]any{"agent": whom}, &answer); err != nil {
		return errors.Is(err, client.PermissionDenied) // the server authenticates callers, so a known agent would have a record
	}
	return len(answer.Audit.Nodes) == 0
}

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
  success event: message { ...message } replayed dryRun withdrawn keptCount statementsAffected verificationStatus verificationDetails proposalId withdrawnProposalId } } ` + messageFields

// retractionResult is the server's answer to a retraction, and the output of --json.
type retractionResult struct {
	Success             bool              `json:"success"`
	Event               *graphQLMessage   `json:"event,omitempty"`
	Replayed            bool              `json:"replayed"`
	DryRun              bool              `json:"dryRun"`
	Withdrawn           []json.RawMessage `json:"withdrawn"`
	KeptCount           int               `json:"keptCount"`
	StatementsAffected  int64             `json:"statementsAffected"`
	VerificationStatus  string            `json:"verificationStatus"`
	VerificationDetails string            `json:"verificationDetails,omitempty"`
	ProposalID          string            `json:"proposalId,omitempty"`
	WithdrawnProposalID string            `json:"withdrawnProposalId,omitempty"`
}

// Run retracts the message, or with --dry-run prints the effect of a retraction.
func (c *retractMessage) Run(ctx context.Context, t cli.Terminal) error {
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

func (c *retractMessage) printOutcome(t cli.Terminal, raw json.RawMessage) error {
	var became retractionResult
	if err := json.Unmarshal(raw, &became); err != nil {
		return cli.InvalidResponse(err)
	}
	if c.JSON {
		if err := became.printJSON(t); err != nil {
			return err
		}
	}
	switch {
	case !became.Success:
		return cli.Refusedf("the message was not retracted: %s", cli.StripControls(reasonText(became.VerificationStatus, became.VerificationDetails)))
	case c.JSON:
		return nil
	case became.Replayed:
		t.Notef("The message was retracted before.")
	case c.DryRun && !c.Facts:
		t.Notef("The message would be retracted.")
	}
	if became.WithdrawnProposalID != "" {
		t.Notef("%s", became.pendingFactsText(c.DryRun))
	} else if c.Facts {
		t.Notef("%s", cli.StripControls(became.factsText(c.DryRun)))
	}
	if c.DryRun {
		for _, patch := range became.Withdrawn {
			if err := cli.PrintJSON(t.Out, patch, true); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := fmt.Fprintf(t.Out, "%d  %s\n", became.Event.Sequence, became.Event.ID)
	return err
}

// printJSON prints the result as JSON, with the message in the form of a channel event.
func (r *retractionResult) printJSON(t cli.Terminal) error {
	if r.Event != nil {
		r.Event.Kind = "messageEvent"
	}
	text, err := cli.EncodeJSON(r)
	if err != nil {
		return err
	}
	return cli.PrintJSON(t.Out, text, true)
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

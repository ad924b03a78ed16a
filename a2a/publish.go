package a2a

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/update"
	"koine/kg"
)

// publishMessage handles channels/publish (channels extension, section 7.1).
func (h *Handler) publishMessage(ctx context.Context, c *call) (any, error) {
	f := new(failure)
	params := readParams(f, c.params)
	p := readPublication(&params)
	facts := h.readFacts(ctx, c, f, &params)
	params.checkAllRead()
	if err := f.firstError(); err != nil {
		return nil, h.names.SuggestPrefixed(ctx, c.caller.Principal, err)
	}
	p.Patches, p.Implied = facts.Patches, facts.Implied
	receipt, err := h.channels.Publish(ctx, c.byCaller(), p)
	if err != nil {
		return nil, inFacts(err, facts.Mutation)
	}
	if receipt.Message == nil {
		return nil, rejectedMessage(receipt.Verdict, len(p.Patches) > 0)
	}
	return encodePublished(receipt, len(p.Patches) > 0), nil
}

// readFacts reads patches in the form of knowledge/update.
func (h *Handler) readFacts(ctx context.Context, c *call, f *failure, params *object) update.Facts {
	patches, present := params.readArray("patches")
	if !present || len(patches) == 0 {
		return update.Facts{}
	}
	facts, err := update.Expand(ctx, h.names, c.caller.Principal, h.readMutations(f, "patches", patches))
	if err != nil {
		f.setAt("", inPatch(kg.AsError(err)).At("patches"))
	}
	return facts
}

// factPart matches the index of a patch in the domain's fields.
var factPart = regexp.MustCompile(`^patches\[(\d+)\]`)

// inFacts converts the field of an error about a patch to its path in the params; of
// maps the domain's patches to elements of patches.
func inFacts(err error, of []int) error {
	e := kg.AsError(err)
	at := factPart.FindStringSubmatch(e.Field)
	if at == nil {
		return err
	}
	n, failed := strconv.Atoi(at[1])
	if failed != nil || n >= len(of) {
		return err
	}
	f := *e
	f.Field = fmt.Sprintf("[%d]%s", of[n], e.Field[len(at[0]):])
	return inPatch(&f).At("patches")
}

// rejectedMessage is the error for a message that was refused because of its content or its
// facts.
func rejectedMessage(v kg.Verdict, facts bool) *Error {
	message := v.Reason
	if v.Details != "" {
		message += ": " + v.Details
	}
	hint := "Nothing was published. Correct the message."
	if facts {
		hint = "Nothing was published. Correct the message or its facts, or leave them out."
	}
	return newError(codeAlignment, message, details{Reason: string(kg.CodeConstraintViolation), Verification: "Rejected - " + v.Reason, Hint: hint})
}

func readPublication(params *object) (p channels.Publication) {
	id, _ := params.readText("channelId")
	p.Channel, p.To = channel.ID(id), params.readAgent("to")
	parts, _ := params.readArray("parts")
	for _, part := range parts {
		p.Parts = append(p.Parts, part)
	}
	p.ArtifactRefs = params.readTexts("artifactRefs")
	p.Metadata = params.readContent("metadata")
	p.Embedding = params.readEmbedding()
	p.IdempotencyKey, _ = params.readText("idempotencyKey")
	p.Envelope = readEnvelope(params)
	p.Justification, _ = params.readText("justification")
	p.TaskID, _ = params.readText("taskId")
	p.SessionID, _ = params.readText("sessionId")
	return p
}

// readEnvelope reads koine's extensions of a publication.
func readEnvelope(params *object) (e message.Envelope) {
	text := func(name string) string { s, _ := params.readText(name); return s }
	e.Interaction = message.Interaction(text("messageType"))
	e.ContentType = message.ContentType(text("contentType"))
	e.Format = text("format")
	e.Tags = params.readTexts("tags")
	e.To = text("recipient")
	e.Correlation = message.ID(text("correlationId"))
	e.ExpiresAt = params.readMillis("expiresAt")
	e.ReplyTo = message.ID(text("replyToId"))
	e.Thread = text("threadId")
	return e
}

// publishAnswer is the result of channels/publish. The members after event are
// extensions of koine: the outcome of the facts, if any.
type publishAnswer struct {
	Event               *wireMessage `json:"event"`
	Replayed            bool         `json:"replayed,omitempty"`
	StatementsAffected  *int         `json:"statementsAffected,omitempty"`
	VerificationStatus  string       `json:"verificationStatus,omitempty"`
	VerificationDetails string       `json:"verificationDetails,omitempty"`
	ProposalID          string       `json:"proposalId,omitempty"`
}

func encodePublished(r *channels.Receipt, facts bool) publishAnswer {
	out := publishAnswer{Event: encodeMessage(r.Message), Replayed: r.Replayed}
	if !facts {
		return out
	}
	out.VerificationStatus, out.VerificationDetails = "Verified", r.Verdict.Details
	if r.Verdict.Outcome == kg.Held {
		out.VerificationStatus, out.ProposalID = kg.ReasonHeld, r.Message.ProposalID
	}
	if !r.Replayed { // a replay affects nothing
		out.StatementsAffected = &r.Affected
	}
	return out
}

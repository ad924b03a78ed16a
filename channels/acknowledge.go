package channels

import (
	"context"

	"koine/kg"
)

// MaxAcknowledged is how many messages one acknowledgement names.
const MaxAcknowledged = 200

// Acknowledgement says what the caller got.
type Acknowledgement struct {
	Channel ChannelID
	// UpTo is a sequence: everything up to it that is for the caller. Or Messages
	// names messages that are for it.
	UpTo     int64
	Messages []MessageID
	// State is IsDelivered or IsRead, which includes it.
	State ReceiptState
}

// Acknowledge writes down what the caller got. The receipts of a channel share one
// commit a second. One that says read returns when its commit is durable; one that
// says delivered returns at once, and is lost where the server is killed before the
// commit. Close writes what waits.
//
// Errors: CodeChannelNotFound; CodeInvalid for a message or sequence that the channel
// does not have; CodePermissionDenied for a message that is not for the caller;
// CodeMessageExpired for one that has expired, and for everything in a channel that
// has closed; CodeOverloaded when too many wait.
func (s *Service) Acknowledge(ctx context.Context, by Caller, a Acknowledgement) error {
	agent, e, err := s.requireReadable(by, a.Channel)
	if err != nil {
		return err
	}
	if err := by.Principal.CheckWrite(); err != nil {
		return err
	}
	if err := a.validate(); err != nil {
		return err
	}
	ack := &pendingAck{Acknowledgement: a, service: s, agent: agent, reader: by.readerPrincipal(agent), done: make(chan error, 1)}
	if err := ack.resolveMessages(ctx, e); err != nil {
		return err
	}
	if err := s.receipts.enqueue(ack); err != nil || a.State != ReceiptRead {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-ack.done:
		return err
	}
}

func (a *Acknowledgement) validate() error {
	switch {
	case a.State != ReceiptDelivered && a.State != ReceiptRead:
		return kg.Errorf(kg.CodeInvalid, "delivered or read is acknowledged, not %.60q", a.State).At("status")
	case (a.UpTo != 0) == (len(a.Messages) > 0):
		return kg.Errorf(kg.CodeInvalid, "either a sequence or messages are acknowledged").At("upToSequence")
	case a.UpTo < 0:
		return kg.Errorf(kg.CodeInvalid, "sequences begin at 1").At("upToSequence")
	case len(a.Messages) > MaxAcknowledged:
		return errTooMuch("messageIds", "%d messages are more than the %d that one acknowledgement names", len(a.Messages), MaxAcknowledged)
	}
	return nil
}

package receipts

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/message"
	"koine/kg"
)

// MaxAcknowledged is the maximum number of messages in one acknowledgement.
const MaxAcknowledged = 200

// Acknowledgement reports that the caller received or read messages.
type Acknowledgement struct {
	Channel channel.ID
	// UpTo acknowledges all messages for the caller up to this sequence. Alternatively,
	// Messages lists individual messages for the caller. Exactly one of the two is set.
	UpTo     int64
	Messages []message.ID
	// State is Delivered or Read. Read implies Delivered.
	State State
}

// Acknowledge records which messages the caller received. The receipts of a channel are
// batched: at most one commit per second. An acknowledgement with Read returns when
// its commit is durable. One with Delivered returns immediately and is
// lost if the server is killed before the commit. Service.Close writes all queued
// acknowledgements.
//
// Errors: CodeChannelNotFound; CodeInvalid for a message or sequence that does not
// exist in the channel; CodePermissionDenied for a message that is not addressed to the
// caller; CodeMessageExpired for an expired message and for every message of a closed
// channel; CodeOverloaded if the queue is full.
func (s *Receipts) Acknowledge(ctx context.Context, by access.Caller, a Acknowledgement) error {
	agent, e, err := s.table.RequireReadable(by, a.Channel)
	if err != nil {
		return err
	}
	if err := e.MustRead(agent); err != nil { // an overseer has no receipts
		return err
	}
	if err := by.Principal.CheckWrite(); err != nil {
		return err
	}
	if err := a.validate(); err != nil {
		return err
	}
	ack := &pendingAck{Acknowledgement: a, receipts: s, agent: agent, reader: by.ReaderPrincipal(agent), done: make(chan error, 1)}
	if err := ack.resolveMessages(ctx, e); err != nil {
		return err
	}
	if err := s.queue.enqueue(ack); err != nil || a.State != Read {
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
	case a.State != Delivered && a.State != Read:
		return kg.Errorf(kg.CodeInvalid, "status must be delivered or read, not %.60q", a.State).At("status")
	case (a.UpTo != 0) == (len(a.Messages) > 0):
		return kg.Errorf(kg.CodeInvalid, "upToSequence and messageIds are mutually exclusive, and one is required").At("upToSequence")
	case a.UpTo < 0:
		return kg.Errorf(kg.CodeInvalid, "upToSequence must be at least 1").At("upToSequence")
	case len(a.Messages) > MaxAcknowledged:
		return check.TooMuch("messageIds", "messageIds has %d messages; the limit is %d", len(a.Messages), MaxAcknowledged)
	}
	return nil
}

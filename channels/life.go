package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/kg"
)

// CloseChannel closes a channel: it remains readable and accepts no more messages.
// Unread messages become ReceiptExpired permanently, and requests can no longer be
// answered. Streams end after the last message, as do Ask and AskAll. It requires an
// owner, the creator, or a manager of the scope.
//
// Errors: CodeChannelClosed if the channel is already closed; CodeChannelNotFound;
// CodePermissionDenied; CodeLimitExceeded.
func (s *Service) CloseChannel(ctx context.Context, by Caller, id channel.ID, reason string) (*channel.Channel, error) {
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	must := func(e *access.Entry, agent kg.AgentID) error {
		if e.CanRead(agent) && e.CreatedBy == agent {
			return nil
		}
		return e.MustOwn(agent)
	}
	return s.alterChannel(ctx, by, id, "channels/close", must, func(w *channel.Writer, c *channel.Channel) error {
		if err := journal.MustBeOpen(w.Tx, c); err != nil {
			return err
		}
		w.Close(c, w.Tx.Time(), reason)
		return nil
	})
}

// isClosed reports whether the closing of the channel is recorded.
func (s *Service) isClosed(id channel.ID) bool {
	e := s.table.Get(id)
	return e != nil && e.Status() == channel.Closed
}

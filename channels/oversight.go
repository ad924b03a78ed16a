package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/scope"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// recordOverseer adds the agent of an overseer to the record of a channel and, if the
// channel is audited, an event to the log of its scope, in one commit.
//
// Errors: CodeChannelNotFound; CodeLimitExceeded if the channel has MaxOverseers.
func (s *Service) recordOverseer(ctx context.Context, by Caller, id channel.ID) error {
	agent, err := by.ActingAgent()
	if err != nil {
		return err
	}
	return systemgraph.Update(ctx, s.store, by.UpdateMeta("channels/oversee"), func(tx *kg.Tx) error {
		e := s.table.Get(id).AtTime(tx.Time()).AsPrincipal(by.ReaderPrincipal(agent))
		if !access.CanOversee(e, agent) {
			return channel.ErrNotFound()
		}
		_, err := channel.ChangeRecord(tx, id, func(w *channel.Writer, c *channel.Channel) error {
			if c.Overseers.Include(agent) {
				return nil // by a concurrent request
			}
			if len(c.Overseers) >= s.options.MaxOverseers {
				return check.TooMuch("channelId", "channel has %d overseers on record, which is the limit", len(c.Overseers))
			}
			w.Quiet = true
			w.AddOverseer(channel.Overseer{Agent: agent, Since: tx.Time()})
			if !c.Audit || c.Scope == "" {
				return nil
			}
			raw, err := plainjson.Encode(struct {
				Channel channel.ID `json:"channelId"`
				Name    string     `json:"channelName"`
			}{c.ID, c.Name})
			if err != nil {
				return err
			}
			event := scope.Event{Scope: c.Scope, Type: scope.EventOverseen, Actor: agent, Data: raw}
			_, err = event.AppendAudit(tx)
			return err
		})
		return err
	})
}

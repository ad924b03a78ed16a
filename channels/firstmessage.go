package channels

import (
	"context"
	"errors"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/scope"
	"koine/kg"
)

// PublishByName publishes in the channel with the given name of a scope or, for an intent,
// of one of its tasks. If no channel has the name, the channel is created in the same commit
// as the message, with ByScope as its member policy. Concurrent first messages create one
// channel and all go there. A closed channel keeps its name.
//
// Errors: those of Publish and CreateIn: CodeChannelNotFound if the caller does not see the
// channel with the name, and CodeNameTaken if the scope is a task and the name that of a
// channel elsewhere in its intent, which may have other readers.
func (s *Service) PublishByName(ctx context.Context, by Caller, scope scope.ID, name string, p Publication) (*Receipt, error) {
	agent, _, err := s.table.RequireScope(by, scope)
	if err != nil {
		return nil, err
	}
	if p.Channel != "" || p.To != "" {
		return nil, kg.Errorf(kg.CodeInvalid, "channelId and a channel name are mutually exclusive").At("channelId")
	}
	for range MaxNameTries {
		var make *channel.Channel
		if p.Channel = s.table.ChannelByName(scope, name); p.Channel == "" {
			if make, err = s.newScopedChannel(agent, scope, channel.Draft{Name: name, MemberPolicy: channel.ByScope, KeepMessages: p.KeepMessages}); err != nil {
				return nil, err
			}
			p.Channel = make.ID
		}
		receipt, err := s.publishTo(ctx, by, p, make)
		if errors.Is(err, errRaced) || make == nil && kg.CodeOf(err) == kg.CodeChannelNotFound && s.table.ChannelByName(scope, name) != p.Channel {
			continue
		}
		return receipt, err
	}
	return nil, kg.Errorf(kg.CodeOverloaded, "channel with this name is being created and deleted concurrently: retry")
}

// pendingEntry returns the entry of the channel that is created with the message, or
// nil if the channel exists. Its facts are written in the same commit, and the guard
// needs the entry to decide about them.
func (p *publishOp) pendingEntry() *access.Entry {
	switch t := p.service.table; {
	case p.newChannel != nil:
		return t.NewPendingEntry(*p.newChannel)
	case p.peer != "" && t.Get(p.message.Channel) == nil:
		return t.NewDirectEntry(p.author, p.peer)
	}
	return nil
}

// createFirstChannel creates the channel of a first message.
func (p *publishOp) createFirstChannel(tx *kg.Tx) (*access.Entry, error) {
	c := *p.newChannel
	if p.service.table.ChannelByName(c.Scope, c.Name) != "" {
		return nil, errRaced
	}
	if len(p.service.table.ChannelsNamed(c.Scope, c.Name)) > 0 {
		return nil, channel.ErrNameTaken()
	}
	if err := p.service.checkNewChannelIn(c.Scope, p.by, tx.Time()); err != nil {
		return nil, err
	}
	n, err := p.service.writeChannel(tx, &c)
	if err != nil {
		return nil, err
	}
	p.ownChanges += n
	return p.service.table.NewPendingEntry(c).AtTime(tx.Time()).AsPrincipal(p.reader), nil
}

// createDirect creates the direct channel of a first message, unless the store has it
// and only the table lags behind.
func (p *publishOp) createDirect(tx *kg.Tx) (*access.Entry, error) {
	e := p.service.table.NewDirectEntry(p.author, p.peer).AtTime(tx.Time())
	if err := e.MustPost(p.author); err != nil {
		return nil, err
	}
	made, err := channel.ReadRecord(tx.MatchOwn, p.message.Channel)
	if err != nil || made != nil {
		return e, err
	}
	n, err := p.service.writeDirectChannel(tx, p.author, p.peer)
	p.ownChanges += n
	return e, err
}

// errRaced reports that another channel took the name meanwhile.
var errRaced = kg.Errorf(kg.CodeNameTaken, "name is taken by another channel of the intent").At("name")

// writeDirectChannel writes the record of the direct channel of two agents. It returns
// the number of statements.
func (s *Service) writeDirectChannel(tx *kg.Tx, a, b kg.AgentID) (n int, err error) {
	if s.table.ChannelCount() >= s.options.MaxChannels {
		return 0, check.TooMuch("", "server has %d channels, which is the limit", s.options.MaxChannels)
	}
	for _, agent := range [...]kg.AgentID{a, b} {
		if err := tx.CheckAgent(agent); err != nil {
			return 0, kg.AsError(err).At("to")
		}
	}
	c := &channel.Channel{
		ID: channel.DirectID(a, b), Kind: channel.Direct, Visibility: channel.Private, CreatedAt: tx.Time(), CreatedBy: a, Version: 1,
		Members: []channel.Member{{Agent: a, Role: channel.Ordinary, Joined: tx.Time()}, {Agent: b, Role: channel.Ordinary, Joined: tx.Time()}},
	}
	return channel.CreateRecord(tx, c)
}

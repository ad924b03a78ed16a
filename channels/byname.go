package channels

import (
	"context"
	"errors"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// MaxNameTries bounds the attempts of PublishByName when the channel with the name is
// created or deleted concurrently.
const MaxNameTries = 8

// PublishByName publishes in the channel of a scope with the given name. If no channel
// has the name, the channel is created in the same commit as the message, with ByScope
// as its member policy. Concurrent first messages create one channel and all go there.
// A closed channel keeps its name.
//
// Errors: those of Publish and CreateIn.
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
			if make, err = s.newScopedChannel(agent, scope, channel.Draft{Name: name, MemberPolicy: channel.ByScope}); err != nil {
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

// errRaced reports that another channel took the name meanwhile.
var errRaced = kg.Errorf(kg.CodeNameTaken, "name is taken by another channel of the scope").At("name")

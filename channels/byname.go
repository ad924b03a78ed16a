package channels

import (
	"context"
	"errors"

	"koine/kg"
)

// MaxNameTries bounds how often PublishByName finds that the channel of the name
// was made or deleted while it was at it.
const MaxNameTries = 8

// PublishByName publishes in the channel of a scope that has the name. If there is
// none, it is made with the message, in one commit, for whoever has access to the
// scope: of many first messages, one makes it, and the others go there too. A
// channel that is closed keeps its name.
//
// Errors: those of Publish and CreateIn.
func (s *Service) PublishByName(ctx context.Context, by Caller, scope ScopeID, name string, p Publication) (*Receipt, error) {
	agent, _, err := s.accessibleScope(by, scope)
	if err != nil {
		return nil, err
	}
	if p.Channel != "" || p.To != "" {
		return nil, kg.Errorf(kg.CodeInvalid, "a message goes to the channel of the name, or to another, not to both").At("channelId")
	}
	for range MaxNameTries {
		var make *Channel
		if p.Channel = s.table.channelByName(scope, name); p.Channel == "" {
			if make, err = s.newScopedChannel(agent, scope, Draft{Name: name, MemberPolicy: ByScope}); err != nil {
				return nil, err
			}
			p.Channel = make.ID
		}
		receipt, err := s.publishTo(ctx, by, p, make)
		if errors.Is(err, errRaced) || make == nil && kg.CodeOf(err) == kg.CodeChannelNotFound && s.table.channelByName(scope, name) != p.Channel {
			continue
		}
		return receipt, err
	}
	return nil, kg.Errorf(kg.CodeOverloaded, "the channel of the name comes and goes")
}

// errRaced says that somebody else made the channel meanwhile.
var errRaced = kg.Errorf(kg.CodeNameTaken, "another channel of the scope has the name").At("name")

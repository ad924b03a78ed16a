package channels

import (
	"slices"
	"strings"

	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/systemgraph"
	"koine/kg"
)

// recipientResolver determines the recipients of a message within an update and
// validates the messages that it refers to.
type recipientResolver struct {
	tx      *kg.Tx
	entry   *access.Entry // the channel
	message *message.Message
	request *message.Message // the request that a response answers
}

// resolveRecipients sets the recipients of the message. It returns an error if a
// message or an agent that it refers to does not exist, or if a recipient could not
// read or answer it.
func (a *recipientResolver) resolveRecipients() error {
	m := a.message
	if m.ReplyTo != "" {
		if found, err := a.hasMessage(m.ReplyTo); err != nil || !found {
			return check.FirstError(err, message.ErrNotInChannel("replyToId"))
		}
	}
	if !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(a.tx.Time()) {
		return kg.Errorf(kg.CodeInvalid, "expiresAt is in the past").At("expiresAt")
	}
	if m.Correlation != "" {
		if found, err := a.hasMessage(m.Correlation); err != nil || !found {
			return check.FirstError(err, message.ErrNotInChannel("correlationId"))
		}
	}
	switch role, isRole := strings.CutPrefix(m.To, message.RolePrefix); {
	case m.Interaction == message.Response:
		return a.resolveResponse()
	case m.To == "" || m.To == message.Everyone:
		return nil
	case isRole:
		return a.resolveRole(role)
	}
	agent := kg.AgentID(m.To)
	switch hears, answers, err := a.participation(agent); {
	case err != nil:
		return err
	case !hears:
		return kg.Errorf(kg.CodeNotMember, "%s is not a member of the channel", agent).At("recipient")
	case m.Interaction == message.Request && !answers:
		return kg.Errorf(kg.CodeNotMember, "%s cannot publish in the channel, so it could not respond", agent).At("recipient")
	}
	m.Recipients = []kg.AgentID{agent}
	return nil
}

// hasMessage reports whether the message exists in the channel.
func (a *recipientResolver) hasMessage(id message.ID) (bool, error) {
	_, found, err := systemgraph.First(a.tx.MatchOwn, kg.Pattern{Subject: id.Entity(), Predicate: kg.Sequence, Graph: a.message.Channel.MessagesGraph()})
	return found, err
}

// participation reports whether the agent, with all its roles on record, can be
// addressed in the channel, and whether it can publish there.
func (a *recipientResolver) participation(agent kg.AgentID) (hears, answers bool, err error) {
	e := a.entry
	if e.Scope != "" {
		roles, err := agents.RolesOf(a.tx, agent)
		if err != nil {
			return false, false, err
		}
		e = e.AsPrincipal(kg.Principal{ID: agent, Roles: roles})
	}
	return e.IsAddressable(agent), e.CanPost(agent), nil
}

// resolveRole addresses the message to all participants with the role except the
// author. A request is addressed only to participants that can publish a response. In a scope
// a role that an agent registered with counts too: it gives no right, because participants
// have access without it.
func (a *recipientResolver) resolveRole(role string) error {
	all, err := agents.InRole(a.tx, role)
	if err != nil {
		return err
	}
	if a.entry.Scope != "" {
		registered, err := agents.RegisteredAs(a.tx, role)
		if err != nil {
			return err
		}
		all = slices.Compact(slices.Sorted(slices.Values(append(all, registered...))))
	}
	var list []kg.AgentID
	for _, agent := range all {
		hears, answers, err := a.participation(agent)
		if err != nil {
			return err
		}
		if agent != a.message.Author && hears && (answers || a.message.Interaction != message.Request) {
			list = append(list, agent)
		}
	}
	switch n := len(list); {
	case n == 0:
		group := "agent in the channel"
		if a.message.Interaction == message.Request {
			group = "agent that can publish in the channel"
		}
		err := kg.Errorf(kg.CodeNoRecipient, "no other %s has the role %q", group, role).At("recipient")
		err.Hint = "use a role from the records of agents, in a scope also one of their registrations; a member's role in the channel does not count"
		return err
	case n > message.MaxRecipients:
		return check.TooMuch("recipient", "role has %d agents; a message has at most %d recipients", n, message.MaxRecipients)
	}
	slices.Sort(list)
	a.message.Recipients = list
	return nil
}

// resolveResponse addresses a response to the author of the request.
func (a *recipientResolver) resolveResponse() error {
	m := a.message
	request, err := message.Read(a.tx.MatchOwn, m.Channel, m.Correlation)
	if err != nil {
		return err
	}
	switch {
	case request.Interaction != message.Request:
		return kg.Errorf(kg.CodeInvalid, "correlationId must name a request").At("correlationId")
	case !slices.Contains(request.Recipients, m.Author):
		return check.Denied("only a recipient of the request can respond to it").At("correlationId")
	case request.Withheld == message.Retracted:
		return kg.Errorf(kg.CodeMessageExpired, "request was retracted").At("correlationId")
	case request.HasExpired(a.tx.Time()):
		return kg.Errorf(kg.CodeMessageExpired, "request has expired without a response").At("correlationId")
	}
	m.To, m.Recipients, a.request = string(request.Author), []kg.AgentID{request.Author}, request
	return nil
}

// markAnswered marks a request as answered, which cancels its expiry. It returns the
// number of statements that it changed.
func (s *Service) markAnswered(tx *kg.Tx, request *message.Message, by message.ID) (int, error) {
	q := kg.Quad{Subject: request.ID.Entity(), Predicate: vocab.Answered, Object: by.Entity(), Graph: request.ContentGraph()}
	if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil || request.ExpiresAt.IsZero() {
		return 1, err
	}
	q.Predicate, q.Object = vocab.Expires, kg.DateTime(request.ExpiresAt)
	return 2, tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q})
}

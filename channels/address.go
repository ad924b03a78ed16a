package channels

import (
	"slices"
	"strings"
	"time"

	"koine/internal/agents"
	"koine/kg"
)

// recipientResolver determines the recipients of a message within an update and
// validates the messages that it refers to.
type recipientResolver struct {
	tx      *kg.Tx
	entry   *entry // the channel
	message *Message
	request *Message // the request that a response answers
}

// resolveRecipients sets the recipients of the message. It returns an error if a
// message or an agent that it refers to does not exist, or if a recipient could not
// read or answer it.
func (a *recipientResolver) resolveRecipients() error {
	m := a.message
	if m.ReplyTo != "" {
		if found, err := a.hasMessage(m.ReplyTo); err != nil || !found {
			return errOr(err, errNoSuchMessage("replyToId"))
		}
	}
	if !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(a.tx.Time()) {
		return kg.Errorf(kg.CodeInvalid, "expiresAt is in the past").At("expiresAt")
	}
	if m.Correlation != "" {
		if found, err := a.hasMessage(m.Correlation); err != nil || !found {
			return errOr(err, errNoSuchMessage("correlationId"))
		}
	}
	switch role, isRole := strings.CutPrefix(m.To, rolePrefix); {
	case m.Interaction == Response:
		return a.resolveResponse()
	case m.To == "" || m.To == Everyone:
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
	case m.Interaction == Request && !answers:
		return kg.Errorf(kg.CodeNotMember, "%s cannot publish in the channel, so it could not respond", agent).At("recipient")
	}
	m.Recipients = []kg.AgentID{agent}
	return nil
}

// hasMessage reports whether the message exists in the channel.
func (a *recipientResolver) hasMessage(id MessageID) (bool, error) {
	for _, err := range a.tx.MatchOwn(kg.Pattern{Subject: id.Entity(), Predicate: kg.Sequence, Graph: a.message.Channel.MessagesGraph()}) {
		return err == nil, err
	}
	return false, nil
}

// participation reports whether the agent, with all its roles on record, can be
// addressed in the channel, and whether it can publish there.
func (a *recipientResolver) participation(agent kg.AgentID) (hears, answers bool, err error) {
	e := a.entry
	if e.scope != nil {
		roles, err := agents.RolesOf(a.tx, agent)
		if err != nil {
			return false, false, err
		}
		e = e.asPrincipal(kg.Principal{ID: agent, Roles: roles})
	}
	return e.isAddressable(agent), e.canPost(agent), nil
}

// resolveRole addresses the message to all participants with the role except the
// author. A request is addressed only to participants that can publish a response.
func (a *recipientResolver) resolveRole(role string) error {
	list, err := agents.InRole(a.tx, role)
	if err != nil {
		return err
	}
	all := list
	list = nil
	for _, agent := range all {
		hears, answers, err := a.participation(agent)
		if err != nil {
			return err
		}
		if agent != a.message.Author && hears && (answers || a.message.Interaction != Request) {
			list = append(list, agent)
		}
	}
	switch n := len(list); {
	case n == 0:
		group := "agent in the channel"
		if a.message.Interaction == Request {
			group = "agent that can publish in the channel"
		}
		err := kg.Errorf(kg.CodeNoRecipient, "no other %s has the role %q", group, role).At("recipient")
		err.Hint = "use a role from the records of agents; a member's role in the channel does not count"
		return err
	case n > MaxRecipients:
		return errTooMuch("recipient", "role has %d agents; a message has at most %d recipients", n, MaxRecipients)
	}
	slices.Sort(list)
	a.message.Recipients = list
	return nil
}

// resolveResponse addresses a response to the author of the request.
func (a *recipientResolver) resolveResponse() error {
	m := a.message
	request, err := readMessage(a.tx.MatchOwn, m.Channel, m.Correlation)
	if err != nil {
		return err
	}
	switch {
	case request.Interaction != Request:
		return kg.Errorf(kg.CodeInvalid, "correlationId must name a request").At("correlationId")
	case !slices.Contains(request.Recipients, m.Author):
		return errDenied("only a recipient of the request can respond to it").At("correlationId")
	case request.Withheld == Retracted:
		return kg.Errorf(kg.CodeMessageExpired, "request was retracted").At("correlationId")
	case request.hasExpired(a.tx.Time()):
		return kg.Errorf(kg.CodeMessageExpired, "request has expired without a response").At("correlationId")
	}
	m.To, m.Recipients, a.request = string(request.Author), []kg.AgentID{request.Author}, request
	return nil
}

// markAnswered marks a request as answered, which cancels its expiry. It returns the
// number of statements that it changed.
func (s *Service) markAnswered(tx *kg.Tx, request *Message, by MessageID) (int, error) {
	q := kg.Quad{Subject: request.ID.Entity(), Predicate: propAnswered, Object: by.Entity(), Graph: request.contentGraph()}
	if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil || request.ExpiresAt.IsZero() {
		return 1, err
	}
	q.Predicate, q.Object = propExpires, kg.DateTime(request.ExpiresAt)
	return 2, tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q})
}

// isFor reports whether the message is for an agent that can read its channel.
func (m *Message) isFor(agent kg.AgentID) bool {
	return m.Author != agent && (len(m.Recipients) == 0 || slices.Contains(m.Recipients, agent))
}

// hasExpired reports whether the message has expired at the given time. An answered
// request does not expire.
func (m *Message) hasExpired(at time.Time) bool {
	return !m.ExpiresAt.IsZero() && !at.Before(m.ExpiresAt) && m.Answered == ""
}

// errNoSuchMessage reports a message that is not in the channel. The error is the same
// for a message of another channel, so that it reveals nothing.
func errNoSuchMessage(field string) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "message not found in the channel").At(field)
}

func errOr(err error, other *kg.Error) error {
	if err != nil {
		return err
	}
	return other
}

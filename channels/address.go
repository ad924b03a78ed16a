package channels

import (
	"slices"
	"strings"
	"time"

	"koine/internal/agents"
	"koine/kg"
)

// recipientResolver finds, inside of an update, whom a message goes to, and refuses what
// it refers to if that is not there.
type recipientResolver struct {
	tx      *kg.Tx
	entry   *entry // of the channel
	message *Message
	request *Message // that a response answers
}

func (a *recipientResolver) resolveRecipients() error {
	m := a.message
	if m.ReplyTo != "" {
		if there, err := a.hasMessage(m.ReplyTo); err != nil || !there {
			return errOr(err, errNoSuchMessage("replyToId"))
		}
	}
	if !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(a.tx.Time()) {
		return kg.Errorf(kg.CodeInvalid, "it has expired already").At("expiresAt")
	}
	if m.Correlation != "" {
		if there, err := a.hasMessage(m.Correlation); err != nil || !there {
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
		return kg.Errorf(kg.CodeNotMember, "%s is no member of the channel", agent).At("recipient")
	case m.Interaction == Request && !answers:
		return kg.Errorf(kg.CodeNotMember, "%s may not publish in the channel, and so could not respond", agent).At("recipient")
	}
	m.Recipients = []kg.AgentID{agent}
	return nil
}

// hasMessage tells whether the channel has the message.
func (a *recipientResolver) hasMessage(id MessageID) (bool, error) {
	for _, err := range a.tx.MatchOwn(kg.Pattern{Subject: id.Entity(), Predicate: kg.Sequence, Graph: a.message.Channel.MessagesGraph()}) {
		return err == nil, err
	}
	return false, nil
}

// participation tells whether the agent, with all the roles that it has on record, takes part
// in the channel, and whether it may publish there.
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

// resolveRole addresses those with the role who take part in the channel, but for the
// author; a request, those who may respond.
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
		who := "in the channel"
		if a.message.Interaction == Request {
			who = "who may publish in the channel"
		}
		err := kg.Errorf(kg.CodeNoRecipient, "nobody else %s has the role %q", who, role).At("recipient")
		err.Hint = "roles are those that the records of agents have, not what members are in a channel"
		return err
	case n > MaxRecipients:
		return errTooMuch("recipient", "%d agents with the role are more than the %d that a message is addressed to", n, MaxRecipients)
	}
	slices.Sort(list)
	a.message.Recipients = list
	return nil
}

// resolveResponse addresses a response to who asked.
func (a *recipientResolver) resolveResponse() error {
	m := a.message
	request, err := readMessage(a.tx.MatchOwn, m.Channel, m.Correlation)
	if err != nil {
		return err
	}
	switch {
	case request.Interaction != Request:
		return kg.Errorf(kg.CodeInvalid, "a response answers a request, and that message is none").At("correlationId")
	case !slices.Contains(request.Recipients, m.Author):
		return errDenied("only those whom the request was addressed to respond to it").At("correlationId")
	case request.Withheld == Retracted:
		return kg.Errorf(kg.CodeMessageExpired, "the request was retracted").At("correlationId")
	case request.hasExpired(a.tx.Time()):
		return kg.Errorf(kg.CodeMessageExpired, "nobody responded to the request before it expired").At("correlationId")
	}
	m.To, m.Recipients, a.request = string(request.Author), []kg.AgentID{request.Author}, request
	return nil
}

// markAnswered marks a request as answered: it expires no more. It tells of how many
// statements that is.
func (s *Service) markAnswered(tx *kg.Tx, request *Message, by MessageID) (int, error) {
	q := kg.Quad{Subject: request.ID.Entity(), Predicate: propAnswered, Object: by.Entity(), Graph: request.contentGraph()}
	if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil || request.ExpiresAt.IsZero() {
		return 1, err
	}
	q.Predicate, q.Object = propExpires, kg.DateTime(request.ExpiresAt)
	return 2, tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q})
}

// isFor tells whether the message is for an agent that reads its channel.
func (m *Message) isFor(agent kg.AgentID) bool {
	return m.Author != agent && (len(m.Recipients) == 0 || slices.Contains(m.Recipients, agent))
}

// hasExpired tells whether the message has expired at a time. A request that was
// answered does not.
func (m *Message) hasExpired(at time.Time) bool {
	return !m.ExpiresAt.IsZero() && !at.Before(m.ExpiresAt) && m.Answered == ""
}

// errNoSuchMessage is the same for a message of another channel and none at all.
func errNoSuchMessage(field string) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "the channel has no such message").At(field)
}

func errOr(err error, other *kg.Error) error {
	if err != nil {
		return err
	}
	return other
}

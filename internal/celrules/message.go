package celrules

import (
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

func publishesMessage(j *kg.Judgement) bool {
	return slices.ContainsFunc(j.Changes, func(c kg.Change) bool {
		return c.Op == kg.Add && c.Quad.Predicate == kg.Sequence && kg.IsOwnGraph(c.Quad.Graph)
	})
}

// countFacts counts the changes of an update outside koine's own graphs.
func countFacts(j *kg.Judgement) (n int) {
	for i := range j.Changes {
		if !kg.Reserved(j.Changes[i].Quad) {
			n++
		}
	}
	return n
}

// messageSize is the number of bytes of a message's parts, metadata and references.
func messageSize(m *message.Message) int {
	size := len(m.Metadata)
	for _, raw := range m.Parts {
		size += len(raw)
	}
	for _, ref := range m.ArtifactRefs {
		size += len(ref)
	}
	return size
}

// messageValue converts a message with its number of facts to a value for rules; nil
// gives empty fields.
func messageValue(judged *channels.JudgedMessage, facts int) map[string]any {
	m, c := new(message.Message), new(channel.Channel)
	if judged != nil {
		m, c = judged.Message, judged.Channel
	}
	parts, texts, recipients := []any{}, []string{}, []string{}
	for _, raw := range m.Parts {
		part := jsonObject(raw)
		parts = append(parts, part)
		if text, ok := part["text"].(string); ok {
			texts = append(texts, text)
		}
	}
	for _, agent := range m.Recipients {
		recipients = append(recipients, string(agent))
	}
	return map[string]any{
		"id": string(m.ID), "channel": string(c.ID), "channelName": c.Name, "kind": string(c.Kind), "visibility": string(c.Visibility), "scope": string(c.Scope),
		"author": string(m.Author), "parts": parts, "text": strings.Join(texts, "\n"), "metadata": jsonObject(m.Metadata),
		"artifactRefs": append([]string{}, m.ArtifactRefs...), "size": messageSize(m), "facts": facts,
		"interaction": string(m.Interaction), "contentType": string(m.ContentType), "format": m.Format, "tags": append([]string{}, m.Tags...),
		"to": m.To, "recipients": recipients, "private": m.Private,
		"correlation": string(m.Correlation), "replyTo": string(m.ReplyTo), "retracts": string(m.Retracts), "thread": m.Thread,
		"expires": !m.ExpiresAt.IsZero(), "expiresAt": m.ExpiresAt,
	}
}

// messagesOnce returns a function that finds the messages of an update, at most once, when
// a rule needs them.
func (s *Set) messagesOnce(b *budget, j *kg.Judgement) func() ([]channels.JudgedMessage, error) {
	return sync.OnceValues(func() ([]channels.JudgedMessage, error) {
		if s.options.Messages == nil {
			return nil, nil
		}
		return s.options.Messages(b.ctx, *j)
	})
}

// messageVariable returns a function for the variable message of rules on updates: the message
// published with the update. Without one, its fields are empty.
func (g *judgement) messageVariable() func() ref.Val {
	return sync.OnceValue(func() ref.Val {
		all, err := g.messages()
		if err != nil {
			return types.WrapErr(err)
		}
		var m *channels.JudgedMessage
		if len(all) > 0 {
			m = &all[0]
			g.dependOn(m)
			if err := g.budget.chargeRead(messageSize(m.Message)); err != nil {
				return types.WrapErr(err)
			}
		}
		return types.DefaultTypeAdapter.NativeToValue(messageValue(m, countFacts(g.j)))
	})
}

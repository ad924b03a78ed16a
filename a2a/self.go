package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// Self returns koine as an agent, for clients that do not know its extensions
// (docs/reference/a2a.md). A data part with a query is executed, one with mutations is an update, as in
// knowledge/query and knowledge/update; so is a text with a GraphQL document or such
// data. A subscription is followed (selffollow.go); any other text is searched for in
// the graph. The results are artifacts, with a summary for people.
func (h *Handler) Self() tasks.Worker { return self{h} }

type self struct{ h *Handler }

// CheckMessage refuses files: koine accepts text and data.
func (self) CheckMessage(m *tasks.Message) error {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Raw != nil || p.URL != nil {
			return errNoFiles().At(elementPath("parts", i))
		}
	}
	return m.CheckTypes("text/*", "application/json", "application/graphql")
}

func errNoFiles() *kg.Error {
	return kg.Errorf(kg.CodeContentType, "files are not supported: send data with a query or mutations, or text")
}

// Answer returns nil: every message becomes a task, so that its result is kept.
func (self) Answer(context.Context, caller.Caller, *tasks.Message) (*tasks.Message, error) {
	return nil, nil
}

// Work executes the parts of the message in order, each with the rights that the sender has
// then. The last result completes the task in the same commit; a refused update rejects it.
func (s self) Work(ctx context.Context, j *tasks.Job) error {
	out := &outcome{job: j}
	for i := range j.Message.Parts {
		if i > 0 {
			if err := s.admitPart(ctx, j); err != nil {
				return domainError(err).At(elementPath("parts", i))
			}
		}
		ctx := caller.With(ctx, j.By)
		o, err := s.orderOf(&j.Message.Parts[i])
		if err != nil {
			return kg.AsError(err).At(elementPath("parts", i))
		}
		if o.method == "" {
			out.addText(o.say)
			continue
		}
		o.ofTask(j.Task.ID)
		result, err := s.execute(ctx, j.By, o)
		if err != nil {
			return domainError(err).At(elementPath("parts", i))
		}
		if o.summary != nil {
			words := o.summary(result)
			out.addText(words.text)
			out.refused = words.refused
		}
		if err := out.reportResult(ctx, i, o, result); err != nil || out.refused {
			return err
		}
	}
	return out.endTask(ctx)
}

// admitPart admits a part after the first: it has the rights that the sender has now, and counts
// as a request. The HTTP request accounts for the first part.
func (s self) admitPart(ctx context.Context, j *tasks.Job) error {
	if err := j.RenewRights(); err != nil {
		return err
	}
	return s.h.options.Admit(caller.With(ctx, j.By))
}

// execute executes an order.
func (s self) execute(ctx context.Context, by caller.Caller, o *order) (json.RawMessage, error) {
	params, err := appendJSON(nil, o.params)
	if err != nil {
		return nil, err
	}
	var result any
	switch m := s.h.table[o.method]; {
	case o.method == subscribeMethod:
		result, err = s.answerSnapshot(ctx, by, o.params)
	case m.unary != nil:
		result, err = m.unary(ctx, &call{caller: by, method: o.method, params: params})
	case m.stream != nil:
		err = kg.Errorf(kg.CodeInvalid, "%s is a stream and cannot answer a message: call the method directly", o.method)
	default:
		err = kg.Errorf(kg.CodeInvalid, "unknown method %s. %s", clipText(o.method), askHelp)
	}
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, result)
}

// domainError converts an error of a method to one of the domain: the task has the same
// code, and the hint is part of the message.
func domainError(err error) *kg.Error {
	e := new(Error)
	if !errors.As(err, &e) {
		known := *kg.AsError(err)
		if known.Hint != "" {
			known.Message += ". " + known.Hint
		}
		return &known
	}
	d, _ := e.Data.(details)
	text := e.Message
	if d.Detail != "" {
		text += ": " + d.Detail
	}
	for _, line := range graphQLTexts(d.Errors) {
		if rest, same := strings.CutPrefix(line, text); same { // the same message with its location
			text += rest
		} else {
			text += "; " + line
		}
	}
	if d.Hint != "" {
		text += ". " + d.Hint
	}
	return kg.Errorf(kg.Code(d.Reason), "%s", text)
}

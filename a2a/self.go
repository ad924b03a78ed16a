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

// Self is koine as an agent: whoever knows nothing of its extensions asks it with
// messages (WIRE §8). A data part with a query is executed, one with mutations is an
// update, as knowledge/query and knowledge/update have them; so is a text that is a
// GraphQL document, or such data; a subscription is followed (selffollow.go); any other
// text is looked for in the graph. What comes of it are artifacts, and a word to people.
func (h *Handler) Self() tasks.Worker { return self{h} }

type self struct{ h *Handler }

// CheckMessage refuses files: what is asked for is text, or data.
func (self) CheckMessage(m *tasks.Message) error {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Raw != nil || p.URL != nil {
			return errNoFiles().At(index("parts", i))
		}
	}
	return m.CheckTypes("text/*", "application/json", "application/graphql")
}

func errNoFiles() *kg.Error {
	return kg.Errorf(kg.CodeContentType, "files are not taken: send data with a query or mutations, or text")
}

// Answer gives nothing: all that is asked of koine is a task, so that what came of it
// is kept.
func (self) Answer(context.Context, caller.Caller, *tasks.Message) (*tasks.Message, error) {
	return nil, nil
}

// Work does what the parts of the message ask for, one after the other. The last
// result completes the task in the same commit; an update that is refused rejects it.
func (s self) Work(ctx context.Context, j *tasks.Job) error {
	out := &outcome{job: j}
	ctx = caller.With(ctx, j.By)
	for i := range j.Message.Parts {
		o, err := orderOf(&j.Message.Parts[i])
		if err != nil {
			return kg.AsError(err).At(index("parts", i))
		}
		if o.method == "" {
			out.say(o.say)
			continue
		}
		o.ofTask(j.Task.ID)
		result, err := s.carryOut(ctx, j.By, o)
		if err != nil {
			return domainError(err).At(index("parts", i))
		}
		if o.summary != nil {
			said := o.summary(result)
			out.say(said.text)
			out.refused = said.refused
		}
		if err := out.handOver(ctx, i, o.method, result); err != nil || out.refused {
			return err
		}
	}
	return out.end(ctx)
}

// carryOut does what was ordered.
func (s self) carryOut(ctx context.Context, by caller.Caller, o *order) (json.RawMessage, error) {
	params, err := appendJSON(nil, o.params)
	if err != nil {
		return nil, err
	}
	var result any
	switch m := s.h.table[o.method]; {
	case o.method == subscribeMethod:
		result, err = s.standing(ctx, by, o.params)
	case m.unary != nil:
		result, err = m.unary(ctx, &call{caller: by, method: o.method, params: params})
	case m.stream != nil:
		err = kg.Errorf(kg.CodeInvalid, "%s is a stream, which is no answer to a message: call it by itself", o.method)
	default:
		err = kg.Errorf(kg.CodeInvalid, "there is no method %s. %s", clip(o.method), askHelp)
	}
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, result)
}

// domainError is an error of a method as one of the domain: what failed is said in
// the task, under the same code, with what to do about it.
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
		if rest, same := strings.CutPrefix(line, text); same { // with its place
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

package graph

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/channels"
	"koine/graph/limit"
	"koine/internal/update"
	"koine/kg"
)

// Ask answers Mutation.ask.
func (*mutationRoot) Ask(ctx context.Context, input AskInput) (*AskPayload, error) {
	with := (*channels.Service).Ask
	if input.Wait == AskWaitAll {
		with = (*channels.Service).AskAll
	}
	answer, err := runOf(ctx).askAndWait(ctx, &input, with)
	if held := heldPayload(err); held != nil {
		return &AskPayload{Publication: held, Responses: []Message{}}, nil
	}
	published := answer != nil && answer.Message != nil
	if err != nil && !(published && kg.CodeOf(err) == kg.CodeTimeout) {
		return nil, err
	}
	p := &AskPayload{Publication: publicationPayload(&answer.Receipt), Responses: make([]Message, len(answer.Responses))}
	for i, m := range answer.Responses {
		p.Responses[i] = *messageOf(m)
	}
	if len(p.Responses) > 0 {
		p.Response = &p.Responses[0]
	}
	p.TimedOut = published && (err != nil || input.Wait == AskWaitAll && !answer.Complete())
	return p, nil
}

// askAndWait publishes a request and waits for responses with the given method. The
// answer is also returned beside an error that came after the publication.
func (r *run) askAndWait(ctx context.Context, input *AskInput, with func(*channels.Service, context.Context, channels.Caller, channels.Question) (*channels.Answer, error)) (*channels.Answer, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	q := channels.Question{Wait: channels.DefaultAskTime}
	if n := input.TimeoutSeconds; n != nil {
		if q.Wait = time.Duration(*n) * time.Second; *n < 1 {
			return nil, kg.Errorf(kg.CodeInvalid, "timeoutSeconds must be at least 1").At("timeoutSeconds").At("input")
		}
	}
	if m := input.Message; m.ScopeID != nil || m.ChannelName != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "ask requires an existing channel: pass channelId").At("channelId").At("message").At("input")
	}
	var facts update.Facts
	if q.Publication, facts, err = r.convertPublication(ctx, input.Message); err != nil {
		return nil, inMessage(err)
	}
	answer, err := with(service, ctx, by, q)
	if answer != nil && answer.Message != nil {
		r.notePosition(r.engine.deps.Store.Head())
		for _, m := range answer.Responses {
			if err := r.chargeBytes(sizeOfMessage(m)); err != nil {
				return nil, err
			}
		}
	}
	if err != nil {
		err = inMessage(placePublishError(err, facts.Mutation))
	}
	return answer, err
}

// inMessage places an error of a publication in the input's member `message`.
func inMessage(err error) error {
	e := *kg.AsError(err)
	rest, ok := strings.CutPrefix(e.Field, "input.")
	if !ok {
		return err
	}
	e.Field = "input.message." + rest
	return &e
}

// askTime returns how long the operation may wait for responses in addition to
// Limits.Duration.
func (e *Engine) askTime(op *graphql.OperationContext) (sum time.Duration, err error) {
	if op.Operation.Operation != ast.Mutation {
		return 0, nil
	}
	for _, f := range graphql.CollectFields(op, op.Operation.SelectionSet, mutationImplementors) {
		if f.Name != "ask" {
			continue
		}
		input, _ := f.ArgumentMap(op.Variables)["input"].(map[string]any)
		sum += secondsOf(input["timeoutSeconds"], e.limits.AskTime)
	}
	if sum > e.limits.AskTime {
		return 0, limit.Exceeded("askTime", "the operation would wait for %v; at most %v is allowed", sum, e.limits.AskTime).
			WithHint("Reduce timeoutSeconds, and repeat the request with the same idempotencyKey.")
	}
	return sum, nil
}

// secondsOf returns the waiting time given by an argument. Invalid values
// count as 0 here: they are refused where the argument is read.
func secondsOf(v any, most time.Duration) time.Duration {
	if v == nil {
		return min(channels.DefaultAskTime, most)
	}
	n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(max(0, min(n, int64(channels.MaxAskTime/time.Second)+1))) * time.Second
}

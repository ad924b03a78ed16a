package graph

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/internal/auth"
	"koine/kg"
)

// The fields about API keys. Package auth holds the rules and checks the
// rights.

// keyMembers maps the domain's field names to the members of an input.
var keyMembers = map[string]string{"id": "keyId", "agent": "agentId", "overlap": "overlapSeconds"}

func (r *run) keyService() *auth.Keys { return auth.NewKeys(r.engine.deps.Store) }

// ownMeta returns the Meta of a mutation without a justification or an
// idempotency key.
func (r *run) ownMeta() kg.Meta {
	return kg.Meta{Principal: r.request.Principal, Actor: r.request.Actor, TaskID: r.request.TaskID, SessionID: r.request.SessionID}
}

// CreateAPIKey answers Mutation.createApiKey.
func (*mutationRoot) CreateAPIKey(ctx context.Context, input CreateAPIKeyInput) (*APIKeyPayload, error) {
	r := runOf(ctx)
	lifetime, err := parseSeconds(input.LifetimeSeconds)
	if err != nil {
		return nil, kg.AsError(err).At("lifetimeSeconds").At("input")
	}
	wish := auth.KeyRequest{Agent: kg.AgentID(input.AgentID), Label: deref(input.Name), Roles: slices.Clone(input.Roles), Mode: auth.Live, Lifetime: lifetime}
	if deref(input.Mode) == APIKeyModeTest {
		wish.Mode = auth.Test
	}
	for _, agent := range input.ActFor {
		wish.ActFor = append(wish.ActFor, kg.AgentID(agent))
	}
	made, err := r.keyService().Create(ctx, r.ownMeta(), wish)
	if err != nil {
		return nil, inInput(withFieldNames(err, keyMembers))
	}
	return &APIKeyPayload{Key: apiKey(&made.Key), Secret: made.Secret}, nil
}

// RotateAPIKey answers Mutation.rotateApiKey.
func (*mutationRoot) RotateAPIKey(ctx context.Context, input RotateAPIKeyInput) (*APIKeyPayload, error) {
	r := runOf(ctx)
	overlap, err := parseSeconds(input.OverlapSeconds)
	if err != nil {
		return nil, kg.AsError(err).At("overlapSeconds").At("input")
	}
	made, old, err := r.keyService().Rotate(ctx, r.ownMeta(), input.KeyID, overlap)
	if err != nil {
		return nil, inInput(withFieldNames(err, keyMembers))
	}
	return &APIKeyPayload{Key: apiKey(&made.Key), Secret: made.Secret, Replaced: apiKey(&old)}, nil
}

// RevokeAPIKey answers Mutation.revokeApiKey.
func (*mutationRoot) RevokeAPIKey(ctx context.Context, input RevokeAPIKeyInput) (*RevokeAPIKeyPayload, error) {
	r := runOf(ctx)
	gone, err := r.keyService().Revoke(ctx, r.ownMeta(), input.KeyID)
	if err != nil {
		return nil, inInput(withFieldNames(err, keyMembers))
	}
	return &RevokeAPIKeyPayload{Key: apiKey(&gone)}, nil
}

// APIKeys answers Query.apiKeys.
func (*queryRoot) APIKeys(ctx context.Context, agent *string, includeEnded bool, first *int, after *Cursor, last *int, before *Cursor) (*APIKeyConnection, error) {
	r := runOf(ctx)
	p, err := r.openRange("apiKeys", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, limit.DefaultPageSize, math.MaxInt)
	if err != nil {
		return nil, err
	}
	list, err := r.keyService().List(ctx, r.request.Principal, kg.AgentID(deref(agent)), includeEnded)
	if err != nil {
		return nil, err
	}
	return pageOfSlice(p, list, func(k *auth.Key) string { return timeKey(k.Created) + k.Name }, func(k *auth.Key) APIKey { return *apiKey(k) }), nil
}

// timeKey is a key by which lists are sorted by time.
func timeKey(t time.Time) string { return fmt.Sprintf("%020d ", t.UnixNano()) }

func apiKey(k *auth.Key) *APIKey {
	return &APIKey{
		ID: k.Name, Mode: modes[k.Mode], Name: nilIfEmpty(k.Label), Agent: agentOf(k.Agent), AgentID: string(k.Agent),
		Roles: notNil(k.Roles), ActFor: agentsNamed(k.ActFor), ActForIds: agentTexts(k.ActFor),
		State: APIKeyState(k.StateAt(time.Now())), CreatedAt: k.Created, CreatedBy: agentOf(k.CreatedBy), CreatedByID: string(k.CreatedBy),
		ExpiresAt: someTime(k.Expires), RevokedAt: someTime(k.Revoked), ReplacedBy: nilIfEmpty(k.ReplacedBy),
	}
}

var modes = map[auth.Mode]APIKeyMode{auth.Live: APIKeyModeLive, auth.Test: APIKeyModeTest}

// maxSeconds is the greatest number of seconds that a Duration can hold.
const maxSeconds = int64(1<<63-1) / int64(time.Second)

func parseSeconds(n *int64) (time.Duration, error) {
	if n == nil {
		return 0, nil
	}
	if *n < 1 || *n > maxSeconds {
		return 0, kg.Errorf(kg.CodeInvalid, "must be at least 1")
	}
	return time.Duration(*n) * time.Second, nil
}

// inInput places an error of the domain in the mutation's input.
func inInput(err error) error {
	if e := kg.AsError(err); e.Field != "" {
		return e.At("input")
	}
	return err
}

func nilIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func someTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// notNil returns an empty list for nil, which GraphQL would take for null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func agentTexts(list []kg.AgentID) []string {
	out := make([]string, len(list))
	for i, agent := range list {
		out[i] = string(agent)
	}
	return out
}

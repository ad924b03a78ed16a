package intents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/plainjson"
	"koine/kg"
)

// Limits of patches.
const (
	MaxPatches   = 1000 // of one call
	MaxPathBytes = 1024
)

// Op is the operation of a patch.
type Op string

// Operations of patches.
const (
	Set    Op = "set"    // sets the value at the path, and makes missing objects on the way
	Append Op = "append" // appends the value to the list at the path, and makes a missing one
	Remove Op = "remove" // removes the value at the path, if there is one
	// Merge sets the members of the value, an object, in the one at the path; the empty path
	// is the whole state.
	Merge Op = "merge"
)

// Patch is one change of a state. The path names members of objects, separated by slashes;
// empty names are dropped. It has no escapes.
type Patch struct {
	Op    Op              `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// PatchState changes the state of an intent, all patches or none. version must be the current
// one. It requires the level Write.
//
// Errors: CodeVersionConflict with the current version (VersionError); CodeScopeEnded;
// CodeInvalid for a patch that the state does not admit; CodeLimitExceeded;
// CodeScopeNotFound; CodePermissionDenied.
func (s *Service) PatchState(ctx context.Context, by channels.Caller, id scope.ID, version int64, patches []Patch) (*Intent, error) {
	if len(patches) == 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "patches must not be empty").At("patches")
	}
	if n := len(patches); n > MaxPatches {
		return nil, errTooMany("patches", "patches", n, MaxPatches)
	}
	patches = slices.Clone(patches)
	steps, size := make([]step, len(patches)), 0
	for i := range patches {
		p := &patches[i]
		st, err := p.parse(fmt.Sprintf("patches[%d]", i))
		if err != nil {
			return nil, err
		}
		steps[i], p.Value = st, st.value
		size += len(p.Path) + len(p.Value)
	}
	if size > MaxStateBytes {
		return nil, errTooMany("patches", "bytes", size, MaxStateBytes)
	}
	return s.change(ctx, by, id, version, "intents/patchState", func(tx *kg.Tx, sc *scope.Scope, it *Intent) (string, map[string]any, error) {
		state, err := applySteps(it.State, steps)
		if err != nil {
			return "", nil, err
		}
		it.State = state
		return EventStatePatched, map[string]any{"patches": patches, "version": it.Version}, nil
	})
}

// step is a parsed patch.
type step struct {
	op    Op
	path  []string
	value json.RawMessage
	field string
}

// parse validates a patch. The value of the step is in canonical form.
func (p *Patch) parse(field string) (step, error) {
	st := step{op: p.Op, field: field}
	switch p.Op {
	case Set, Append, Remove, Merge:
	default:
		return st, kg.Errorf(kg.CodeInvalid, "op must be set, append, remove or merge, not %.60q", p.Op).At(field + ".op")
	}
	if err := checkText(field+".path", p.Path, MaxPathBytes); err != nil {
		return st, err
	}
	if n := len(p.Path); n > MaxPathBytes {
		return st, errTooMany(field+".path", "bytes", n, MaxPathBytes)
	}
	for name := range strings.SplitSeq(p.Path, "/") {
		if name != "" {
			st.path = append(st.path, name)
		}
	}
	if len(st.path) == 0 && p.Op != Merge {
		return st, kg.Errorf(kg.CodeInvalid, "path must name a member of the state").At(field + ".path")
	}
	if p.Op == Remove {
		return st, nil
	}
	value, err := decodeJSON(p.Value)
	if _, isObject := value.(map[string]any); err != nil || p.Op == Merge && !isObject {
		return st, kg.Errorf(kg.CodeInvalid, "value must be a JSON value, and for merge an object").At(field + ".value")
	}
	st.value, err = encodeBounded(field+".value", value, MaxStateBytes)
	return st, err
}

// applySteps returns the state with the patches applied. The decoded values are not shared
// with an earlier call: a function of a commit may be called again.
func applySteps(raw json.RawMessage, steps []step) (json.RawMessage, error) {
	value, err := decodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("intents: stored state: %w", err)
	}
	state, ok := value.(map[string]any)
	if !ok {
		state = map[string]any{}
	}
	for i := range steps {
		if err := steps[i].apply(state); err != nil {
			return nil, err
		}
	}
	return encodeBounded("state", state, MaxStateBytes)
}

// apply applies one patch to the state.
func (st *step) apply(state map[string]any) error {
	at := state
	for i, name := range st.path {
		last := i == len(st.path)-1
		if last && st.op != Merge {
			return st.applyAt(at, name)
		}
		next, present := at[name]
		if !present && st.op == Remove {
			return nil
		}
		object, ok := next.(map[string]any)
		switch {
		case ok:
		case present:
			return st.errNotA("an object", i)
		default:
			object = map[string]any{}
			at[name] = object
		}
		at = object
	}
	value, err := decodeJSON(st.value)
	if err != nil {
		return err
	}
	members, _ := value.(map[string]any)
	for name, v := range members {
		at[name] = v
	}
	return nil
}

// applyAt applies the patch to a member of an object.
func (st *step) applyAt(object map[string]any, name string) error {
	if st.op == Remove {
		delete(object, name)
		return nil
	}
	value, err := decodeJSON(st.value)
	if err != nil {
		return err
	}
	if st.op == Set {
		object[name] = value
		return nil
	}
	had, present := object[name]
	list, ok := had.([]any)
	if present && !ok {
		return st.errNotA("a list", len(st.path)-1)
	}
	object[name] = append(list, value)
	return nil
}

func (st *step) errNotA(what string, last int) error {
	return kg.Errorf(kg.CodeInvalid, "%.200q of the state is not %s", strings.Join(st.path[:last+1], "/"), what).At(st.field + ".path")
}

// changedMembers returns the members of two states that differ, as they were and as they are.
func changedMembers(before, after json.RawMessage) (old, now json.RawMessage, err error) {
	var was, is map[string]json.RawMessage
	if len(before) > 0 {
		if err := json.Unmarshal(before, &was); err != nil {
			return nil, nil, err
		}
	}
	if len(after) > 0 {
		if err := json.Unmarshal(after, &is); err != nil {
			return nil, nil, err
		}
	}
	for name, value := range was {
		if same, present := is[name]; present && string(same) == string(value) { // both canonical
			delete(was, name)
			delete(is, name)
		}
	}
	if old, err = plainjson.Encode(orEmpty(was)); err == nil {
		now, err = plainjson.Encode(orEmpty(is))
	}
	return old, now, err
}

func orEmpty(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}

package intents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// create creates an intent of ann.
func (s *server) create(t testing.TB, d intents.NewIntent) *intents.Intent {
	t.Helper()
	it, err := s.Create(t.Context(), as("ann"), d)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// access gives bob Write and rita Read.
var access = []scope.Grant{{Agent: "agent://bob", Level: scope.Write}, {Agent: "agent://rita", Level: scope.Read}}

func set(path, value string) intents.Patch {
	return intents.Patch{Op: intents.Set, Path: path, Value: json.RawMessage(value)}
}

// An intent is read as it was made, by who has access, also after a restart; for others it
// does not exist.
func TestCreateIntent(t *testing.T) {
	s := serve(t)
	parent := s.create(t, intents.NewIntent{Title: "whole"})
	made := s.create(t, intents.NewIntent{
		Title: "part", Description: "D", Parent: parent.ID, DependsOn: []scope.ID{parent.ID, parent.ID}, Constraints: []byte(` {"b":1, "a":2}`),
		State: []byte(`{"n":1.50}`), Governance: []byte(`{"g":[]}`), Confidence: 0.5, Grants: access, IdempotencyKey: "k",
	})
	if made.Version != 1 || made.Status != intents.Draft || string(made.Constraints) != `{"a":2,"b":1}` || string(made.State) != `{"n":1.50}` || !slices.Equal(made.DependsOn, []scope.ID{parent.ID}) {
		t.Errorf("made %+v", made)
	}
	for range 2 {
		for _, by := range []string{"ann", "bob", "rita"} {
			got, err := s.Get(t.Context(), as(by), made.ID)
			if d := cmp.Diff(made, got); d != "" || err != nil {
				t.Errorf("%s reads %v, %v", by, d, err)
			}
		}
		_, err := s.Get(t.Context(), as("gus"), made.ID)
		_, absent := s.Get(t.Context(), as("gus"), "none")
		if wantCode(t, "an outsider", err, kg.CodeScopeNotFound); fmt.Sprint(err) != fmt.Sprint(absent) {
			t.Errorf("an outsider is told %v, and of what is not there %v", err, absent)
		}
		s.restart(t)
	}
	again, err := s.Create(t.Context(), as("ann"), intents.NewIntent{
		Title: "part", Description: "D", Parent: parent.ID, DependsOn: []scope.ID{parent.ID}, Constraints: []byte(`{"b":1, "a":2}`),
		State: []byte(`{"n":1.50}`), Governance: []byte(`{"g":[]}`), Confidence: 0.5, Grants: access, IdempotencyKey: "k",
	})
	if err != nil || !again.Replayed || again.ID != made.ID || string(again.State) != `{"n":1.50}` {
		t.Errorf("again: %+v, %v", again, err)
	}
	_, err = s.Create(t.Context(), as("ann"), intents.NewIntent{Title: "part", Description: "other", IdempotencyKey: "k"})
	wantCode(t, "another request with the key", err, kg.CodeIdempotencyConflict)
	if got := s.eventTypes(t, made.ID); !slices.Equal(got, []string{intents.EventCreated}) {
		t.Errorf("events %q", got)
	}
}

// What is created is within its bounds.
func TestBoundsOfIntents(t *testing.T) {
	s := serve(t)
	hidden, err := s.Create(t.Context(), as("gus"), intents.NewIntent{})
	if err != nil {
		t.Fatal(err)
	}
	object := func(n int) []byte { return []byte(`{"k":"` + strings.Repeat("x", n-len(`{"k":""}`)) + `"}`) }
	deep := func(n int) []byte { return []byte(strings.Repeat(`{"k":`, n) + "1" + strings.Repeat("}", n)) }
	many := func(n int) (ids []scope.ID) {
		for range n {
			ids = append(ids, s.create(t, intents.NewIntent{}).ID)
		}
		return ids
	}
	ids := many(intents.MaxDependsOn + 1)
	for _, row := range []struct {
		what string
		d    intents.NewIntent
		want kg.Code
	}{
		{"a description at the bound", intents.NewIntent{Description: strings.Repeat("ä", intents.MaxDescriptionRunes)}, ""},
		{"a description past it", intents.NewIntent{Description: strings.Repeat("ä", intents.MaxDescriptionRunes+1)}, kg.CodeLimitExceeded},
		{"a state at the bound", intents.NewIntent{State: object(intents.MaxStateBytes)}, ""},
		{"a state past it", intents.NewIntent{State: object(intents.MaxStateBytes + 1)}, kg.CodeLimitExceeded},
		{"constraints at the bound", intents.NewIntent{Constraints: object(intents.MaxConstraintsBytes)}, ""},
		{"constraints past it", intents.NewIntent{Constraints: object(intents.MaxConstraintsBytes + 1)}, kg.CodeLimitExceeded},
		{"governance at the bound", intents.NewIntent{Governance: object(intents.MaxGovernanceBytes)}, ""},
		{"governance past it", intents.NewIntent{Governance: object(intents.MaxGovernanceBytes + 1)}, kg.CodeLimitExceeded},
		{"depth at the bound", intents.NewIntent{State: deep(intents.MaxDepth)}, ""},
		{"depth past it", intents.NewIntent{State: deep(intents.MaxDepth + 1)}, kg.CodeLimitExceeded},
		{"dependencies at the bound", intents.NewIntent{DependsOn: ids[1:]}, ""},
		{"dependencies past it", intents.NewIntent{DependsOn: ids}, kg.CodeLimitExceeded},
		{"a list of constraints", intents.NewIntent{Constraints: []byte(`["fast"]`)}, ""},
		{"a list as state", intents.NewIntent{State: []byte(`[]`)}, kg.CodeInvalid},
		{"a broken state", intents.NewIntent{State: []byte(`{"a":1} x`)}, kg.CodeInvalid},
		{"a brace too many", intents.NewIntent{State: []byte(`{"a":1}}`)}, kg.CodeInvalid},
		{"a status that is none", intents.NewIntent{Status: "done"}, kg.CodeInvalid},
		{"a final status", intents.NewIntent{Status: intents.Completed}, kg.CodeInvalid},
		{"too much confidence", intents.NewIntent{Confidence: intents.MaxConfidence + 1}, kg.CodeInvalid},
		{"a hidden parent", intents.NewIntent{Parent: hidden.ID}, kg.CodeScopeNotFound},
		{"a hidden dependency", intents.NewIntent{DependsOn: []scope.ID{hidden.ID}}, kg.CodeScopeNotFound},
	} {
		_, err := s.Create(t.Context(), as("ann"), row.d)
		wantCode(t, row.what, err, row.want)
	}
}

// Patches apply in order, all or none.
func TestPatchState(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{State: []byte(`{"n":1,"o":{"x":1},"l":[1]}`), Grants: access})
	version := it.Version
	for _, row := range []struct {
		what    string
		patches []intents.Patch
		state   string
		want    kg.Code
	}{
		{"set", []intents.Patch{set("/n/", `2`), set("a//b/c", `[]`)}, `{"a":{"b":{"c":[]}},"l":[1],"n":2,"o":{"x":1}}`, ""},
		{"append", []intents.Patch{{Op: intents.Append, Path: "l", Value: []byte(`{"k":"<"}`)}, {Op: intents.Append, Path: "a/m", Value: []byte(`1`)}}, `{"a":{"b":{"c":[]},"m":[1]},"l":[1,{"k":"<"}],"n":2,"o":{"x":1}}`, ""},
		{"remove", []intents.Patch{{Op: intents.Remove, Path: "a/b"}, {Op: intents.Remove, Path: "z/y/x"}, {Op: intents.Remove, Path: "l"}}, `{"a":{"m":[1]},"n":2,"o":{"x":1}}`, ""},
		{"merge", []intents.Patch{{Op: intents.Merge, Value: []byte(`{"a":null,"s/t":1}`)}, {Op: intents.Merge, Path: "o/p", Value: []byte(`{"q":1}`)}}, `{"a":null,"n":2,"o":{"p":{"q":1},"x":1},"s/t":1}`, ""},
		{"through a number", []intents.Patch{set("ok", "1"), set("n/x", "1")}, "", kg.CodeInvalid},
		{"append to a number", []intents.Patch{{Op: intents.Append, Path: "n", Value: []byte("1")}}, "", kg.CodeInvalid},
		{"merge of a list", []intents.Patch{{Op: intents.Merge, Value: []byte("[]")}}, "", kg.CodeInvalid},
		{"no path", []intents.Patch{set("//", "1")}, "", kg.CodeInvalid},
		{"no value", []intents.Patch{{Op: intents.Set, Path: "n"}}, "", kg.CodeInvalid},
		{"two values", []intents.Patch{set("n", "1]")}, "", kg.CodeInvalid},
		{"no operation", []intents.Patch{{Op: "increment", Path: "n", Value: []byte("1")}}, "", kg.CodeInvalid},
		{"nothing", nil, "", kg.CodeInvalid},
		{"a path at the bound", []intents.Patch{{Op: intents.Remove, Path: strings.Repeat("p", intents.MaxPathBytes)}}, "-", ""},
		{"a path past it", []intents.Patch{{Op: intents.Remove, Path: strings.Repeat("p", intents.MaxPathBytes+1)}}, "", kg.CodeLimitExceeded},
		{"patches at the bound", slices.Repeat([]intents.Patch{{Op: intents.Remove, Path: "none"}}, intents.MaxPatches), "-", ""},
		{"patches past it", slices.Repeat([]intents.Patch{{Op: intents.Remove, Path: "none"}}, intents.MaxPatches+1), "", kg.CodeLimitExceeded},
		{"a state past its bound", []intents.Patch{set("big", `"`+strings.Repeat("x", intents.MaxStateBytes-20)+`"`)}, "", kg.CodeLimitExceeded},
		{"patches that are too large", []intents.Patch{set("big", `"`+strings.Repeat("x", intents.MaxStateBytes)+`"`), {Op: intents.Remove, Path: "big"}}, "", kg.CodeLimitExceeded},
		{"a depth past its bound", []intents.Patch{set(strings.Repeat("d/", intents.MaxDepth), "{}")}, "", kg.CodeLimitExceeded},
	} {
		got, err := s.PatchState(t.Context(), as("bob"), it.ID, version, row.patches)
		wantCode(t, row.what, err, row.want)
		if err != nil {
			continue
		}
		version++
		if got.Version != version || row.state != "-" && string(got.State) != row.state {
			t.Errorf("%s: version %d, state %s, want %s", row.what, got.Version, got.State, row.state)
		}
	}
	s.restart(t)
	if got, err := s.Get(t.Context(), as("rita"), it.ID); err != nil || got.Version != version || string(got.State) != `{"a":null,"n":2,"o":{"p":{"q":1},"x":1},"s/t":1}` {
		t.Errorf("at the end %+v, %v", got, err)
	}
	_, err := s.PatchState(t.Context(), as("bob"), it.ID, version-1, []intents.Patch{set("n", "1")})
	var of *intents.VersionError
	if wantCode(t, "another version", err, kg.CodeVersionConflict); !errors.As(err, &of) || of.Current != version {
		t.Errorf("a conflict says %+v", of)
	}
	_, err = s.PatchState(t.Context(), as("rita"), it.ID, version, []intents.Patch{set("n", "1")})
	wantCode(t, "a reader", err, kg.CodePermissionDenied)
	_, err = s.PatchState(t.Context(), as("gus"), it.ID, version, []intents.Patch{set("n", "1")})
	wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
}

// A final status ends the scope with its tasks and channels; nothing changes afterwards.
func TestSetStatus(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{Title: "T", Grants: access})
	task, err := s.channels.Scopes().Create(t.Context(), as("bob"), scope.Draft{Parent: it.ID, Access: scope.Access{Everybody: true}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.channels.CreateIn(t.Context(), as("bob"), task.ID, channel.Draft{Name: "c", MemberPolicy: channel.ByScope})
	if err != nil {
		t.Fatal(err)
	}
	version := int64(1)
	for _, row := range []struct {
		by     string
		status intents.Status
		want   kg.Code
	}{
		{"bob", intents.Active, ""}, {"ann", intents.Suspended, ""}, {"rita", intents.Blocked, kg.CodePermissionDenied}, {"gus", intents.Blocked, kg.CodeScopeNotFound},
		{"bob", "done", kg.CodeInvalid}, {"bob", intents.Blocked, ""}, {"bob", intents.Completed, ""}, {"bob", intents.Active, kg.CodeScopeEnded}, {"ann", intents.Abandoned, kg.CodeScopeEnded},
	} {
		got, err := s.SetStatus(t.Context(), as(row.by), it.ID, version, row.status, "because")
		wantCode(t, row.by+" sets "+string(row.status), err, row.want)
		if err == nil {
			if version++; got.Status != row.status || got.Version != version {
				t.Errorf("%s: %+v", row.status, got)
			}
		}
	}
	s.restart(t)
	_, err = s.PatchState(t.Context(), as("bob"), it.ID, version, []intents.Patch{set("n", "1")})
	wantCode(t, "a patch of a completed one", err, kg.CodeScopeEnded)
	if got, err := s.Get(t.Context(), as("rita"), it.ID); err != nil || got.Status != intents.Completed || got.Version != version {
		t.Errorf("at the end %+v, %v", got, err)
	}
	if got, err := s.channels.Scopes().Get(t.Context(), as("rita"), task.ID); err != nil || got.Status != scope.Completed || got.EndReason != "because" {
		t.Errorf("the task is %+v, %v", got, err)
	}
	if got, err := s.channels.Get(t.Context(), as("rita"), c.ID); err != nil || got.Status() != channel.Closed {
		t.Errorf("the channel is %+v, %v", got, err)
	}
	if got, want := s.eventTypes(t, it.ID), append([]string{intents.EventCreated}, slices.Repeat([]string{intents.EventStatusChanged}, 4)...); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A scope is an intent too, and lists have what the caller sees.
func TestListIntents(t *testing.T) {
	s := serve(t)
	plain := s.intent(t)
	if got, err := s.Get(t.Context(), as("rita"), plain); err != nil || got.Status != intents.Active || got.Version != 1 || string(got.State) != "{}" || got.Title != "research" {
		t.Errorf("a scope is %+v, %v", got, err)
	}
	if _, err := s.PatchState(t.Context(), as("bob"), plain, 1, []intents.Patch{set("n", "1")}); err != nil {
		t.Error(err)
	}
	if _, err := s.channels.Scopes().End(t.Context(), as("ann"), plain, scope.Abandoned, ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), as("rita"), plain); err != nil || got.Status != intents.Abandoned || got.Version != 3 || string(got.State) != `{"n":1}` {
		t.Errorf("an ended scope is %+v, %v", got, err)
	}
	want := []scope.ID{plain}
	for i := range 5 {
		d := intents.NewIntent{Title: fmt.Sprint(i), Status: intents.Active}
		if i%2 == 0 {
			d.Grants = access
		}
		it := s.create(t, d)
		if d.Grants != nil {
			want = append(want, it.ID)
		}
	}
	if _, err := s.channels.Scopes().Create(t.Context(), as("ann"), scope.Draft{Parent: plain}); err == nil {
		t.Error("an ended intent gets a task")
	}
	for _, backward := range []bool{false, true} {
		var got []scope.ID
		for q := (intents.ListQuery{PageSize: 2, Backward: backward}); ; {
			page, next, err := s.List(t.Context(), as("rita"), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range page {
				got = append(got, it.ID)
			}
			if q.Behind = next; next == "" {
				break
			}
		}
		if backward {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
	}
	page, _, err := s.List(t.Context(), as("rita"), intents.ListQuery{Status: intents.Active, PageSize: channels.MaxPage})
	if err != nil || len(page) != 3 {
		t.Errorf("%d are active: %v", len(page), err)
	}
	if page, _, err := s.List(t.Context(), as("gus"), intents.ListQuery{}); err != nil || len(page) != 0 {
		t.Errorf("an outsider lists %v, %v", page, err)
	}
}

// The end of a scope is an event of the intent, by who may manage it alone.
func TestEnd(t *testing.T) {
	s := serve(t)
	ctx, id := t.Context(), s.intent(t)
	_, err := s.End(ctx, as("bob"), id, scope.Completed, "")
	wantCode(t, "the end by an agent that takes part", err, kg.CodePermissionDenied)
	_, err = s.End(ctx, as("gus"), id, scope.Completed, "")
	wantCode(t, "the end by an outsider", err, kg.CodeScopeNotFound)
	_, err = s.End(ctx, as("ann"), id, scope.Active, "")
	wantCode(t, "no end", err, kg.CodeInvalid)
	_, err = s.End(ctx, as("ann"), id, scope.Completed, strings.Repeat("ü", intents.MaxReasonRunes+1))
	wantCode(t, "a reason past the bound", err, kg.CodeLimitExceeded)
	if sc, err := s.End(ctx, as("ann"), id, scope.Abandoned, strings.Repeat("ü", intents.MaxReasonRunes)); err != nil || sc.Status != scope.Abandoned {
		t.Fatalf("the scope is %+v: %v", sc, err)
	}
	if it, err := s.Get(ctx, as("rita"), id); err != nil || it.Status != intents.Abandoned || it.Version != 2 {
		t.Errorf("the intent is %+v: %v", it, err)
	}
	if got := s.eventTypes(t, id); !slices.Equal(got, []string{"status_changed"}) {
		t.Errorf("the events are %v", got)
	}
	_, err = s.End(ctx, as("ann"), id, scope.Completed, "")
	wantCode(t, "a second end", err, kg.CodeScopeEnded)
}

package intents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// An approved request gives access in the commit that approves it; a decided one cannot be
// decided again.
func TestAccessRequests(t *testing.T) {
	s := serve(t)
	id, ctx := s.intent(t), t.Context()
	q, err := s.Requests().Create(ctx, as("rita"), intents.AccessRequest{Intent: id, Level: scope.Write, Reason: "to help", Capabilities: []string{"sql"}})
	if err != nil || q.Agent != "agent://rita" || q.Status != intents.Pending {
		t.Fatalf("the request is %+v: %v", q, err)
	}
	again, err := s.Requests().Create(ctx, as("rita"), intents.AccessRequest{Intent: id, Level: scope.Write})
	if err != nil || again.ID != q.ID {
		t.Errorf("the same request again is %+v, want the first one: %v", again, err)
	}
	_, err = s.Requests().Create(ctx, as("gus"), intents.AccessRequest{Intent: id, Level: scope.Read})
	wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
	_, err = s.Requests().Decide(ctx, as("bob"), id, q.ID, intents.Decision{Approve: true})
	wantCode(t, "a decision of no manager", err, kg.CodePermissionDenied)
	_, err = s.Requests().Decide(ctx, as("ann"), id, "x", intents.Decision{Approve: true})
	wantCode(t, "a decision about no request", err, kg.CodeNotFound)

	decided, err := s.Requests().Decide(ctx, as("ann"), id, q.ID, intents.Decision{Approve: true, ExpiresAt: s.now().Add(time.Hour), Reason: "welcome"})
	if err != nil || decided.Status != intents.Approved || decided.DecidedBy != "agent://ann" || decided.Grant == "" {
		t.Fatalf("the approved request is %+v: %v", decided, err)
	}
	if level, err := s.channels.Scopes().LevelOf(as("rita"), id); level != scope.Write {
		t.Errorf("rita has level %q, want write: %v", level, err)
	}
	_, err = s.Requests().Decide(ctx, as("ann"), id, q.ID, intents.Decision{})
	wantCode(t, "a second decision", err, kg.CodeNotFound)
	other, err := s.Requests().Create(ctx, as("bob"), intents.AccessRequest{Intent: id, Agent: "gus", Level: scope.Admin})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Requests().Decide(ctx, as("ann"), id, other.ID, intents.Decision{Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.channels.Scopes().LevelOf(as("gus"), id)
	wantCode(t, "who was denied", err, kg.CodeScopeNotFound)

	s.restart(t)
	list, err := s.Requests().List(ctx, as("rita"), id)
	if err != nil || len(list) != 2 || list[0].Status != intents.Approved || list[1].Status != intents.Denied || list[1].DecisionReason != "no" {
		t.Errorf("after a restart the requests are %+v: %v", list, err)
	}
	want := []string{"access_requested", "access_request_approved", "access_requested", "access_request_denied"}
	if got := s.eventTypes(t, id); !slices.Equal(got, want) {
		t.Errorf("the events are %v, want %v", got, want)
	}
	s.advance(time.Hour)
	if level, err := s.channels.Scopes().LevelOf(as("rita"), id); level != scope.Read {
		t.Errorf("after the grant has expired rita has level %q, want read: %v", level, err)
	}
}

func TestBoundsOfAccessRequests(t *testing.T) {
	s := serve(t)
	id := s.intent(t)
	for what, row := range map[string]struct {
		q    intents.AccessRequest
		want kg.Code
	}{
		"a level that is none":   {intents.AccessRequest{Level: "owner"}, kg.CodeInvalid},
		"no level":               {intents.AccessRequest{}, kg.CodeInvalid},
		"an agent that is none":  {intents.AccessRequest{Agent: "a b", Level: scope.Read}, kg.CodeInvalid},
		"a reason at the bound":  {intents.AccessRequest{Level: scope.Read, Reason: strings.Repeat("ü", intents.MaxRequestReasons)}, ""},
		"a reason past it":       {intents.AccessRequest{Level: scope.Read, Reason: strings.Repeat("ü", intents.MaxRequestReasons+1)}, kg.CodeLimitExceeded},
		"capabilities at it":     {intents.AccessRequest{Level: scope.Write, Capabilities: make([]string, intents.MaxRequestTexts)}, ""},
		"capabilities past it":   {intents.AccessRequest{Level: scope.Admin, Capabilities: make([]string, intents.MaxRequestTexts+1)}, kg.CodeLimitExceeded},
		"a capability too long":  {intents.AccessRequest{Level: scope.Admin, Capabilities: []string{strings.Repeat("ü", intents.MaxTaskTextRunes+1)}}, kg.CodeLimitExceeded},
		"a request for somebody": {intents.AccessRequest{Level: scope.Admin, Agent: "gus"}, ""},
	} {
		row.q.Intent = id
		_, err := s.Requests().Create(t.Context(), as("bob"), row.q)
		wantCode(t, what, err, row.want)
	}
}

// Who reads an intent sees it in a portfolio, and nobody else learns that it is there.
func TestPortfolios(t *testing.T) {
	s := serve(t)
	ctx := t.Context()
	first, second := s.intent(t), s.intent(t)
	p, err := s.Portfolios().Create(ctx, as("ann"), intents.Portfolio{Name: "Q1", Metadata: []byte(`{"team":"a"}`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Portfolios().AddIntent(ctx, as("gus"), p.ID, first, "", 0)
	wantCode(t, "an outsider of the intent", err, kg.CodeScopeNotFound)
	_, err = s.Portfolios().AddIntent(ctx, as("rita"), p.ID, first, "", 0)
	wantCode(t, "a reader of the intent", err, kg.CodePermissionDenied)
	_, err = s.Portfolios().AddIntent(ctx, as("ann"), "x", first, "", 0)
	wantCode(t, "no portfolio", err, kg.CodeNotFound)
	_, err = s.Portfolios().AddIntent(ctx, as("ann"), p.ID, first, "boss", 0)
	wantCode(t, "a role that is none", err, kg.CodeInvalid)
	for id, priority := range map[scope.ID]int64{first: 1, second: 7} {
		if _, err := s.Portfolios().AddIntent(ctx, as("bob"), p.ID, id, "primary", priority); err != nil {
			t.Fatal(err)
		}
	}
	m, err := s.Portfolios().AddIntent(ctx, as("ann"), p.ID, first, "dependency", 9)
	if err != nil || m.AddedBy != "agent://bob" {
		t.Errorf("an intent that is there becomes %+v, want who added it to stay: %v", m, err)
	}
	s.restart(t)
	list, err := s.Portfolios().Intents(ctx, as("rita"), p.ID)
	if err != nil || len(list) != 2 || list[0] != *m || list[1].Intent != second {
		t.Errorf("the intents by priority are %+v: %v", list, err)
	}
	if list, err := s.Portfolios().Intents(ctx, as("gus"), p.ID); err != nil || len(list) != 0 {
		t.Errorf("an outsider sees the intents %+v: %v", list, err)
	}
	if of, err := s.Portfolios().Of(ctx, as("rita"), first); err != nil || len(of) != 1 || of[0] != *m {
		t.Errorf("the portfolios of an intent are %+v: %v", of, err)
	}
	_, err = s.Portfolios().SetStatus(ctx, as("bob"), p.ID, intents.PortfolioCompleted)
	wantCode(t, "the status set by another agent", err, kg.CodePermissionDenied)
	if p, err = s.Portfolios().SetStatus(ctx, as("ann"), p.ID, intents.PortfolioCompleted); err != nil || p.Status != intents.PortfolioCompleted {
		t.Errorf("the completed portfolio is %+v: %v", p, err)
	}
	if err := s.Portfolios().RemoveIntent(ctx, as("bob"), p.ID, second); err != nil {
		t.Error(err)
	}
	wantCode(t, "removal of what is not there", s.Portfolios().RemoveIntent(ctx, as("bob"), p.ID, second), kg.CodeNotFound)
}

// Pages of portfolios have each one once, in order of creation.
func TestPagesOfPortfolios(t *testing.T) {
	s := serve(t)
	var want []string
	for i := range 7 {
		p, err := s.Portfolios().Create(t.Context(), as([]string{"ann", "bob"}[i%2]), intents.Portfolio{Name: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, p.ID)
	}
	for size := 1; size <= 8; size++ {
		var got []string
		for after := ""; ; {
			page, next, err := s.Portfolios().List(t.Context(), as("gus"), "", after, size)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page {
				got = append(got, p.ID)
			}
			if after = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d have %v, want %v", size, got, want)
		}
	}
	if page, _, err := s.Portfolios().List(t.Context(), as("gus"), "agent://bob", "", 0); err != nil || len(page) != 3 {
		t.Errorf("bob's portfolios are %+v: %v", page, err)
	}
	for what, p := range map[string]intents.Portfolio{
		"a name past the bound":   {Name: strings.Repeat("ü", intents.MaxPortfolioNameRunes+1)},
		"metadata past the bound": {Name: "a", Metadata: []byte(`"` + strings.Repeat("x", intents.MaxPortfolioBytes) + `"`)},
	} {
		_, err := s.Portfolios().Create(t.Context(), as("ann"), p)
		wantCode(t, what, err, kg.CodeLimitExceeded)
	}
	_, err := s.Portfolios().Create(t.Context(), as("ann"), intents.Portfolio{})
	wantCode(t, "no name", err, kg.CodeInvalid)
}

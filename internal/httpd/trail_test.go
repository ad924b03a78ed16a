package httpd_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"koine/internal/audit"
	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/internal/throttle"
	"koine/kg"
)

// oneKey admits the one valid credential.
func oneKey(_ context.Context, credential string, _ func(error)) (kg.Principal, func(), error) {
	if credential != "right" {
		return kg.Principal{}, nil, kg.Errorf(kg.CodeUnauthenticated, "the credential is not valid")
	}
	return kg.Principal{ID: "agent://a", Method: "key"}, func() {}, nil
}

// noCommits is a store without commits, so that the list contains refusals only.
type noCommits struct{ audit.Commits }

func (noCommits) Head() kg.Position   { return kg.Position{} }
func (noCommits) Oldest() kg.Position { return kg.Position{} }

// The audit trail records refusals with the caller, as far as known, and never with the
// credential.
func TestRefusalsAreNoted(t *testing.T) {
	log := &locked{}
	trail := audit.NewTrail(audit.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	s := newServer(httpd.Options{Trail: trail, Admit: oneKey})
	s.HandleRPC(whoami)
	s.HandleAdmin("/admin/x", "", httpd.Plain, whoami)
	r := run(t, s)
	do(t, r, "POST", "/", "", "Authorization: Bearer secret-and-wrong")
	do(t, r, "POST", "/a2a", "")
	do(t, r, "POST", "/", "", "Authorization: Bearer right", "X-Agent-ID: b")
	do(t, r, "POST", "/admin/x", "", "X-API-Key: right")
	do(t, r, "POST", "/", "", "Authorization: Bearer right", "Origin: https://evil.example")
	do(t, r, "POST", "/", "", "Authorization: Bearer right") // not refused
	opened := caller.Caller{Principal: kg.Principal{ID: kg.Anonymous, Method: httpd.MethodNone}, Path: "/graphql"}
	if _, err := s.Connect(t.Context(), func(error) {}, opened, json.RawMessage(`{"authorization":"Bearer secret-and-wrong"}`)); err == nil {
		t.Error("a socket was let in")
	}
	page, err := audit.List(t.Context(), noCommits{}, trail, audit.Query{First: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page.Entries {
		got = append(got, strings.TrimSpace(string(e.Kind)+" "+e.Refusal.Reason+" "+e.Refusal.Path+" "+string(e.Principal)))
	}
	want := []string{
		"AUTHENTICATION UNAUTHENTICATED /graphql agent://anonymous",
		"DENIED ORIGIN_FORBIDDEN /",
		"DENIED PERMISSION_DENIED /admin/x agent://a",
		"DENIED SOURCE_FORBIDDEN / agent://a",
		"AUTHENTICATION UNAUTHENTICATED /a2a",
		"AUTHENTICATION UNAUTHENTICATED /",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if log.count("secret") != 0 || log.count("msg=refused") != len(want) {
		t.Errorf("logged\n%s", log.text.String())
	}
}

// A socket opened without a credential counts for the caller that authenticates on it.
func TestSocketsCountForWhomTheyAreOf(t *testing.T) {
	limits := throttle.New(throttle.Options{Principal: throttle.Limits{Streams: 1}})
	s := newServer(httpd.Options{Admit: oneKey, Throttle: limits})
	nobody := caller.Caller{Principal: kg.Principal{ID: kg.Anonymous, Method: httpd.MethodNone}}
	for range 3 { // sockets before authentication have no common share
		if _, err := limits.AdmitStream(caller.With(t.Context(), nobody)); err != nil {
			t.Fatal(err)
		}
	}
	payload := json.RawMessage(`{"headers":{"Authorization":"Bearer right"}}`)
	by, err := s.Connect(t.Context(), func(error) {}, nobody, payload)
	if err != nil {
		t.Fatal(err)
	}
	release, err := limits.AdmitStream(caller.With(t.Context(), by))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := limits.AdmitStream(caller.With(t.Context(), by)); kg.CodeOf(err) != kg.CodeRateLimited {
		t.Errorf("a second socket: got %v", err)
	}
	release()
	if _, err := limits.AdmitStream(caller.With(t.Context(), by)); err != nil {
		t.Errorf("after the first has ended: got %v", err)
	}
}

package httpd_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/kg"
)

// judge returns its verdicts in order.
type judge []kg.Verdict

func (j *judge) Verify(context.Context, kg.Judgement) (kg.Verdict, error) {
	v := (*j)[0]
	if *j = (*j)[1:]; v.Reason == "fails" {
		return v, errors.New("it fails")
	}
	return v, nil
}

// idle is a verifier that may have no rules.
type idle struct {
	kg.Verifier
	is bool
}

func (i idle) Idle() bool { return i.is }

// TestCountedVerifierIsIdle proves that counting does not make the store call an idle
// verifier.
func TestCountedVerifierIsIdle(t *testing.T) {
	for _, is := range []bool{true, false} {
		counted, ok := httpd.NewCounters().Verifier(idle{&judge{}, is}).(kg.Idler)
		if !ok || counted.Idle() != is {
			t.Errorf("the counted verifier is no Idler that says %t", is)
		}
	}
}

// /metrics has all operational metrics, passes Prometheus' own linter, and has no label
// that a client can create.
func TestNumbers(t *testing.T) {
	counters := httpd.NewCounters()
	limits := throttle.New(throttle.Options{
		Principal: throttle.Limits{Requests: 2}, Burst: time.Second, Clock: still,
		OnRefusal: func(r throttle.Refusal) { counters.RateLimited(r.What, r.By) },
	})
	p := newPair(t)
	p.write(t, 1)
	s := newServer(httpd.Options{Counters: counters, Throttle: limits, Store: store{stats: kg.Stats{
		Revision: 7, LogBytes: 1234, QueueLength: 3, Watchers: 2, QueueBound: 4096, CacheHits: 3, CacheMisses: 1, Refused: kg.CodeDiskFull,
		CommitSeconds: kg.Histogram{Bounds: []float64{.1, 1}, Counts: []uint64{5, 2, 1}, Sum: 4.5},
		GroupCommits:  kg.Histogram{Bounds: []float64{1, 2}, Counts: []uint64{1, 1, 0}, Sum: 3},
		LagRevisions:  kg.Histogram{Bounds: []float64{0, 10}, Counts: []uint64{4, 2, 1}}, MaxLag: 99,
	}}})
	s.HandleRPC(whoami)
	r := run(t, s)
	for range 3 {
		do(t, r, "POST", "/", "", "X-Agent-ID: greedy")
	}
	do(t, r, "POST", "/", "", "Host: evil.example")
	do(t, r, "MADEUP", "/no/such/path", "", "X-Agent-ID: somebody")
	s.Call("knowledge/query", 0, 3*time.Millisecond)
	counters.Operation("query", "ok", time.Millisecond)
	var lines strings.Builder
	ended := counters.StreamEnded(slog.New(slog.NewTextHandler(&lines, nil)), func(string) kg.Revision { return 7 })
	ended(caller.With(t.Context(), caller.Caller{Principal: kg.Principal{ID: "agent://somebody"}, RequestID: "r1"}),
		sse.End{Transport: "graphql-ws", Reason: "RESYNC", Cause: "ACCESS_CHANGED", Method: "statementChanged", Position: "p"})
	if want := ` level=INFO msg="stream ended" transport=graphql-ws reason=RESYNC cause=ACCESS_CHANGED request=r1 agent=agent://somebody method=statementChanged position=p revision=7` + "\n"; !strings.HasSuffix(lines.String(), want) {
		t.Errorf("logged %s, want %s", &lines, want)
	}
	verdicts := &judge{{}, {Outcome: kg.Held}, {Outcome: kg.Rejected}, {Outcome: kg.Violation}, {Reason: "fails"}}
	verifier := counters.Verifier(verdicts)
	for range 5 {
		_, _ = verifier.Verify(t.Context(), kg.Judgement{}) // the judge decides
	}
	_, text := do(t, r, "GET", "/metrics", "", "X-Agent-ID: prometheus")
	for _, want := range []string{
		`koine_http_requests_total{method="other",route="none",status="404"} 1`,
		`koine_http_refused_total{reason="HOST_FORBIDDEN"} 1`,
		`koine_audit_unwritten_total 0`,
		`koine_http_refused_total{reason="RATE_LIMITED"} 1`,
		`koine_rate_limited_total{by="principal",what="requests"} 1`,
		`koine_rpc_calls_total{code="0",method="knowledge/query"} 1`,
		`koine_rpc_call_duration_seconds_bucket{method="knowledge/query",le="0.005"} 1`,
		`koine_graphql_operations_total{kind="query",outcome="ok"} 1`,
		`koine_graphql_operation_duration_seconds_bucket{kind="query",le="0.001"} 1`,
		`koine_streams_ended_total{reason="RESYNC",transport="graphql-ws"} 1`,
		`koine_verification_verdicts_total{outcome="accepted"} 1`,
		`koine_verification_verdicts_total{outcome="held"} 1`,
		`koine_verification_verdicts_total{outcome="rejected"} 1`,
		`koine_verification_verdicts_total{outcome="violation"} 1`,
		`koine_verification_verdicts_total{outcome="error"} 1`,
		`koine_store_commit_duration_seconds_bucket{le="0.1"} 5`,
		`koine_store_commit_duration_seconds_bucket{le="1"} 7`,
		`koine_store_commit_duration_seconds_bucket{le="+Inf"} 8`,
		`koine_store_commit_duration_seconds_sum 4.5`,
		`koine_store_group_commits_bucket{le="2"} 2`,
		`koine_store_append_duration_seconds_count 0`,
		`koine_store_queue_length 3`,
		`koine_store_queue_bound 4096`,
		`koine_store_watchers_lagging{revisions="0"} 3`,
		`koine_store_watchers_lagging{revisions="10"} 1`,
		`koine_store_watcher_lag_max_revisions 99`,
		`koine_store_term_cache_hit_ratio 0.75`,
		`koine_store_ready 0`,
		`koine_store_updates_refused{code="DISK_FULL"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	for _, agent := range []string{"greedy", "somebody", "prometheus", "evil", "MADEUP", "such"} {
		if strings.Contains(text, agent) {
			t.Errorf("the numbers tell of %q, which a client made up", agent)
		}
	}
	if httpd.NewCounters().Verifier(nil) != nil {
		t.Error("no verifier became one")
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// An index of texts that is not complete does not keep the server from being ready. /readyz says
// how far it is, without numbers of statements, and /metrics has the numbers.
func TestTextIndex(t *testing.T) {
	var state httpd.TextIndex
	r := run(t, newServer(httpd.Options{TextIndex: func() httpd.TextIndex { return state }}))
	for _, row := range []struct {
		state httpd.TextIndex
		ready string
		lines []string
	}{
		{httpd.TextIndex{Building: true, Total: 5000, Behind: 9}, `{"status":"ready","search":"building, 0 %"}`,
			[]string{"koine_search_building 1", "koine_search_progress_read 0", "koine_search_progress_expected 5000", "koine_search_revision 0", "koine_search_lag_revisions 9"}},
		{httpd.TextIndex{Building: true, Done: 2100, Total: 5000, Texts: 1900, Segments: 2, Bytes: 77}, `{"status":"ready","search":"building, 42 %"}`,
			[]string{"koine_search_progress_read 2100", "koine_search_texts 1900", "koine_search_segments 2", "koine_search_index_bytes 77"}},
		{httpd.TextIndex{CatchingUp: true, Done: 1, Total: 3, Revision: 8}, `{"status":"ready","search":"catching up, 33 %"}`,
			[]string{"koine_search_building 0", "koine_search_catching_up 1", "koine_search_revision 8"}},
		{httpd.TextIndex{Done: 3, Total: 3, Revision: 10}, `{"status":"ready"}`, []string{"koine_search_building 0", "koine_search_catching_up 0"}},
	} {
		state = row.state
		if _, body := do(t, r, "GET", "/readyz", ""); strings.TrimSpace(body) != row.ready {
			t.Errorf("/readyz is %s, want %s", body, row.ready)
		}
		_, text := do(t, r, "GET", "/metrics", "")
		for _, line := range row.lines {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("%+v: no line %s", row.state, line)
			}
		}
		if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
	}
	if _, text := do(t, run(t, newServer(httpd.Options{})), "GET", "/metrics", ""); strings.Contains(text, "koine_search") {
		t.Error("a server without search has its metrics")
	}
}

func TestEmbeddings(t *testing.T) {
	state := httpd.Embeddings{Waiting: 1, Made: 2, Refused: 3, GivenUp: 9, Failed: 4, Today: 5, Daily: 6, Stored: 7, Behind: 8}
	_, text := do(t, run(t, newServer(httpd.Options{Embeddings: func() httpd.Embeddings { return state }})), "GET", "/metrics", "")
	for _, line := range []string{"waiting_texts 1", "made 2", "refused 3", "failed_calls 4", "sent_today 5", "daily_limit 6", "stored 7", "lag_revisions 8"} {
		if !strings.Contains(text, "koine_embeddings_"+line+"\n") {
			t.Errorf("no line koine_embeddings_%s", line)
		}
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

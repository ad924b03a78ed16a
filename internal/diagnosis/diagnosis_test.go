package diagnosis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/internal/diagnosis"
	"koine/kg"
)

func newHandler(t *testing.T) (*diagnosis.Recorder, http.Handler) {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := diagnosis.NewRecorder()
	return r, r.Handler(diagnosis.Options{Version: "1.2.3", Store: store, Memory: []diagnosis.Share{{Name: "blocks of the index", Bytes: 64 << 20}}})
}

func get(h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// A page lists slow operations and the waits of updates, in HTML and in JSON, and never a value
// of a caller.
func TestPageHasNoValues(t *testing.T) {
	r, h := newHandler(t)
	const secret = "kn_s3cret"
	r.NoteOperation(diagnosis.Slow{Kind: "query", Took: 3 * time.Second, Read: 1234,
		Document: `query Find($x: String!, $n: Int = 804701139) { # ` + secret + `
			entities(first: 804701139, where: {label: {eq: "` + secret + `"}}) { nodes { iri label } } other: entity(iri: """` + secret + `""") { label } }`},
		func() []string { return []string{"scan ?s <https://example.org/p> …"} })
	r.NoteOperation(diagnosis.Slow{Kind: "query", Took: time.Millisecond, Document: `{ entity(iri: "` + secret}, nil) // it does not end
	r.NoteCall(secret, -32601, time.Minute)
	began := time.Now()
	r.NoteStages(t.Context(), kg.Stages{Queued: began, Taken: began.Add(time.Millisecond), Executed: began.Add(3 * time.Millisecond), Appended: began.Add(10 * time.Millisecond), Applied: began.Add(10 * time.Millisecond)})

	for target, wants := range map[string][]string{
		"http://127.0.0.1:6060/":            {"koine 1.2.3", "query Find", "label:", "scan ?s &lt;https://example.org/p&gt;", "append and sync the log", "7ms", "blocks of the index", "64 MiB", "1234"},
		"http://localhost:6060/report.json": {`"version":"1.2.3"`, `query Find`, `"statementsRead":1234`, `"share":70`},
	} {
		w := get(h, target)
		text := w.Body.String()
		if w.Code != http.StatusOK || strings.Contains(text, secret) || strings.Contains(text, "804701139") {
			t.Errorf("%s: %d, or it has a value: %s", target, w.Code, text)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", target, want, text)
			}
		}
	}
	var report diagnosis.Report
	w := get(h, "http://[::1]:6060/", "Accept", "application/json")
	if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil || len(report.Slowest) != 3 {
		t.Fatalf("%v, %+v", err, report.Slowest)
	}
	if s := report.Slowest[1]; s.Took != 3*time.Second || len(s.Plan) != 1 || s.Kind != "query" {
		t.Errorf("%+v", s)
	}
}

// The lists are bounded, and keep the slowest.
func TestSlowestAreBounded(t *testing.T) {
	r, h := newHandler(t)
	for i := range 1000 {
		r.NoteOperation(diagnosis.Slow{Kind: fmt.Sprint("k", i), Took: time.Duration(i+1) * time.Millisecond}, nil)
	}
	var report diagnosis.Report
	if err := json.Unmarshal(get(h, "http://127.0.0.1/report.json").Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	// The test may pass from one minute to the next.
	if n := len(report.Slowest); n < 20 || n > 40 || report.Slowest[0].Kind != "k999" || report.Slowest[19].Took < 900*time.Millisecond {
		t.Errorf("%d are listed, from %s", n, report.Slowest[0].Kind)
	}
}

// Only this machine is answered, under a name of its own, and no page of a browser.
func TestOnlyLoopback(t *testing.T) {
	_, h := newHandler(t)
	for _, c := range []struct {
		target string
		origin string
		site   string // the header that browsers send
		want   int
	}{
		{"http://127.0.0.1:6060/", "", "", http.StatusOK},
		{"http://127.0.0.1:6060/", "", "none", http.StatusOK},
		{"http://127.0.0.1:6060/debug/pprof/", "", "same-origin", http.StatusOK},
		{"http://127.0.0.1:6060/debug/pprof/cmdline", "", "", http.StatusNotFound},
		{"http://attacker.example:6060/", "", "", http.StatusForbidden},
		{"http://127.0.0.1.example/debug/pprof/heap", "", "", http.StatusForbidden},
		{"http://127.0.0.1:6060/report.json", "https://attacker.example", "", http.StatusForbidden},
		{"http://127.0.0.1:6060/debug/pprof/heap?gc=1", "", "cross-site", http.StatusForbidden},
		{"http://127.0.0.1:6060/debug/pprof/heap?gc=1", "", "same-site", http.StatusForbidden}, // another port
	} {
		if w := get(h, c.target, "Origin", c.origin, "Sec-Fetch-Site", c.site); w.Code != c.want {
			t.Errorf("%s, origin %q, site %q: %d, want %d", c.target, c.origin, c.site, w.Code, c.want)
		}
	}
	for seconds, want := range map[string]int{"300": http.StatusNotFound, "300.5": http.StatusBadRequest, "301": http.StatusBadRequest, "1e9": http.StatusBadRequest, "NaN": http.StatusBadRequest} {
		// A page that is not there takes no time; profiles and traces have the same bound.
		if w := get(h, "http://127.0.0.1:6060/debug/pprof/cmdline?seconds="+seconds); w.Code != want {
			t.Errorf("%s seconds: %d, want %d", seconds, w.Code, want)
		}
	}
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		if l, err := diagnosis.Listen(address); err == nil {
			l.Close()
			t.Errorf("%s is listened on", address)
		} else if strings.Contains(err.Error(), "loopback") == false {
			t.Errorf("%s: %v", address, err)
		}
	}
	l, err := diagnosis.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// A verifier is timed, and an idle one stays idle.
func TestTimeVerifier(t *testing.T) {
	r, h := newHandler(t)
	if r.TimeVerifier(nil) != nil {
		t.Error("nil became a verifier")
	}
	v := r.TimeVerifier(accepting{})
	if _, err := v.Verify(t.Context(), kg.Judgement{}); err != nil {
		t.Fatal(err)
	}
	if !v.(kg.Idler).Idle() {
		t.Error("the verifier is not idle any more")
	}
	var report diagnosis.Report
	if err := json.Unmarshal(get(h, "http://127.0.0.1/report.json").Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if w := report.Waits[len(report.Waits)-1]; w.Count != 1 || !strings.HasPrefix(w.Name, "judge") {
		t.Errorf("%+v", w)
	}
}

type accepting struct{}

func (accepting) Idle() bool { return true }

func (accepting) Verify(context.Context, kg.Judgement) (kg.Verdict, error) { return kg.Verdict{}, nil }

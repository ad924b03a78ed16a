package rdfdata_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
)

// endsWithin is the time in which an import ends after its client has left.
const (
	endsWithin = time.Second
	// leavingTries is how often that is tried: the machine may be busy otherwise.
	leavingTries = 3
)

// A client that leaves in the middle of a long PUT of JSON-LD, while it sends, when all
// is sent, and while it is written, ends the work, in streaming order and held as a whole, and leaves the graph as
// it was.
func TestClientLeavesJSONLD(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: policy.NewGraphs(store, policy.New(policy.Options{}))},
		rdfdata.Options{TempDir: t.TempDir(), JSONLD: rdf.JSONLDOptions{Holders: rdf.NewJSONLDHolders(1)}})
	ended := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(caller.With(r.Context(), caller.Caller{Principal: kg.Principal{ID: "agent://ann", Roles: []string{kg.RoleAdmin}, Method: kg.MethodOpen}})))
		ended <- struct{}{}
	}))
	defer server.Close()
	const nodes = 60_000
	var b strings.Builder
	for i := range nodes {
		fmt.Fprintf(&b, `,{"@id":"urn:b%d","urn:p":"value %d"}`, i, i)
	}
	streamed := "[" + b.String()[1:] + "]"
	held := `{"@graph":` + streamed + `,"@context":{"x":"urn:x"}}`
	for _, row := range []struct {
		name, text string
		part       int  // of all that is sent, in percent
		written    bool // a part of it is in the log
	}{
		{"streaming, half is sent", streamed, 50, false},
		{"streaming, all is sent", streamed, 100, false},
		{"streaming, some is written", streamed, 100, true},
		{"held, half is sent", held, 50, false},
		{"held, all is sent", held, 100, false},
		{"held, some is written", held, 100, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			best := time.Duration(0)
			for try := 0; try < leavingTries && (best == 0 || best > slowtest.Slack(endsWithin)); try++ {
				before := store.Head().Revision
				writes := func() bool { return !row.written || store.Head().Revision > before }
				if took := leaves(t, server.URL+"/data?graph=urn:g", row.text, row.part, writes, ended); best == 0 || took < best {
					best = took
				}
			}
			if most := slowtest.Slack(endsWithin); best > most {
				t.Errorf("the import went on for %s at best after its client had left, want at most %s", best, most)
			}
			view, err := store.View(t.Context(), kg.View{Principal: kg.SystemPrincipal()})
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			if n, err := view.Count(kg.Pattern{Graph: kg.IRI("urn:g")}); n != 0 || err != nil {
				t.Errorf("the graph has %d statements, %v", n, err)
			}
		})
	}
}

// leaves puts a document, leaves when so much of it is sent and it is written, and gives
// how long the handler went on.
func leaves(t *testing.T, url, text string, percent int, written func() bool, ended <-chan struct{}) time.Duration {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	sent := make(chan struct{})
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, &notifying{r: strings.NewReader(text), left: len(text) * percent / 100, reached: sent})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Type", "application/ld+json")
	answered := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			response.Body.Close()
			err = fmt.Errorf("it was answered with %s", response.Status)
		}
		answered <- err
	}()
	<-sent
	for !written() {
		select {
		case err := <-answered:
			t.Fatalf("the request ended before anything was written: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	leave()
	left := time.Now()
	if err := <-answered; err == nil || strings.Contains(err.Error(), "answered") {
		t.Fatalf("the request: %v", err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the import goes on for a minute")
	}
	return time.Since(left)
}

// notifying is a body that tells when so much of it was read.
type notifying struct {
	r       io.Reader
	left    int
	reached chan struct{}
	told    bool
}

func (n *notifying) Read(b []byte) (int, error) {
	got, err := n.r.Read(b)
	if n.left -= got; n.left <= 0 && !n.told {
		n.told = true
		close(n.reached)
	}
	return got, err
}

// A ring and a clique of blank nodes in JSON-LD go in and out in every format, in a time
// that follows their statements.
func TestRingAndCliqueOfBlankNodes(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	f := start(t, rdfdata.Options{MaxBytes: 64 << 20})
	ring, clique := blankGraph(5_000, 1), blankGraph(100, 99)
	began := time.Now()
	for name, doc := range map[string]struct {
		text string
		want int
	}{"ring": {ring, 5_000}, "clique": {clique, 100 * 99}} {
		if a := f.ask("PUT", "?graph=urn:"+name, strings.NewReader(doc.text), "Content-Type: application/ld+json"); a.status != 201 {
			t.Fatalf("%s: %d %.300s", name, a.status, a.body)
		}
		for _, format := range []string{"application/n-triples", "text/turtle", "application/ld+json"} {
			a := f.get("?graph=urn:"+name, "Accept: "+format)
			if a.status != 200 {
				t.Fatalf("%s as %s: %d %.300s", name, format, a.status, a.body)
			}
			if b := f.ask("PUT", "?graph=urn:"+name, strings.NewReader(string(a.body)), "Content-Type: "+format); b.status/100 != 2 {
				t.Fatalf("%s as %s again: %d %.300s", name, format, b.status, b.body)
			}
			if got := strings.Count(string(f.get("?graph=urn:"+name, "Accept: application/n-triples").body), "\n"); got != doc.want {
				t.Errorf("%s as %s: %d statements, want %d", name, format, got, doc.want)
			}
		}
	}
	if took, most := time.Since(began), slowtest.Slack(2*time.Minute); took > most {
		t.Errorf("it took %s, want at most %s", took, most)
	}
}

// blankGraph is a document of n blank nodes, each with links to so many of those that come
// next.
func blankGraph(n, links int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"@id":"_:b%d","urn:p":[`, i)
		for k := range links {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"@id":"_:b%d"}`, (i+k+1)%n)
		}
		b.WriteString("]}")
	}
	return "[" + b.String()[1:] + "]"
}

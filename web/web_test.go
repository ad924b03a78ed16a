package web_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"koine/web"
)

// get asks the handler for a path; header holds name, value pairs.
func get(t *testing.T, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	reader := io.Reader(response.Body)
	if response.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(reader)
		if err != nil {
			t.Fatal(err)
		}
		reader = unpacked
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// assets are the addresses in the page, resolved as a browser does at /playground.
func assets(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, match := range regexp.MustCompile(`(?:src|href)="\.(/[^"]+)"`).FindAllStringSubmatch(body(t, get(t, "GET", "/playground")), -1) {
		found = append(found, match[1])
	}
	if len(found) < 3 {
		t.Fatalf("addresses in the page: got %q, want icon, script and style sheet", found)
	}
	return found
}

func TestPage(t *testing.T) {
	for _, path := range []string{"/playground", "/"} {
		response := get(t, "GET", path)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: status: got %d, want 200", path, response.StatusCode)
		}
		for name, want := range map[string]string{
			"Content-Type":           "text/html; charset=utf-8",
			"Cache-Control":          "no-cache",
			"X-Content-Type-Options": "nosniff",
			"Vary":                   "Accept-Encoding",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s: got %q, want %q", path, name, got, want)
			}
		}
		if got := body(t, response); !strings.Contains(got, "<title>koine</title>") {
			t.Errorf("%s: the page has no title: %s", path, got)
		}
	}
}

func TestPolicyAllowsOwnOriginOnly(t *testing.T) {
	policy := get(t, "GET", "/playground").Header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "worker-src 'self'", "connect-src 'self'",
		"frame-ancestors 'none'", "base-uri 'none'",
	} {
		if !strings.Contains(policy+";", want+";") {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "://") || strings.Contains(policy, "unsafe-eval") {
		t.Errorf("policy allows another origin or eval: %q", policy)
	}
}

func TestAssets(t *testing.T) {
	for _, path := range assets(t) {
		response := get(t, "GET", path, "Accept-Encoding", "br, gzip")
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: status: got %d, want 200", path, response.StatusCode)
		}
		if got, want := response.Header.Get("Cache-Control"), "public, max-age=31536000, immutable"; got != want {
			t.Errorf("%s: Cache-Control: got %q, want %q", path, got, want)
		}
		if got := response.Header.Get("Content-Encoding"); got != "gzip" {
			t.Errorf("%s: Content-Encoding: got %q, want gzip", path, got)
		}
		if body(t, response) == "" {
			t.Errorf("%s is empty", path)
		}
	}
}

func TestNothingIsLoadedFromElsewhere(t *testing.T) {
	page := body(t, get(t, "GET", "/playground"))
	if regexp.MustCompile(`(src|href)="(https?:)?//`).MatchString(page) {
		t.Errorf("the page loads from another host: %s", page)
	}
}

func TestEncodingIsNegotiated(t *testing.T) {
	path := assets(t)[1]
	want := body(t, get(t, "GET", path, "Accept-Encoding", "gzip"))
	tests := []struct {
		accept  string
		gzipped bool
	}{
		{"", false},
		{"identity", false},
		{"br", false},
		{"gzip;q=0", false},
		{"gzip;q=0, *", false},
		{"gzip; q=nonsense", false},
		{"*;q=0", false},
		{"gzip", true},
		{"GZIP", true},
		{"deflate, gzip;q=0.5", true},
		{"*", true},
	}
	for _, test := range tests {
		response := get(t, "GET", path, "Accept-Encoding", test.accept)
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != test.gzipped {
			t.Errorf("Accept-Encoding %q: gzipped: got %t, want %t", test.accept, got, test.gzipped)
		}
		if got := body(t, response); got != want {
			t.Errorf("Accept-Encoding %q: got other content (%d bytes, want %d)", test.accept, len(got), len(want))
		}
	}
}

func TestHeadSaysWhatGetSends(t *testing.T) {
	for _, accept := range []string{"gzip", "identity"} {
		whole := get(t, "GET", "/playground", "Accept-Encoding", accept)
		head := get(t, "HEAD", "/playground", "Accept-Encoding", accept)
		if content, _ := io.ReadAll(head.Body); len(content) != 0 {
			t.Errorf("HEAD (%s) has a body of %d bytes", accept, len(content))
		}
		sent, _ := io.ReadAll(whole.Body)
		if got := head.ContentLength; got != int64(len(sent)) {
			t.Errorf("HEAD (%s): length: got %d, want %d", accept, got, len(sent))
		}
		for name := range whole.Header {
			if got, want := head.Header.Get(name), whole.Header.Get(name); got != want {
				t.Errorf("HEAD (%s): %s: got %q, want %q", accept, name, got, want)
			}
		}
	}
}

func TestUnchangedContentIsNotSentAgain(t *testing.T) {
	tags := map[string]bool{}
	for _, accept := range []string{"gzip", "identity"} {
		tag := get(t, "GET", "/playground", "Accept-Encoding", accept).Header.Get("ETag")
		tags[tag] = true
		again := get(t, "GET", "/playground", "Accept-Encoding", accept, "If-None-Match", tag)
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its tag: status: got %d, want 304", accept, again.StatusCode)
		}
		stale := get(t, "GET", "/playground", "Accept-Encoding", accept, "If-None-Match", `"other"`)
		if stale.StatusCode != http.StatusOK {
			t.Errorf("%s with another tag: status: got %d, want 200", accept, stale.StatusCode)
		}
	}
	if len(tags) != 2 || tags[""] {
		t.Errorf("tags of the two encodings: got %v, want two different ones", tags)
	}
}

func TestRangesAreIgnored(t *testing.T) {
	response := get(t, "GET", "/playground", "Accept-Encoding", "gzip", "Range", "bytes=0-3")
	if response.StatusCode != http.StatusOK || !strings.Contains(body(t, response), "koine") {
		t.Errorf("with a Range: got status %d, want the whole page", response.StatusCode)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	tests := []struct {
		method, path string
		status       int
	}{
		{"GET", "/playground/assets/none.js", http.StatusNotFound},
		{"GET", "/playground/assets/", http.StatusNotFound},
		{"GET", "/playground/assets/../../web.go", http.StatusNotFound},
		{"GET", "/index.html", http.StatusNotFound},
		{"GET", "/index.html.gz", http.StatusNotFound},
		{"GET", "/playground/index.html", http.StatusNotFound},
		{"GET", "/graphql", http.StatusNotFound},
		{"POST", "/playground", http.StatusMethodNotAllowed},
		{"DELETE", "/playground", http.StatusMethodNotAllowed},
	}
	for _, test := range tests {
		response := get(t, test.method, test.path)
		if response.StatusCode != test.status {
			t.Errorf("%s %s: status: got %d, want %d", test.method, test.path, response.StatusCode, test.status)
		}
		if response.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s has no content security policy", test.method, test.path)
		}
	}
	if got := get(t, "POST", "/playground").Header.Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow: got %q, want %q", got, "GET, HEAD")
	}
}

func TestTrailingSlashLeadsToThePageUnderAnyPrefix(t *testing.T) {
	server := httptest.NewServer(http.StripPrefix("/some/prefix", web.Handler()))
	defer server.Close()
	response, err := server.Client().Get(server.URL + "/some/prefix/playground/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, want := response.Request.URL.Path, "/some/prefix/playground"; got != want || response.StatusCode != http.StatusOK {
		t.Errorf("got status %d at %s, want 200 at %s", response.StatusCode, got, want)
	}
}

func TestLicencesOfTheBundle(t *testing.T) {
	response := get(t, "GET", "/playground/THIRD_PARTY_LICENSES.txt")
	text := []byte(body(t, response))
	for _, want := range []string{"graphiql 5", "monaco-editor 0", "react 19", "graphql-sse 2", "Roboto", "Fira Code", "Permission is hereby granted"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the licences do not name %q", want)
		}
	}
}

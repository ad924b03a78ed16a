package main

import (
	"bytes"
	"encoding/json"
	"koine/internal/slowtest"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// serveVectors is an embeddings endpoint with vectors of the lengths of texts.
func serveVectors(t *testing.T, key string) (e *httptest.Server, sent func() string) {
	var mu sync.Mutex
	var texts []string
	e = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("a call with %q: %v", r.Header.Get("Authorization"), err)
		}
		var out struct {
			Data []map[string]any `json:"data"`
		}
		mu.Lock()
		defer mu.Unlock()
		for i, text := range in.Input {
			texts = append(texts, text)
			out.Data = append(out.Data, map[string]any{"index": i, "embedding": []int{len(text), 10}})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(e.Close)
	return e, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(texts, "|")
	}
}

// Texts of the graphs that the operator names get vectors from the endpoint and are found by them,
// also after a restart and without the index; erased ones are not. Nothing else is sent, and the
// key is in no log.
func TestEmbeddingsEndpoint(t *testing.T) {
	const key = "sk-not-to-be-seen"
	endpoint, sent := serveVectors(t, key)
	dir := t.TempDir()
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var s *server
	var url string
	begin := func() {
		s, url = startServerOn(t, dir, "--search", "on", "--log-level", "debug", "--embeddings-url", endpoint.URL+"/v1/embeddings", "--embeddings-model", "length",
			"--embeddings-key-file", keyFile, "--embeddings-graphs", "urn:ex:open,messages")
	}
	end := func() {
		t.Helper()
		if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := <-s.ended; err != nil {
			t.Fatal(err)
		}
		if strings.Contains(s.log.String(), key) {
			t.Error("the log has the key")
		}
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("koine", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	near := func(want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			_, got = ask(t, http.MethodPost, url+"/graphql", "bot", `{"query":"{ search(query: \"\", near: {like: \"twelve chars\"}) { nodes { similarity entity { iri } } } }"}`)
			if strings.Contains(got, want) {
				return
			}
		}
		t.Fatalf("got %s, want %s\n%s", got, want, s.log)
	}
	begin()
	run("update", "add", "urn:ex:a", "rdfs:label", "twelve signs", "--graph", "urn:ex:open", "--url", url)
	run("update", "add", "urn:ex:b", "rdfs:label", "two", "--graph", "urn:ex:open", "--url", url)
	run("update", "add", "urn:ex:c", "rdfs:label", "not sent", "--url", url)
	const both = `{"nodes":[{"similarity":1,"entity":{"iri":"urn:ex:a"}},{"similarity":0.`
	near(both)
	end()
	run("erase", "--data", dir, "--text", "two")
	begin()
	near(`{"nodes":[{"similarity":1,"entity":{"iri":"urn:ex:a"}}]}`)
	end()
	if err := os.RemoveAll(filepath.Join(dir, "search")); err != nil {
		t.Fatal(err)
	}
	begin()
	near(`{"nodes":[{"similarity":1,"entity":{"iri":"urn:ex:a"}}]}`)
	out, err := exec.Command("koine", "search", "--like", "twelve chars", "--csv", "--url", url).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "\n1.00,twelve signs,urn:ex:a,twelve signs\n") {
		t.Errorf("koine search --like: %v %s", err, out)
	}
	if _, text := ask(t, http.MethodGet, url+"/metrics", "bot", ""); !strings.Contains(text, "koine_embeddings_stored 1\n") || strings.Contains(text, key) {
		t.Errorf("the metrics do not count one vector:\n%s", text)
	}
	if got := strings.ReplaceAll(sent(), "|twelve chars", ""); got != "twelve signs|two" && got != "two|twelve signs" {
		t.Errorf("sent: %s", got)
	}
	end()
}

// A full backup, of a running server and of a directory, carries the made vectors: a server on what
// is restored sends no text again, and erases vectors as another does. An index that is damaged in
// the backup is noticed.
func TestEmbeddingsBackup(t *testing.T) {
	slowtest.WithoutRace(t)
	endpoint, sent := serveVectors(t, "key")
	work := t.TempDir()
	keyFile := filepath.Join(work, "key")
	if err := os.WriteFile(keyFile, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(dir string) (*server, string) {
		return startServerOn(t, dir, "--search", "on", "--embeddings-url", endpoint.URL+"/v1/embeddings", "--embeddings-model", "length",
			"--embeddings-key-file", keyFile, "--embeddings-graphs", "urn:ex:open")
	}
	end := func(s *server) {
		t.Helper()
		if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := <-s.ended; err != nil {
			t.Fatal(err)
		}
	}
	await := func(s *server, url string, lines ...string) {
		t.Helper()
		text := ""
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			_, text = ask(t, http.MethodGet, url+"/metrics", "bot", "")
			missing := slices.IndexFunc(lines, func(line string) bool { return !strings.Contains(text, "\nkoine_embeddings_"+line+"\n") })
			if missing < 0 {
				return
			}
		}
		t.Fatalf("not all of %q:\n%s\n%s", lines, text, s.log)
	}
	data := filepath.Join(work, "data")
	s, url := begin(data)
	runKoine(t, "update", "add", "urn:ex:a", "rdfs:label", "twelve signs", "--graph", "urn:ex:open", "--url", url)
	runKoine(t, "update", "add", "urn:ex:b", "rdfs:label", "two", "--graph", "urn:ex:open", "--url", url)
	await(s, url, "stored 2", "lag_revisions 0")
	online, offline, later := filepath.Join(work, "online.koine"), filepath.Join(work, "offline.koine"), filepath.Join(work, "later.koine")
	runKoine(t, "backup", "--url", url, "-o", online)
	end(s)
	runKoine(t, "backup", "--data", data, "-o", offline)
	runKoine(t, "backup", "--data", data, "--since", offline, "-o", later)
	before := sent()

	for i, backups := range [][]string{{online}, {offline, later}} {
		dir := filepath.Join(work, "restored-"+strconv.Itoa(i))
		runKoine(t, append([]string{"restore", "--data", dir}, backups...)...)
		s, url := begin(dir)
		await(s, url, "stored 2", "lag_revisions 0", "waiting_texts 0", "sent_today 0")
		if got := sent(); got != before {
			t.Errorf("%v: sent again: %s, after %s", backups, got, before)
		}
		out := runKoine(t, "search", "--like", "twelve chars", "--csv", "--url", url)
		if !strings.Contains(out, "\n1.00,twelve signs,urn:ex:a,twelve signs\n") || !strings.Contains(out, ",urn:ex:b,") {
			t.Errorf("%v: koine search --like: %s", backups, out)
		}
		end(s)
		runKoine(t, "erase", "--data", dir, "--text", "two")
		before = sent()
		s, url = begin(dir)
		await(s, url, "stored 1", "lag_revisions 0")
		end(s)
		if got := sent(); got != before {
			t.Errorf("%v: sent after erasing: %s, after %s", backups, got, before)
		}
	}

	content, err := os.ReadFile(online)
	if err != nil {
		t.Fatal(err)
	}
	const name = "embeddings/vectors/chunk-"
	at := bytes.Index(content, []byte(name))
	if at < 0 {
		t.Fatalf("the backup has no %s", name)
	}
	content[at+len(name)+32] ^= 1
	if err := os.WriteFile(online, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"restore", "--data", filepath.Join(work, "damaged"), online},
		{"backup", "--data", data, "--since", online, "-o", filepath.Join(work, "x.koine")},
	} {
		if out, err := exec.Command("koine", args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "the backup is damaged") {
			t.Errorf("koine %v: %v %s", args, err, out)
		}
	}
}

// Flags that do not go together, or name no graph, are usage errors.
func TestEmbeddingFlags(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "--embeddings-url=http://127.0.0.1:1/v1/embeddings"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--search=off", url}, "--search on"},
		{[]string{"--search=on", "--embeddings-model=m"}, "--embeddings-url"},
		{[]string{"--search=on", url, "--embeddings-model=m"}, "--embeddings-graphs"},
		{[]string{"--search=on", url, "--embeddings-graphs=default"}, "model"},
		{[]string{"--search=on", url, "--embeddings-graphs=default", "--embeddings-model=m", "--embeddings-daily=0"}, "--embeddings-daily"},
		{[]string{"--search=on", url, "--embeddings-graphs=default", "--embeddings-model=m", "--embeddings-key-file=" + empty}, "no key"},
		{[]string{"--search=on", "--embeddings-url=http://me:sk-secret@localhost/", "--embeddings-graphs=default", "--embeddings-model=m"}, "credentials"},
	} {
		out, err := exec.Command("koine", append([]string{"serve", "--listen=127.0.0.1:0", "--reserve-mib=0", "--data", t.TempDir()}, c.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "sk-secret") {
			t.Errorf("%v: %v %s", c.args, err, out)
		}
	}
}

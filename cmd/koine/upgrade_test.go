package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"koine/internal/proposals"
	"koine/internal/slowtest"
	"koine/kg"
)

// olderStore is the part of a build's answers that scripts/make-upgrade-data.sh kept.
type olderStore struct {
	Keys  struct{ Admin, Dora, Chen, Counter string }
	First struct {
		Revision uint64
		CommitID string
	}
	Proposal string
	Page     struct {
		Data struct {
			Statements struct{ PageInfo struct{ EndCursor string } }
		}
	}
	Channel  string
	Message  struct{ ID string }
	Position string
	Task     string
	Scope    string
	Head     uint64
	// Language is the build's spelling of a literal that was written twice, with the tag
	// en-GB and with EN-gb; nil if that was not requested.
	Language []string

	format int // of the directories before they are opened
}

// Data directories and backups of each release and step open, are upgraded at most once, and the tokens of
// clients are valid afterwards, or refused by name if the epoch is new.
func TestUpgrade(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	archives, err := filepath.Glob("testdata/upgrade/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no data of older builds: %v", err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			for _, name := range []string{"data", "killed", "restored"} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					dir, want, restored := openArchive(t, archive, name)
					checkUpgraded(t, dir, want, restored)
					if name != "restored" { // koine restore may commit an upgrade, after the expiry
						dir, want, _ = openArchive(t, archive, name)
						checkProposal(t, dir, want)
					}
				})
			}
		})
	}
}

// openArchive unpacks the data directory of that name, or makes it from the backups and returns
// the output of koine restore.
func openArchive(t *testing.T, archive, name string) (dir string, want olderStore, restored string) {
	t.Helper()
	parent := t.TempDir()
	dir = filepath.Join(parent, name)
	extractSparse(t, archive, parent)
	if name == "restored" {
		restored = runKoine(t, "restore", "--data", dir, filepath.Join(parent, "full.koine"), filepath.Join(parent, "incremental.koine"))
	}
	raw, err := os.ReadFile(filepath.Join(parent, "expect.json"))
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	want.format = formatOf(t, filepath.Join(parent, "killed"))
	return dir, want, restored
}

// checkProposal approves the proposal of a directory, by a clock that is before its expiry.
func checkProposal(t *testing.T, dir string, want olderStore) {
	t.Helper()
	clock := func() time.Time { return time.Unix(0, 0) } // commits have the time of the last one
	reviews := proposals.New(proposals.Options{Clock: clock})
	store, err := kg.Open(dir, kg.Options{ReserveBytes: 1, Clock: clock, Governor: kg.Governor{
		Holder: reviews, Access: reviews.Guard(kg.AllowAll{}), OnSystemChange: reviews.Follow,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := reviews.Open(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	chen := proposals.Caller{Principal: kg.Principal{ID: "agent://chen", Method: "key", Roles: []string{"reviewer"}}}
	p, err := reviews.Decide(t.Context(), chen, want.Proposal, proposals.Approve, "", nil)
	if err != nil || p.Status != proposals.Applied {
		t.Fatalf("the proposal is not applied: %+v, %v", p, err)
	}
	snapshot, err := store.View(t.Context(), kg.View{Principal: chen.Principal})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	bruno, pay := kg.IRI("https://example.org/bruno"), kg.IRI("https://example.org/salary")
	n := 0
	for st, err := range snapshot.Match(kg.Pattern{Subject: bruno, Predicate: pay}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; st.Object.Value() != "60000" {
			t.Errorf("the approved salary is %v, want 60000", st.Object)
		}
	}
	if n != 1 {
		t.Errorf("%d salaries after the approval, want 1", n)
	}
}

// checkUpgraded serves a directory before its upgrade, or one that koine restore created
// with this output.
func checkUpgraded(t *testing.T, dir string, want olderStore, restored string) {
	t.Helper()
	newEpoch := restored != ""
	s, c := startUpgraded(t, dir)
	upgrades := 0
	if want.format < formatOf(t, dir) {
		upgrades = 1
	}
	if n := strings.Count(restored+s.log.String(), "upgraded the data directory"); n != upgrades {
		t.Errorf("the log has %d lines about an upgrade of format %d, want %d:\n%s%s", n, want.format, upgrades, restored, s.log)
	}
	answersAt := func(path, what, key, body string, parts ...string) {
		t.Helper()
		_, text, err := c.send(key, http.MethodPost, path, body)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, part := range parts {
			if !bytes.Contains(text, []byte(part)) {
				t.Errorf("%s: got %s, want %s", what, text, part)
			}
		}
	}
	answers := func(what, key, body string, parts ...string) {
		t.Helper()
		answersAt("/a2a", what, key, body, parts...)
	}
	query := func(what, key, query, metadata string, parts ...string) {
		t.Helper()
		raw, err := json.Marshal(query)
		if err != nil {
			t.Fatal(err)
		}
		answers(what, key, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":%s,"metadata":{"koine":%s}}}`, raw, metadata), parts...)
	}
	query("a prefix", want.Keys.Dora, `{ entity(iri: "ex:rome") { iri label value(predicate: "ex:people") } }`, `{}`, `"iri":"https://example.org/rome"`, `"label":"Rome"`, `2800000`)
	query("the past", want.Keys.Dora, `{ entity(iri: "ex:rome") { value(predicate: "ex:people") } }`, fmt.Sprintf(`{"at":%d}`, want.First.Revision), `2700000`)
	if want.Language != nil {
		tag := "en-GB"
		if want.format < 3 {
			tag = "en-gb"
		}
		if !slices.Equal(want.Language, []string{tag}) {
			t.Errorf("the build of format %d shows %v, want one literal, in %s", want.format, want.Language, tag)
		}
		query("a language tag", want.Keys.Dora, `{ statements(where: {subject: {eq: "ex:colour"}}) { totalCount nodes { object { ... on Literal { value language } } } } }`, `{}`,
			`"totalCount":1`, `{"value":"Colour","language":"en-GB"}`)
		query("a language tag, written otherwise", want.Keys.Dora, `{ match(pattern: {triples: [{s: "?s", p: "ex:name", value: "Colour", language: "EN-gb"}]}) { totalCount } }`, `{}`, `"totalCount":1`)
	}
	query("a private graph", want.Keys.Dora, `{ statements(view: {graphs: ["agent://dora/notes"]}) { totalCount } }`, `{}`, `"totalCount":1`)
	query("a private graph of another", want.Keys.Chen, `{ statements(view: {graphs: ["agent://dora/notes"]}) { totalCount } }`, `{}`, `"totalCount":0`)
	query("a scope", want.Keys.Chen, fmt.Sprintf(`{ scope(id: "%s") { title channels { nodes { name } } } }`, want.Scope), `{}`, `Count cells`, `progress`)
	answers("a channel", want.Keys.Chen, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/history","params":{"channelId":"%s"}}`, want.Channel), `"text":"one"`, `"text":"two"`, `"text":"three"`)
	answers("an idempotency key", want.Keys.Dora, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":"%s","parts":[{"type":"text","text":"one"}],"idempotencyKey":"one"}}`, want.Channel),
		want.Message.ID, `"sequence":1`)

	next := fmt.Sprintf(`{ statements(first: 5, after: "%s", where: {predicate: {eq: "rdfs:label"}}) { nodes { object { ... on Literal { value } } } } }`, want.Page.Data.Statements.PageInfo.EndCursor)
	subscription := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { messagePublished(where: {channelId: \"%s\"}) { ... on MessagePublished { message { text } } } }","metadata":{"koine":{"resume":"%s"}}}}`, want.Channel, want.Position)
	hook := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"GetTaskPushNotificationConfig","params":{"taskId":"%s","id":"hook"}}`, want.Task)
	if newEpoch {
		if !strings.Contains(s.log.String(), "push configuration was sealed by another store") {
			t.Errorf("nothing is said of the push configuration that another store sealed:\n%s", s.log)
		}
		query("a cursor of another epoch", want.Keys.Dora, next, `{}`, `CURSOR_FOREIGN`)
		answers("a position of another epoch", want.Keys.Dora, subscription, `POSITION_GONE`)
	} else {
		answersAt("/agents/counter/a2a", "a push configuration", want.Keys.Dora, hook, `http://127.0.0.1:9/hook`)
		query("a cursor", want.Keys.Dora, next, `{}`, `City`)
		if text := firstEvent(t, c, want.Keys.Dora, subscription); !strings.Contains(text, `"text":"two"`) {
			t.Errorf("a position: the first event is %s, want the message two", text)
		}
	}
	query("a proposal", want.Keys.Chen, fmt.Sprintf(`{ proposal(id: "%s") { authorId patches requiredApprovals } }`, want.Proposal), `{}`,
		`"authorId":"agent://dora"`, `https://example.org/salary`, `60000`, `"requiredApprovals":1`)

	receive, leave := openMailbox(t, c.url, "counter", want.Keys.Counter)
	for range 2 {
		if letter := receive(); letter.Task.ID != want.Task || letter.From != "agent://dora" {
			t.Errorf("a letter: got %+v, want one of task %s", letter, want.Task)
		}
	}
	leave()
	stopUpgraded(t, s)

	runKoine(t, "check", "--data", dir) // fails if anything is damaged
	s, _ = startUpgraded(t, dir)
	if strings.Contains(s.log.String(), "upgraded the data directory") {
		t.Errorf("the second start upgrades again:\n%s", s.log)
	}
	stopUpgraded(t, s)
}

// formatOf returns the format of a data directory.
func formatOf(t *testing.T, dir string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "koine.json"))
	var file struct{ Version int }
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Version
}

func startUpgraded(t *testing.T, dir string) (*server, asker) {
	t.Helper()
	cmd := exec.Command("koine", "serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", dir, "--auth", "keys", "--allow-private-webhooks",
		"--policy", "../../examples/policies/four-eyes.yaml")
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	s := &server{process: cmd, log: new(growingText), ended: make(chan error, 1)}
	url, err := s.listening(out)
	if err != nil {
		t.Fatal(err, s.log)
	}
	return s, asker{t.Context(), url, new(atomic.Bool)}
}

func stopUpgraded(t *testing.T, s *server) {
	t.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
}

// firstEvent reads a stream up to its first event with data.
func firstEvent(t *testing.T, c asker, key, body string) string {
	t.Helper()
	response, err := http.DefaultClient.Do(asking(t.Context(), t, http.MethodPost, c.url+"/a2a", key, body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	buf := make([]byte, 64<<10)
	n, err := response.Body.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return string(buf[:n])
}

func runKoine(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "koine", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("koine %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// extractSparse unpacks an archive and leaves holes where its files are zero: a log
// segment has 64 MiB of which some KiB are used.
func extractSparse(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = writeSparse(path, r, h.Size)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeSparse(path string, r io.Reader, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	zero := make([]byte, 64<<10)
	for buf, at := make([]byte, len(zero)), int64(0); ; {
		n, err := io.ReadFull(r, buf)
		if n > 0 && !bytes.Equal(buf[:n], zero[:n]) {
			if _, err := f.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

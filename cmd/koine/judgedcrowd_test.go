package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// These tests prove, against the program in a process of its own, that judging delays no
// other caller. While the worst shapes and rules are judged on the largest values:
//
//   - unrelated writes wait less than 100 ms at the 99th percentile;
//   - SIGTERM ends the server within a second;
//   - a judgement ends within a second of its caller's leaving.

const (
	judgedWriters = 3
	lightWrites   = 200
	lightWrite    = 100 * time.Millisecond // without the race detector
	soonEnded     = time.Second
)

// worstPattern has many instructions, all of which are tried at each A of a text.
const worstPattern = `([A-Z]{2,200}-[0-9]{4}){3}`

// postGraphQL sends a document with variables and gives the body of the answer.
func postGraphQL(ctx context.Context, url, agent, query string, variables map[string]any) (string, error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Agent-ID", agent)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// applyTexts adds texts to a subject and gives the body of the answer.
func applyTexts(ctx context.Context, url, agent, subject, predicate string, texts ...string) (string, error) {
	var patches []any
	for _, text := range texts {
		patches = append(patches, map[string]any{"op": "add", "statement": map[string]any{
			"subject": map[string]any{"id": subject}, "predicate": map[string]any{"id": predicate}, "object": map[string]any{"value": text},
		}})
	}
	return postGraphQL(ctx, url, agent, `mutation ($p: [PatchInput!]!) { applyPatches(input: {patches: $p}) { success verificationStatus } }`, map[string]any{"p": patches})
}

// largest is as many of the largest texts as a request may have, or one.
func largest(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("%08d%s", i, strings.Repeat("A", 512<<10-64)))
	}
	return texts
}

// startJudging starts a program with the worst shape on one predicate and the worst
// rules on another.
func startJudging(t *testing.T, program string) (*server, string) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	text := `rules:
  - {name: pattern, on: update, when: 'patch.predicate == "urn:ruled" && patch.object.matches("` + worstPattern + `")', effect: reject}
`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, url := startProgram(t, serveCommandLine(program, "", "--auth", "open", "--policy", policy)...)
	shapes := `@prefix sh: <http://www.w3.org/ns/shacl#> .
<urn:shape> a sh:NodeShape ; sh:targetSubjectsOf <urn:shaped> ; sh:property [ sh:path <urn:shaped> ; sh:pattern "` + worstPattern + `" ] .`
	answer, err := postGraphQL(t.Context(), url, "admin", `mutation ($t: String!) { setShapes(input: {turtle: $t}) { success } }`, map[string]any{"t": shapes})
	if err != nil || strings.Contains(answer, `"errors"`) {
		t.Fatalf("the shapes were not taken: %s, %v", answer, err)
	}
	return s, url
}

// judged has the server judge the largest updates again and again until the context
// ends. Each of them has to be judged, not refused for another reason.
func judged(ctx context.Context, t *testing.T, url string, i int) {
	for predicate := "urn:shaped"; ctx.Err() == nil; {
		n := 7
		if predicate == "urn:ruled" {
			n = 1
		}
		answer, err := applyTexts(ctx, url, fmt.Sprint("judged", i), fmt.Sprint("urn:s", i), predicate, largest(n)...)
		if ctx.Err() == nil && (err != nil || !strings.Contains(answer, "JUDGE_LIMIT")) {
			t.Errorf("%s: got %.300s, %v", predicate, answer, err)
			return
		}
		if predicate == "urn:shaped" {
			predicate = "urn:ruled"
		} else {
			predicate = "urn:shaped"
		}
	}
}

func TestJudgingDoesNotSlowOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes both processors for half a minute")
	}
	_, url := startJudging(t, program(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range judgedWriters {
		all.Go(func() { judged(ctx, t, url, i) })
	}
	n, bound := 0, slowtest.Slack(lightWrite)
	var best time.Duration
	for try := 0; try < crowdTries && (best == 0 || best >= bound); try++ {
		var took []time.Duration
		for range lightWrites {
			n++
			began := time.Now()
			answer, err := applyTexts(ctx, url, "light", "urn:light", "urn:p", fmt.Sprint("v", n))
			if err != nil || !strings.Contains(answer, `"success":true`) {
				t.Fatalf("write %d: %s, %v", n, answer, err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		p99 := took[len(took)*99/100]
		t.Logf("beside %d judgements: median %s, p99 %s, slowest %s", judgedWriters, took[len(took)/2], p99, took[len(took)-1])
		if best == 0 || p99 < best {
			best = p99
		}
	}
	if best >= bound {
		t.Errorf("the 99th percentile of unrelated writes was %s at best, want less than %s", best, bound)
	}
	stop()
	all.Wait()
}

func TestJudgementsEndWithTheServer(t *testing.T) {
	slowtest.Long(t)
	path := program(t)
	var best time.Duration
	for try := 0; try < crowdTries && (best == 0 || best > soonEnded); try++ {
		s, url := startJudging(t, path)
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range judgedWriters {
			all.Go(func() { // the server refuses it as it ends
				_, _ = applyTexts(ctx, url, "judged", fmt.Sprint("urn:s", i), "urn:shaped", largest(7)...)
			})
		}
		busy(t, s, 500*time.Millisecond)
		began := time.Now()
		if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-s.ended:
			if err != nil {
				t.Errorf("the server ended with %v\n%s", err, s.log)
			}
		case <-time.After(time.Minute):
			t.Fatal("SIGTERM did not end the server within a minute")
		}
		took := time.Since(began)
		t.Logf("SIGTERM ended the server after %s", took)
		if best == 0 || took < best {
			best = took
		}
		leave()
		all.Wait()
	}
	if best > soonEnded {
		t.Errorf("SIGTERM ended the server after %s at best, want within %s", best, soonEnded)
	}
}

func TestWhoLeavesEndsItsJudgement(t *testing.T) {
	slowtest.Long(t)
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED LOUDLY: only Linux says how much processor time another process has had")
	}
	s, url := startJudging(t, program(t))
	for _, row := range []struct {
		predicate string
		texts     int
		spent     time.Duration // until the judgement is certainly under way, and not over
	}{{"urn:shaped", 7, 500 * time.Millisecond}, {"urn:ruled", 1, 80 * time.Millisecond}} {
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = applyTexts(ctx, url, "gone", "urn:s", row.predicate, largest(row.texts)...)
		}()
		busy(t, s, row.spent)
		leave()
		<-left
		began := time.Now()
		for idle := false; !idle; {
			before := processorTime(t, s)
			time.Sleep(100 * time.Millisecond)
			idle = processorTime(t, s)-before <= 20*time.Millisecond
			if time.Since(began) > time.Minute {
				break
			}
		}
		if took := time.Since(began); took > soonEnded {
			t.Errorf("%s: the judgement went on for %s after its caller had left, want at most %s", row.predicate, took, soonEnded)
		}
	}
}

// busy waits until the server has spent an amount of processor time on its requests.
func busy(t *testing.T, s *server, spent time.Duration) {
	t.Helper()
	if runtime.GOOS != "linux" {
		time.Sleep(500 * time.Millisecond)
		return
	}
	for before, deadline := processorTime(t, s), time.Now().Add(10*time.Second); processorTime(t, s)-before < spent; {
		if time.Now().After(deadline) {
			t.Fatal("the server does nothing")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// processorTime is that of the server until now.
func processorTime(t testing.TB, s *server) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

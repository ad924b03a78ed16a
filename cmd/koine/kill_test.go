package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/slowtest"
	"koine/kg"
)

// defaultServerKills is how often TestKilledServers kills a server; -koine.kills
// or the environment variable KOINE_KILLS say otherwise.
const defaultServerKills = 6

var (
	serverKills    = flag.Int("koine.kills", serverKillsOf(os.Getenv("KOINE_KILLS")), "how many servers TestKilledServers kills")
	serverKillSeed = flag.Uint64("koine.killseed", 0, "seed of TestKilledServers (0: a new one for each run)")
)

func serverKillsOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return defaultServerKills
}

const (
	mostAcknowledged = 100             // after as many answers a server is killed at the latest
	mostWork         = 4 * time.Second // or after this time
	mostOpening      = 1200            // milliseconds that a server lives that is killed while it opens
	sampled          = 12              // earlier things that each witness looks at again, of those it has by then
)

// witness sends requests to a server and remembers the acknowledged ones. One goroutine at
// a time uses it.
type witness interface {
	// act sends one request. errGone is no fault: then it is unknown whether it was done.
	act(c asker) error
	// check compares the state of the server after a kill with the acknowledgements, and
	// settles interrupted requests.
	check(c asker) error
	// replay does so with the log.
	replay(commits []*kg.Commit) error
}

// TestKilledServers kills a whole server with SIGKILL at random moments while agents make,
// rotate and revoke keys, set policies, propose and review, update with idempotency keys,
// register, and send each other tasks, all of it over HTTP. It proves, after each start:
// every acknowledged key, policy, proposal, decision, update, registration and change of a
// task is there; an interrupted request has its whole effect or none; a revoked key stays
// revoked; a policy decides; an approved proposal is applied exactly once, in the reported
// revision; a request repeated with its idempotency key has one effect; a task has one end,
// all its messages, and its artifacts; and an agent finds unfinished work in its mailbox.
// The log agrees.
func TestKilledServers(t *testing.T) {
	slowtest.Long(t)
	seed := *serverKillSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	defer func() {
		if t.Failed() {
			t.Logf("again with: go test ./cmd/koine -run TestKilledServers -koine.kills=%d -koine.killseed=%d", *serverKills, seed)
		}
	}()
	k := &killings{t: t, dice: rand.New(rand.NewPCG(seed, 4)), dir: filepath.Join(t.TempDir(), "data")}
	for range *serverKills {
		k.round()
		if t.Failed() {
			return
		}
	}
	k.replay()
	if out, err := exec.Command("koine", "check", "--data", k.dir).CombinedOutput(); err != nil {
		t.Errorf("koine check: %v\n%s", err, out)
	}
	t.Logf("%d answers, %d commits", k.answers.Load(), k.commits)
}

// killings is one data directory and its state as known from outside.
type killings struct {
	t    *testing.T
	dice *rand.Rand
	dir  string

	admin     string
	witnesses []witness
	answers   atomic.Int64
	commits   int
}

// round starts a server, checks its state, has the witnesses work with it, and kills it.
func (k *killings) round() {
	if k.admin != "" && k.dice.IntN(3) == 0 {
		k.killOpening()
	}
	s, c := k.start()
	if k.admin == "" {
		k.admin = keyText.FindString(s.log.String())
		k.witnesses = k.newWitnesses(c)
	}
	if err := k.all(func(w witness) error { return w.check(c) }); err != nil {
		k.t.Errorf("%v\n%s", err, s.log)
		return
	}
	limit := k.answers.Load() + 1 + k.dice.Int64N(mostAcknowledged)
	var over sync.Once
	end := func() {
		over.Do(func() {
			c.killed.Store(true)
			_ = s.process.Process.Kill()
		})
	}
	timer := time.AfterFunc(mostWork, end)
	defer timer.Stop()
	err := k.all(func(w witness) error {
		for {
			if err := w.act(c); errors.Is(err, errGone) {
				return nil
			} else if err != nil {
				end()
				return err
			}
			if k.answers.Add(1) >= limit {
				end()
			}
		}
	})
	end()
	var exit *exec.ExitError
	if ended := <-s.ended; !errors.As(ended, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		err = errors.Join(err, fmt.Errorf("the server ended with %v", ended))
	}
	if err != nil {
		k.t.Errorf("%v\n%s", err, s.log)
		return
	}
	if k.dice.IntN(2) == 0 { // else a server is the first to open the directory
		k.replay()
	}
}

// start gives a server that listens.
func (k *killings) start() (*server, asker) {
	k.t.Helper()
	cmd := k.command()
	out, err := cmd.StderrPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = cmd.Process.Kill() })
	s := &server{process: cmd, log: new(growingText), ended: make(chan error, 1)}
	url, err := s.listening(out)
	if err != nil {
		k.t.Fatal(err, s.log)
	}
	return s, asker{k.t.Context(), url, new(atomic.Bool)}
}

func (k *killings) command() *exec.Cmd {
	return exec.Command("koine", "serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", k.dir, "--auth", "keys",
		"--policy", "../../examples/policies/four-eyes.yaml", "--principal-requests", "0", "--principal-updates", "0")
}

// killOpening kills a server while it opens the data directory, or a little later.
func (k *killings) killOpening() {
	cmd := k.command()
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	time.AfterFunc(time.Duration(k.dice.IntN(mostOpening))*time.Millisecond, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // says that it was killed
}

// all lets all witnesses do something at the same time.
func (k *killings) all(do func(witness) error) error {
	errs := make([]error, len(k.witnesses))
	var wg sync.WaitGroup
	for i, w := range k.witnesses {
		wg.Go(func() { errs[i] = do(w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// replay opens the store and shows its log to the witnesses.
func (k *killings) replay() {
	k.t.Helper()
	s, err := kg.Open(k.dir, kg.Options{ReserveBytes: 1})
	if err != nil {
		k.t.Fatal(err)
	}
	commits, err := allCommits(k.t.Context(), s)
	k.commits = len(commits)
	for _, w := range k.witnesses {
		err = errors.Join(err, w.replay(commits))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		k.t.Errorf("the log: %v", err)
	}
}

func allCommits(ctx context.Context, s *kg.Store) (commits []*kg.Commit, err error) {
	for r := s.Oldest().Revision + 1; r <= s.Head().Revision; r++ {
		c, err := s.Commit(ctx, kg.SystemPrincipal(), r)
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", r, err)
		}
		commits = append(commits, c)
	}
	return commits, nil
}

// errGone means that the server was killed before its answer.
var errGone = errors.New("the server is gone")

// asker sends requests to the server of one round.
type asker struct {
	ctx    context.Context
	url    string
	killed *atomic.Bool
}

// refused is an answer with an error.
type refused struct{ code, text string }

func (r refused) Error() string { return r.text }

// ask sends a GraphQL document and reads its data into out.
func (c asker) ask(key, document string, out any) error {
	body, err := json.Marshal(map[string]string{"query": document})
	if err != nil {
		return err
	}
	_, text, err := c.send(key, http.MethodPost, "/graphql", string(body))
	if err != nil {
		return err
	}
	var answer struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	if len(answer.Errors) > 0 {
		return refused{answer.Errors[0].Extensions.Code, document + ": " + string(text)}
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// send sends a request with a key, and reads its answer.
func (c asker) send(key, method, path, body string) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, cli.RequestTimeout)
	defer cancel()
	status, text, err = answerOf(ctx, key, method, c.url+path, body)
	if err != nil && c.killed.Load() {
		err = errGone
	}
	return status, text, err
}

func answerOf(ctx context.Context, key, method, url, body string) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// codeOf is the code of an answer with an error; "" for none.
func codeOf(err error) string {
	var r refused
	errors.As(err, &r)
	return r.code
}

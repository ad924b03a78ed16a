package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// mostOpen is how many tasks one taskWitness leaves open.
const mostOpen = 6

// taskWitness sends tasks to an agent over A2A, and is that agent: it registers, and
// reports on the tasks.
type taskWitness struct {
	name             string // of the agent
	dice             *rand.Rand
	creator, handler string // keys
	version          int    // of the agent, as it was acknowledged; 0 for none
	said             int    // messages and chunks so far
	tasks            []*heldTask
	settle           func(asker) error // the interrupted request
}

// heldTask is the known state of a task.
type heldTask struct {
	id, state string
	messages  []string // their parts
	status    int      // how many there were with the one of the status; 0 for none
	mail      []int    // places of those that the agent did not report on
	chunks    []string
}

func (t *heldTask) ended() bool {
	return t.state == "TASK_STATE_COMPLETED" || t.state == "TASK_STATE_CANCELED"
}

// become applies a report of the agent.
func (t *heldTask) become(state, message, chunk string) {
	t.state, t.status, t.mail = state, 0, nil
	if message != "" {
		t.messages = append(t.messages, message)
		t.status = len(t.messages)
	}
	if chunk != "" {
		t.chunks = append(t.chunks, chunk)
	}
}

func (w *taskWitness) act(c asker) error {
	open := w.open()
	switch n := w.dice.IntN(8); {
	case w.version == 0 || n == 0:
		return w.begin(c, w.register())
	case len(open) == 0 || n <= 2 && len(open) < mostOpen:
		return w.begin(c, w.send(nil))
	default:
		t := open[w.dice.IntN(len(open))]
		switch {
		case n <= 3:
			return w.begin(c, w.send(t))
		case n <= 6:
			return w.begin(c, w.report(t))
		}
		return w.end(c, t)
	}
}

// step is an operation, and a function that finds out after a kill whether it was done.
type step struct{ do, settle func(asker) error }

func (w *taskWitness) begin(c asker, s step) error {
	w.settle = s.settle
	err := s.do(c)
	if err == nil {
		w.settle = nil
	}
	return err
}

func (w *taskWitness) open() (list []*heldTask) {
	for _, t := range w.tasks {
		if !t.ended() {
			list = append(list, t)
		}
	}
	return list
}

// next is a part that was not sent before; a number in it has to be returned unchanged.
func (w *taskWitness) next() string {
	w.said++
	return fmt.Sprintf(`{"data":{"is":"%s/%d","n":1.10}}`, w.name, w.said)
}

// register registers the agent, or changes its card.
func (w *taskWitness) register() step {
	version := w.version + 1
	do := func(c asker) error {
		status, text, err := c.send(w.handler, http.MethodPut, "/agents/"+w.name, fmt.Sprintf(`{"name":"Clerk","version":"%d"}`, version))
		if err == nil && status != http.StatusOK && status != http.StatusCreated {
			err = fmt.Errorf("registering %s: %d %s", w.name, status, text)
		}
		if err == nil {
			w.version = version
		}
		return err
	}
	return step{do, func(c asker) error {
		now, err := w.registered(c)
		if now == version {
			w.version = version
		}
		return err
	}}
}

// registered is the version that the agent is on record with, 0 for none.
func (w *taskWitness) registered(c asker) (version int, err error) {
	status, text, err := c.send(w.creator, http.MethodGet, "/agents/"+w.name, "")
	if err != nil || status == http.StatusNotFound {
		return 0, err
	}
	var out struct{ Version string }
	if err := json.Unmarshal(text, &out); err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	return strconv.Atoi(out.Version)
}

// send sends a message, with a new or an active task. The same message again has no further
// effect.
func (w *taskWitness) send(t *heldTask) step {
	part, id := w.next(), ""
	if t != nil {
		id = fmt.Sprintf(`"taskId":%q,`, t.id)
	}
	params := fmt.Sprintf(`{"message":{"messageId":"%s-%d",%s"role":"ROLE_USER","parts":[%s]},"configuration":{"returnImmediately":true}}`, w.name, w.said, id, part)
	once := func(c asker) (string, error) {
		var out struct{ Task struct{ ID string } }
		err := w.call(c, "SendMessage", params, &out)
		return out.Task.ID, err
	}
	do := func(c asker) error {
		id, err := once(c)
		if err != nil {
			return err
		}
		if t == nil {
			t = &heldTask{id: id, state: "TASK_STATE_SUBMITTED"}
			w.tasks = append(w.tasks, t)
		}
		if t.mail = append(t.mail, len(t.messages)); t.state == "TASK_STATE_INPUT_REQUIRED" {
			t.state, t.status = "TASK_STATE_SUBMITTED", 0
		}
		t.messages = append(t.messages, part)
		if w.dice.IntN(3) > 0 {
			return nil
		}
		if again, err := once(c); err != nil || again != t.id {
			return errors.Join(err, fmt.Errorf("the message of the task %s made %q when it was sent again", t.id, again))
		}
		return nil
	}
	return step{do, func(c asker) error {
		if t != nil && slices.Contains(t.messages, part) {
			return nil // the answer to its repetition was lost
		}
		return do(c)
	}}
}

// report reports on a task: working or waiting, with a chunk of an artifact. All of it is
// there after a kill, or nothing.
func (w *taskWitness) report(t *heldTask) step {
	state, chunk, message := "TASK_STATE_WORKING", w.next(), ""
	if w.dice.IntN(2) == 0 {
		state, message = "TASK_STATE_INPUT_REQUIRED", w.next()
	}
	do := func(c asker) error {
		if code, err := w.tell(c, t, state, message, chunk); err != nil || code != "" {
			return cmp.Or(err, fmt.Errorf("reporting of %s: %s", t.id, code))
		}
		t.become(state, message, chunk)
		return nil
	}
	return step{do, func(c asker) error {
		now, err := w.read(c, t.id)
		if err == nil && len(now.chunks()) > len(t.chunks) {
			t.become(state, message, chunk)
		}
		return err
	}}
}

// tell reports to the mailbox, and returns the code of a refusal.
func (w *taskWitness) tell(c asker, t *heldTask, state, message, chunk string) (code string, err error) {
	body := fmt.Sprintf(`{"state":%q`, state)
	if message != "" {
		body += fmt.Sprintf(`,"message":{"parts":[%s]}`, message)
	}
	letters := []string{`"` + t.id + `.cancel"`} // that of a cancel which came first
	for _, place := range t.mail {
		letters = append(letters, fmt.Sprintf(`"%s.%d"`, t.id, place+1))
	}
	body += fmt.Sprintf(`,"letters":[%s],"artifacts":[{"artifactId":"a","parts":[%s],"append":true}]}`, strings.Join(letters, ","), chunk)
	status, text, err := c.send(w.handler, http.MethodPost, "/agents/"+w.name+"/mailbox/"+t.id, body)
	switch {
	case err != nil || status == http.StatusOK:
		return "", err
	case strings.Contains(string(text), `"TASK_ENDED"`):
		return "TASK_ENDED", nil
	}
	return "", fmt.Errorf("%d %s", status, text)
}

// end cancels a task and completes it at the same time: one of both is done.
func (w *taskWitness) end(c asker, t *heldTask) error {
	chunk := w.next()
	settle := func(c asker) error {
		now, err := w.read(c, t.id)
		if err == nil && now.Status.State != t.state {
			w.ended(t, now.Status.State, chunk)
		}
		return err
	}
	return w.begin(c, step{func(c asker) error {
		var refusals [2]string
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() { refusals[0], errs[0] = w.tell(c, t, "TASK_STATE_COMPLETED", "", chunk) })
		both.Go(func() {
			errs[1] = w.call(c, "CancelTask", fmt.Sprintf(`{"id":%q}`, t.id), new(any))
			if codeOf(errs[1]) == "TASK_ENDED" {
				refusals[1], errs[1] = "TASK_ENDED", nil
			}
		})
		both.Wait()
		for i, state := range []string{"TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"} {
			if errs[i] == nil && refusals[i] == "" {
				if t.ended() {
					return fmt.Errorf("the task %s has two ends", t.id)
				}
				w.ended(t, state, chunk)
			}
		}
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		if !t.ended() {
			return fmt.Errorf("the task %s has no end: %q", t.id, refusals)
		}
		return nil
	}, settle})
}

func (w *taskWitness) ended(t *heldTask, state, chunk string) {
	if state == "TASK_STATE_CANCELED" {
		chunk = ""
	}
	t.become(state, "", chunk)
}

// call sends a request over A2A as the creator.
func (w *taskWitness) call(c asker, method, params string, out any) error {
	_, text, err := c.send(w.creator, http.MethodPost, "/agents/"+w.name+"/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	if err != nil {
		return err
	}
	var answer struct {
		Result json.RawMessage
		Error  *struct {
			Data []struct{ Metadata struct{ Cause string } }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	if answer.Error != nil {
		code := ""
		if len(answer.Error.Data) > 0 {
			code = answer.Error.Data[0].Metadata.Cause
		}
		return refused{code, fmt.Sprint(method, params, ": ", string(text))}
	}
	return json.Unmarshal(answer.Result, out)
}

// wireTask is a task in an answer of the server.
type wireTask struct {
	Status struct {
		State   string
		Message *wireMessage
	}
	History   []wireMessage
	Artifacts []wireMessage
}

type wireMessage struct{ Parts []json.RawMessage }

func (t *wireTask) chunks() (list []string) {
	for _, a := range t.Artifacts {
		list = append(list, partsOf(a)...)
	}
	return list
}

func partsOf(messages ...wireMessage) (list []string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			list = append(list, string(p))
		}
	}
	return list
}

func (w *taskWitness) read(c asker, id string) (*wireTask, error) {
	now := new(wireTask)
	return now, w.call(c, "GetTask", fmt.Sprintf(`{"id":%q}`, id), now)
}

func (w *taskWitness) check(c asker) error {
	if settle := w.settle; settle != nil {
		if err := settle(c); err != nil {
			return err
		}
		w.settle = nil
	}
	if now, err := w.registered(c); err != nil || now != w.version {
		return errors.Join(err, fmt.Errorf("%s was registered with version %d, and is with %d", w.name, w.version, now))
	}
	look := w.open()
	for _, i := range newest(w.dice, len(w.tasks)) {
		look = append(look, w.tasks[i])
	}
	for _, t := range look {
		if err := w.stands(c, t); err != nil {
			return err
		}
	}
	return w.mail(c)
}

// stands reports whether a task is as acknowledged, with its history and its artifact.
func (w *taskWitness) stands(c asker, t *heldTask) error {
	now, err := w.read(c, t.id)
	if err != nil {
		return err
	}
	history, status := slices.Clone(t.messages), []string(nil)
	if at := t.status - 1; at >= 0 {
		history, status = slices.Delete(history, at, at+1), t.messages[at:at+1]
	}
	got, said := partsOf(now.History...), []string(nil)
	if now.Status.Message != nil {
		said = partsOf(*now.Status.Message)
	}
	if now.Status.State != t.state || !slices.Equal(got, history) || !slices.Equal(said, status) || !slices.Equal(now.chunks(), t.chunks) {
		return fmt.Errorf("the task %s is %s, was told %q, says %q and has %q; it was acknowledged as %s, %q, %q, %q",
			t.id, now.Status.State, got, said, now.chunks(), t.state, history, status, t.chunks)
	}
	return nil
}

// mail opens the mailbox, and finds exactly the waiting letters: a message that is sent
// then comes after them.
func (w *taskWitness) mail(c asker) error {
	if w.version == 0 {
		return nil
	}
	if err := w.begin(c, w.send(nil)); err != nil {
		return err
	}
	want := []string{}
	for _, t := range w.tasks {
		for _, place := range t.mail {
			want = append(want, t.messages[place])
		}
	}
	// In the order in which they were sent.
	number := func(part string) int {
		var out struct{ Data struct{ Is string } }
		_ = json.Unmarshal([]byte(part), &out)
		n, _ := strconv.Atoi(strings.TrimPrefix(out.Data.Is, w.name+"/"))
		return n
	}
	slices.SortFunc(want, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	ctx, cancel := context.WithTimeout(c.ctx, cli.RequestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/agents/"+w.name+"/mailbox", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+w.handler)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got := []string{}
	for lines := bufio.NewScanner(response.Body); len(got) < len(want) && lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var letter struct {
			Canceled bool
			Message  wireMessage
		}
		if err := json.Unmarshal([]byte(data), &letter); err != nil {
			return fmt.Errorf("%s: %w", data, err)
		}
		if letter.Canceled { // and a kill came before its acknowledgement
			continue
		}
		got = append(got, partsOf(letter.Message)...)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the mailbox of %s has %q, want %q", w.name, got, want)
	}
	return nil
}

// replay finds the changes of each task one behind the other, and nothing behind its
// end.
func (w *taskWitness) replay(commits []*kg.Commit) error {
	version, ended := map[string]int{}, map[string]kg.Revision{}
	for _, commit := range commits {
		for i := range commit.Changes {
			ch := &commit.Changes[i]
			subject, ours := strings.CutPrefix(ch.Quad.Subject.Value(), "urn:koine:task:")
			id, _, _ := strings.Cut(subject, "/")
			if !ours || !strings.HasSuffix(ch.Quad.Graph.Value(), w.name) || strings.Contains(ch.Quad.Predicate.Value(), "taskMail") {
				continue // letters are acknowledged behind the end too
			}
			if at := ended[id]; at > 0 && at != commit.Revision {
				return fmt.Errorf("the task %s ended in revision %d, and revision %d changes it", id, at, commit.Revision)
			}
			if ch.Op != kg.Add {
				continue
			}
			switch name := strings.TrimPrefix(ch.Quad.Predicate.Value(), kg.OwnVocabulary); name {
			case "taskVersion":
				n, err := strconv.Atoi(ch.Quad.Object.Value())
				if err != nil || n != version[id]+1 {
					return fmt.Errorf("behind version %d of the task %s comes %s: %w", version[id], id, ch.Quad.Object.Value(), err)
				}
				version[id] = n
			case "taskState":
				if state := ch.Quad.Object.Value(); state == "COMPLETED" || state == "CANCELED" {
					ended[id] = commit.Revision
				}
			}
		}
	}
	for _, t := range w.tasks {
		if version[t.id] == 0 || t.ended() && ended[t.id] == 0 {
			return fmt.Errorf("the task %s, %s, is in the log with version %d and the end %d", t.id, t.state, version[t.id], ended[t.id])
		}
	}
	return nil
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"koine/cmd/koine/internal/cli"
)

// The workloads that a2a consists of.
const (
	rpcQueries  = "knowledge/query"
	ownMessages = "SendMessage"
	hubMessages = "SendMessage, returnImmediately"
)

var a2aKinds = []string{rpcQueries, ownMessages, hubMessages}

// The states of the tasks that messages make.
const (
	completed = "TASK_STATE_COMPLETED"
	submitted = "TASK_STATE_SUBMITTED"
)

// rpcQuery returns the nth query as a JSON-RPC request.
func (w *workload) rpcQuery(n uint64) benchRequest {
	return rpcRequest("/a2a", "knowledge/query", w.nthQuery(n))
}

// messageToKoine returns the nth query as a message to koine.
func (w *workload) messageToKoine(n uint64) benchRequest {
	r := rpcRequest("/a2a", "SendMessage", map[string]any{"message": w.newMessage(n, map[string]any{"data": w.nthQuery(n)})})
	r.state = completed
	return r
}

// messageToAgent returns a message to the benchmark's agent, which stays in its mailbox.
func (w *workload) messageToAgent(n uint64) benchRequest {
	r := rpcRequest("/agents/"+w.agent+"/a2a", "SendMessage", map[string]any{
		"message": w.newMessage(n, map[string]any{"text": "What is the weather like?"}), "configuration": map[string]any{"returnImmediately": true},
	})
	r.state = submitted
	return r
}

func (w *workload) newMessage(n uint64, part map[string]any) map[string]any {
	return map[string]any{"messageId": fmt.Sprintf("bench-%s-%d", w.run, n), "role": "ROLE_USER", "parts": []any{part}}
}

func rpcRequest(path, method string, params any) benchRequest {
	body, err := rpcBody(method, params)
	if err != nil {
		panic(err) // unreachable: params holds strings and maps only
	}
	return benchRequest{path: path, body: body}
}

// registerAgent registers the agent that receives the messages. It has no endpoint, so
// they stay in its mailbox.
func (w *workload) registerAgent(ctx context.Context) error {
	agent := "koine-bench-" + w.run
	card := benchRequest{path: "/agents/" + agent, body: []byte(`{"name": "Benchmark", "description": "Messages to it are part of a benchmark.", "version": "1"}`)}
	_, err := w.doRequest(ctx, http.MethodPut, w.base, card)
	if err == nil {
		w.agent = agent
	}
	return err
}

// addTask records the task in a response. It reports an error unless the task is in the
// given state.
func (w *workload) addTask(text []byte, state string) error {
	var answer struct {
		Result struct {
			Task struct {
				ID     string
				Status struct{ State string }
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return cli.InvalidResponse(err)
	}
	task := answer.Result.Task
	if task.ID != "" {
		w.tasks.add(task.ID)
	}
	if task.Status.State != state {
		return fmt.Errorf("the task is not %s: %s", state, text[:min(len(text), 400)])
	}
	return nil
}

// deleteTasks deletes the created tasks, with the given number of concurrent requests, and
// the benchmark's agent. No other request may be in flight.
func (w *workload) deleteTasks(ctx context.Context, clients int) (deleted int, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards deleted and err
	for range clients {
		all.Go(func() {
			for id := w.tasks.pop(1); len(id) > 0; id = w.tasks.pop(1) {
				failed := w.deleteResource(ctx, "/rest/tasks/"+id[0])
				mu.Lock()
				if failed == nil {
					deleted++
				} else if err == nil {
					err = failed
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if w.agent != "" {
		err = errors.Join(err, w.deleteResource(ctx, "/agents/"+w.agent))
	}
	return deleted, err
}

// deleteResource sends a DELETE request for a path.
func (w *workload) deleteResource(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
	defer cancel()
	_, err := w.doRequest(ctx, http.MethodDelete, w.base, benchRequest{path: path})
	return err
}

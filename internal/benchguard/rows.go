package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// row is a fixed number of requests by a fixed number of clients.
type row struct {
	name     string
	clients  int
	requests int
	// prepare, if set, runs before the row and is not measured.
	prepare func(context.Context, *server) error
	// request returns the n-th request.
	request func(n int) request
	// indexed means that the row ends when the index of texts has what it wrote.
	indexed bool
	// listeners is the number of streams of the channel that receive each request.
	listeners int
}

type request struct {
	path, body string
	accept     string // text that the response must contain: a rejection is not a measurement
}

// rows are about a dozen of the measurements in docs/benchmarks.md.
var rows = []row{
	{name: "Entity", clients: 16, requests: 15_000, request: func(n int) request {
		return graphQLRequest(fmt.Sprintf(`{ entity(iri: "%sfilm/%d") { iri label types } }`, namespace, n*17%films), `"label":"The film`)
	}},
	{name: "Entities", clients: 4, requests: 250, request: func(n int) request {
		return graphQLRequest(`{ entities(first: 500, where: {type: {eq: "`+namespace+`Film"}}) { nodes { iri label types } } }`, `"label":"The film`)
	}},
	{name: "Match", clients: 4, requests: 3_000, request: func(n int) request {
		return graphQLRequest(fmt.Sprintf(`{ match(pattern: {triples: [{s: "%[1]sfilm/%[2]d", p: "<%[1]sstarring>", o: "?p"}, {s: "?p", p: "<%[1]sactor>", o: "?a"}, {s: "?a", p: "rdfs:label", o: "?n"}]}) { nodes { value(var: "n") } } }`,
			namespace, n*13%films), `of the cast`)
	}},
	{name: "KnowledgeQuery", clients: 16, requests: 12_000, request: func(n int) request {
		return rpcRequest("knowledge/query", map[string]any{"query": fmt.Sprintf(`{ entity(iri: "%sfilm/%d") { iri label } }`, namespace, n*17%films)}, `"label":"The film`)
	}},
	{name: "UpdateOneIndexed", clients: 1, requests: 1_500, indexed: true, request: func(n int) request { return updateRequest("one", n) }},
	{name: "UpdateManyIndexed", clients: 64, requests: 8_000, indexed: true, request: func(n int) request { return updateRequest("many", n) }},
	{name: "Message", clients: 16, requests: 3_000, request: func(n int) request {
		return rpcRequest("SendMessage", map[string]any{"message": map[string]any{
			"messageId": fmt.Sprintf("m%d", n), "role": "ROLE_USER",
			"parts": []any{map[string]any{"data": map[string]any{"query": fmt.Sprintf(`{ entity(iri: "%sfilm/%d") { label } }`, namespace, n%films)}}},
		}}, `TASK_STATE_COMPLETED`)
	}},
	{name: "PublishIndexed", clients: 32, requests: 8_000, indexed: true, prepare: createChannel("publish"), request: func(n int) request { return publishRequest("publish", n) }},
	{name: "History", clients: 8, requests: 3_000, request: func(n int) request {
		return rpcRequest("channels/history", map[string]any{"channelId": channelID("publish"), "pageSize": 50, "sinceSequence": n % 2_000}, `"sequence":`)
	}},
	{name: "FanOut", clients: 1, requests: 150, listeners: 200, prepare: createChannel("fanout"), request: func(n int) request { return publishRequest("fanout", n) }},
	{name: "Export", clients: 1, requests: 2, request: func(int) request { return request{path: "/data", accept: namespace} }},
}

func graphQLRequest(query, accept string) request {
	body, _ := json.Marshal(map[string]string{"query": query}) // strings always marshal
	return request{"/graphql", string(body), accept}
}

func rpcRequest(method string, params any, accept string) request {
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) // plain values always marshal
	return request{"/a2a", string(body), accept}
}

// updateRequest adds ten statements of a new subject.
func updateRequest(series string, n int) request {
	var patches []any
	for i := range 10 {
		patches = append(patches, map[string]any{"op": "add", "statement": map[string]any{
			"subject":   map[string]any{"id": fmt.Sprintf("%s%s/%d", namespace, series, n)},
			"predicate": map[string]any{"id": fmt.Sprintf("%sp%d", namespace, i)},
			"object":    map[string]any{"value": fmt.Sprintf("value %d of %d", i, n)},
		}})
	}
	return rpcRequest("knowledge/update", map[string]any{"mutations": patches}, `"statementsAffected":10`)
}

func publishRequest(channel string, n int) request {
	return rpcRequest("channels/publish", map[string]any{
		"channelId": channelID(channel), "parts": []any{map[string]any{"type": "text", "text": fmt.Sprintf("%s %d %s", channel, n, strings.Repeat("word ", 40))}},
	}, `"sequence":`)
}

// channels has the ids of the channels that prepare created.
var channels sync.Map

func channelID(name string) string {
	id, _ := channels.Load(name)
	return id.(string)
}

func createChannel(name string) func(context.Context, *server) error {
	return func(ctx context.Context, v *server) error {
		raw, err := v.sendRequest(ctx, rpcRequest("channels/create", map[string]any{"name": name}, `"channel":`))
		if err != nil {
			return err
		}
		var answer struct {
			Result struct {
				Channel struct{ ID, ChannelID string }
			}
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return err
		}
		channels.Store(name, answer.Result.Channel.ID+answer.Result.Channel.ChannelID)
		return nil
	}
}

// runRow measures a row after a warm-up with a tenth of it.
func (v *server) runRow(ctx context.Context, s *side, r row, scale float64) error {
	if r.prepare != nil {
		if err := r.prepare(ctx, v); err != nil {
			return err
		}
	}
	total := max(1, int(float64(r.requests)*scale))
	warm := total / 10
	wait, err := v.openStreams(ctx, r, warm+total)
	if err == nil {
		err = v.sendAll(ctx, r, 0, warm)
	}
	if err != nil {
		return err
	}
	before, err := v.cpuTime()
	if err == nil {
		err = v.sendAll(ctx, r, warm, warm+total)
	}
	if err == nil {
		err = wait()
	}
	if err == nil && r.indexed {
		err = v.awaitIndex(ctx)
	}
	if err != nil {
		return err
	}
	after, err := v.cpuTime()
	if err != nil {
		return err
	}
	return s.writeResult(r.name, total, after-before)
}

// sendAll sends the requests numbered from to to-1.
func (v *server) sendAll(ctx context.Context, r row, from, to int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	next.Store(int64(from))
	var clients sync.WaitGroup
	for range r.clients {
		clients.Go(func() {
			for n := int(next.Add(1)) - 1; n < to && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if _, err := v.sendRequest(ctx, r.request(n)); err != nil {
					cancel(err)
				}
			}
		})
	}
	clients.Wait()
	return context.Cause(ctx)
}

// awaitIndex waits until the index of texts knows the newest revision. A build without an index
// answers with an error, and has nothing to wait for.
func (v *server) awaitIndex(ctx context.Context) error {
	for {
		raw, err := v.sendRequest(ctx, graphQLRequest(`{ revision search(query: "indexed", first: 1) { indexedRevision building } }`, `{`))
		if err != nil {
			return err
		}
		var answer struct {
			Errors []json.RawMessage
			Data   struct {
				Revision uint64
				Search   struct {
					IndexedRevision uint64
					Building        bool
				}
			}
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return err
		}
		of := &answer.Data
		if answer.Errors != nil || !of.Search.Building && of.Search.IndexedRevision >= of.Revision {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// maxResponseBytes is the largest response body that is read.
const maxResponseBytes = 1 << 30

func (v *server) sendRequest(ctx context.Context, q request) ([]byte, error) {
	method := http.MethodPost
	if q.body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, v.url+q.path, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Agent-ID", "bench")
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := v.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(raw, []byte(q.accept)) {
		return nil, fmt.Errorf("%s answered %s: %.300s", q.path, resp.Status, raw)
	}
	return raw, nil
}

// openStreams opens the streams of a row. wait waits until each has received all events.
func (v *server) openStreams(ctx context.Context, r row, events int) (wait func() error, err error) {
	done := make(chan error, r.listeners)
	for range r.listeners {
		body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "channels/stream", "params": map[string]any{"channelId": channelID("fanout")}}) // strings always marshal
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url+"/a2a", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("X-Agent-ID", "bench")
		req.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Transport: v.http.Transport}).Do(req)
		if err != nil {
			return nil, err
		}
		if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
			return nil, fmt.Errorf("channels/stream answered %s with %s", resp.Status, ct)
		}
		go func() {
			defer resp.Body.Close()
			done <- countEvents(resp.Body, events)
		}()
	}
	return func() error {
		for range r.listeners {
			if err := <-done; err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func countEvents(r io.Reader, n int) error {
	for lines := bufio.NewReader(r); n > 0; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("%d events are missing: %w", n, err)
		}
		if strings.HasPrefix(line, "data:") {
			n--
		}
	}
	return nil
}

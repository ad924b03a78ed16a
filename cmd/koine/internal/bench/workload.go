package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// workload generates the requests of a benchmark. It sends prepared bytes, because the
// time that a client needs to build a request would be measured with it. It is safe for
// concurrent use.
type workload struct {
	client   *client.Client // for requests that are not measured
	base     string
	header   http.Header
	http     *http.Client
	entities []string
	graph    string
	run      string // makes the names of new subjects unique to this run
	kind     string
	agent    string // the registered agent, "" if there is none
	count    atomic.Uint64
	added    collection[uint64] // the numbers of the updates that were sent
	tasks    collection[string] // the ids of the tasks that messages created
}

// benchRequest is a request that is ready to be sent to the server or to the twin.
type benchRequest struct {
	path   string
	body   []byte
	update uint64 // the number of the update, 0 for other requests
	// state is the expected state of the task in the response, "" if no task is expected.
	state string
}

// isUpdate reports whether the request adds statements or tasks, which the benchmark
// removes at its end.
func (r *benchRequest) isUpdate() bool { return r.update != 0 || r.state != "" }

const entityQuery = `query($iri: IRI!) { entity(iri: $iri) { iri label types } }`

// updatesInMixed is the period of updates in the mixed workload: one request in
// updatesInMixed is an update.
const updatesInMixed = 10

func (c *Command) newWorkload(ctx context.Context, kind string) (*workload, error) {
	server, err := (&cli.ServerFlags{URL: c.URL, CAFlag: c.CAFlag, CallerFlags: c.CallerFlags}).OpenClient(ctx)
	if err != nil {
		return nil, err
	}
	transport, err := c.NewTransport()
	if err != nil {
		return nil, err
	}
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = c.Clients, 0
	w := &workload{
		client: server, base: server.Address(), header: c.requestHeader(), http: &http.Client{Transport: transport}, entities: c.Entity, graph: c.Graph,
		run: fmt.Sprintf("%x", time.Now().UnixNano()), kind: kind,
	}
	if kind == hubMessages {
		return w, w.registerAgent(ctx)
	}
	if kind == "update" || len(w.entities) > 0 {
		return w, nil
	}
	var answer struct {
		Entities struct {
			Nodes []struct{ IRI string }
		}
	}
	if _, err := server.Query(ctx, client.Query{Text: `{ entities(first: 100) { nodes { iri } } }`}, &answer); err != nil {
		return nil, err
	}
	for _, n := range answer.Entities.Nodes {
		if !strings.HasPrefix(n.IRI, "_:") {
			w.entities = append(w.entities, n.IRI)
		}
	}
	if len(w.entities) == 0 {
		return nil, errors.New("the server has no entities to query: load a file first, or pass --entity IRI")
	}
	return w, nil
}

// requestHeader returns the header of every request.
func (c *Command) requestHeader() http.Header {
	h := http.Header{"User-Agent": {cli.UserAgent()}, "Content-Type": {"application/json"}}
	if c.As != "" {
		h.Set("X-Agent-ID", c.As)
	}
	if c.Key != "" {
		h.Set("Authorization", "Bearer "+c.Key)
	}
	return h
}

// rpcBody encodes a JSON-RPC request.
func rpcBody(method string, params any) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

func (w *workload) close() { w.http.CloseIdleConnections() }

// next returns the next request of the workload.
func (w *workload) next() benchRequest {
	n := w.count.Add(1)
	switch {
	case w.kind == "update" || w.kind == "mixed" && n%updatesInMixed == 0:
		return w.updateRequest(n)
	case w.kind == rpcQueries:
		return w.rpcQuery(n)
	case w.kind == ownMessages:
		return w.messageToKoine(n)
	case w.kind == hubMessages:
		return w.messageToAgent(n)
	}
	body, err := json.Marshal(w.nthQuery(n))
	if err != nil {
		panic(err) // strings
	}
	return benchRequest{path: "/graphql", body: body}
}

// nthQuery returns the nth GraphQL query.
func (w *workload) nthQuery(n uint64) map[string]any {
	return map[string]any{"query": entityQuery, "variables": map[string]any{"iri": w.entities[n%uint64(len(w.entities))]}}
}

// updateRequest returns an update that asserts statements about a new subject.
func (w *workload) updateRequest(n uint64) benchRequest {
	body, err := rpcBody("knowledge/update", map[string]any{"mutations": w.makePatches(client.Add, n)})
	if err != nil {
		panic(err) // strings
	}
	return benchRequest{path: "/a2a", body: body, update: n}
}

// patchesPerUpdate is the number of statements that an update asserts.
const patchesPerUpdate = 10

// makePatches returns the patches of the nth update, each built by make.
func (w *workload) makePatches(make func(subject, predicate string, object client.Node) client.Patch, n uint64) (patches []client.Patch) {
	for i := range patchesPerUpdate {
		subject, predicate := fmt.Sprintf("urn:koine:bench:%s:%d", w.run, n), fmt.Sprintf("urn:koine:bench:p%d", i)
		patches = append(patches, make(subject, predicate, client.Text(fmt.Sprintf("value %d of %d", i, n))).In(w.graph))
	}
	return patches
}

// sendNext sends the next request to the server.
func (w *workload) sendNext(ctx context.Context) error { return w.sendToServer(ctx, w.next()) }

// sendToServer sends a request to the server. An update is completed even if ctx is done,
// because the removal at the end must find all that was added.
func (w *workload) sendToServer(ctx context.Context, r benchRequest) error {
	if r.isUpdate() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cli.RequestTimeout)
		defer cancel()
	}
	if r.update != 0 {
		w.added.add(r.update)
	}
	text, err := w.readAnswer(ctx, w.base, r)
	if err == nil && r.state != "" {
		err = w.addTask(text, r.state)
	}
	return errors.Join(err, errorInAnswer(text))
}

// sendTo sends a request to the server or the twin at base.
func (w *workload) sendTo(ctx context.Context, base string, r benchRequest) error {
	text, err := w.readAnswer(ctx, base, r)
	return errors.Join(err, errorInAnswer(text))
}

// errorInAnswer returns the error in a response with status 200, nil if there is none.
func errorInAnswer(text []byte) error {
	if bytes.Contains(text, []byte(`"error":{`)) || bytes.Contains(text, []byte(`"errors":[`)) {
		return fmt.Errorf("%s", text[:min(len(text), 400)])
	}
	return nil
}

func (w *workload) readAnswer(ctx context.Context, base string, r benchRequest) ([]byte, error) {
	return w.doRequest(ctx, http.MethodPost, base, r)
}

func (w *workload) doRequest(ctx context.Context, method, base string, r benchRequest) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	request.Header = w.header
	response, err := w.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, cli.MaxAnswerBytes))
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, text[:min(len(text), 400)])
	}
	return text, err
}

// answerBytes returns the length of a typical response, which the twin's responses get
// too. It also checks that the workload succeeds at all.
func (w *workload) answerBytes(ctx context.Context) (int, error) {
	r := w.next()
	if err := w.sendToServer(ctx, r); err != nil {
		return 0, err
	}
	text, err := w.readAnswer(ctx, w.base, r) // the server answers a repeated message with the same task
	return len(text), err
}

// echo is the twin: a bare HTTP server that decodes and encodes JSON.
type echo struct {
	url    string
	server *http.Server
	done   chan struct{}
}

func startEcho(size int) (*echo, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"data": strings.Repeat("x", max(0, size-len(`{"data":""}`+"\n")))}
	e := &echo{url: "http://" + listener.Addr().String(), done: make(chan struct{})}
	e.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer) // the client detects a truncated response
	})}
	go func() {
		defer close(e.done)
		e.server.Serve(listener)
	}()
	return e, nil
}

func (e *echo) close() {
	e.server.Close()
	<-e.done
}

// collection collects the things made by the benchmark, to be removed at its end. It is safe for
// concurrent use.
type collection[T any] struct {
	mu   sync.Mutex // guards list
	list []T
}

func (c *collection[T]) add(one T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, one)
}

// pop removes and returns up to most elements.
func (c *collection[T]) pop(most int) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(most, len(c.list))
	few := c.list[:n]
	c.list = c.list[n:]
	return few
}

// updatesPerRemoval keeps a removal far below the limits of one request.
const updatesPerRemoval = 500

// cleanUp removes the statements that the updates added and returns their number. No other
// request may be in flight.
func (w *workload) cleanUp(ctx context.Context) (removed int, err error) {
	for {
		few := w.added.pop(updatesPerRemoval)
		if len(few) == 0 {
			return removed, nil
		}
		var patches []client.Patch
		for _, n := range few {
			patches = append(patches, w.makePatches(client.Remove, n)...)
		}
		n, err := w.removePatches(ctx, patches)
		if err != nil {
			return removed, err
		}
		removed += n
	}
}

func (w *workload) removePatches(ctx context.Context, patches []client.Patch) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
	defer cancel()
	result, err := w.client.Update(ctx, client.Update{Patches: patches, Justification: "The end of a benchmark", Once: true})
	if err != nil {
		return 0, err
	}
	return result.StatementsAffected, nil
}

package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"koine/cmd/koine/internal/buildinfo"
	"koine/cmd/koine/internal/cli"
	"koine/graph"
	"koine/internal/diagnosis"
	"koine/internal/memory"
	"koine/kg"
)

// debugFlag is the listener for the operator.
type debugFlag struct {
	DebugListen string `help:"Loopback address for the operator of the server: the slowest operations of the last hour, what updates wait for, memory, and profiles (pprof). It needs no credentials." placeholder:"HOST:PORT"`
}

// debugging is the operator's listener with its recorder. nil is none: its methods do nothing.
type debugging struct {
	listener net.Listener
	recorder *diagnosis.Recorder
	server   http.Server
}

// listenForDebugging listens if the flag is set.
func (f debugFlag) listenForDebugging() (*debugging, error) {
	if f.DebugListen == "" {
		return nil, nil
	}
	listener, err := diagnosis.Listen(f.DebugListen)
	if err != nil {
		return nil, cli.Usagef("--debug-listen: %w", err)
	}
	return &debugging{listener: listener, recorder: diagnosis.NewRecorder()}, nil
}

// govern lets the store report the stages of updates.
func (d *debugging) govern(g *kg.Governor) {
	if d == nil {
		return
	}
	g.Verifier = d.recorder.TimeVerifier(g.Verifier)
	stages := g.Stages
	g.Stages = func(ctx context.Context, s kg.Stages) {
		d.recorder.NoteStages(ctx, s)
		if stages != nil {
			stages(ctx, s)
		}
	}
}

// finished returns the function that takes the engine's reports, nil for none.
func (d *debugging) finished() func(graph.FinishedOperation) {
	if d == nil {
		return nil
	}
	return func(o graph.FinishedOperation) {
		d.recorder.NoteOperation(diagnosis.Slow{Took: o.Took, Kind: o.Kind, Document: o.Document, Failed: o.Failed, Read: o.Read}, o.Plan)
	}
}

// observe adds a report of each call of JSON-RPC to an observer. Calls of knowledge/query are
// operations of the engine, too.
func (d *debugging) observe(next func(method string, code int, took time.Duration)) func(string, int, time.Duration) {
	if d == nil {
		return next
	}
	return func(method string, code int, took time.Duration) {
		d.recorder.NoteCall(method, code, took)
		next(method, code, took)
	}
}

// serve begins to answer.
func (d *debugging) serve(log *slog.Logger, store *kg.Store, s memory.Shares) {
	if d == nil {
		return
	}
	d.server = http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, Handler: d.recorder.Handler(diagnosis.Options{Version: buildinfo.Version(), Store: store, Memory: nameShares(s)})}
	log.Info("debug pages", "url", "http://"+d.listener.Addr().String()+"/")
	go d.server.Serve(d.listener) // close ends it
}

// close stops answering.
func (d *debugging) close() {
	if d != nil {
		_ = d.server.Close() // the process ends
		_ = d.listener.Close()
	}
}

// nameShares returns the table of shares.
func nameShares(s memory.Shares) []diagnosis.Share {
	return []diagnosis.Share{
		{Name: "all", Bytes: s.Total},
		{Name: "heap, garbage included", Bytes: s.Heap},
		{Name: "pages of mapped files", Bytes: s.Mapped},
		{Name: "newest keys", Bytes: s.Memtable * int64(1+s.Memtables)},
		{Name: "blocks of the index", Bytes: s.Blocks},
		{Name: "decoded runs of statements", Bytes: s.Runs},
		{Name: "newest commits", Bytes: s.Commits},
		{Name: "received and not answered", Bytes: s.Received},
		{Name: "an answer of GraphQL", Bytes: s.Result},
	}
}

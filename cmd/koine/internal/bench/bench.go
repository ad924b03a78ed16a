package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/rdf"
	"koine/internal/social"
	"koine/kg"
)

// Command puts load on a running server and measures its throughput and latency.
type Command struct {
	Workload string `arg:"" optional:"" enum:"query,update,mixed,a2a,generate" default:"mixed" help:"Workload. query: one entity by GraphQL. update: 10 statements about a new subject. mixed: nine queries for each update. a2a: JSON-RPC, knowledge/query and messages. generate: no load, but test data: a social network as N-Quads on standard output, always the same."`
	URL      string `help:"Server to work on (default ${url}; for a2a, a temporary server with the demo graph)." placeholder:"URL" env:"KOINE_URL"`
	cli.CAFlag
	cli.CallerFlags
	Clients int           `short:"c" help:"Number of concurrent clients." default:"16"`
	Time    time.Duration `short:"t" help:"Duration of the measurement, including the reference server." default:"20s"`
	Rounds  int           `help:"Number of turns of the server and the reference server." default:"10"`
	Entity  []string      `help:"Entities to query (default: the first hundred of the server)." placeholder:"IRI"`
	Graph   string        `help:"Graph that updates write to." default:"urn:koine:bench" placeholder:"IRI"`
	JSON    bool          `help:"Print the result as JSON."`

	Statements int `help:"Number of statements to generate." default:"1000000"`

	own bool // the server was started for this benchmark
}

// Help is shown by --help.
func (Command) Help() string {
	return `The clients take turns between the server and a reference: a bare net/http server in this process, which decodes the same JSON and answers with as many bytes. Its rate is the best that this machine can do at the moment; the ratio of the two is more meaningful than either rate. The reference for updates does not write to disk.

a2a measures three operations one after the other: knowledge/query; SendMessage with the same query as a message to koine, which creates a task, waits for it and returns its artifact; and SendMessage to an agent behind the hub, which creates a task and does not wait.

Statements added to the graph of --graph are removed at the end, also after Ctrl-C, and so are the tasks and the agent of the benchmark. They remain in the history.

Examples:
  koine bench a2a
  koine bench generate --statements 10000000 | gzip > social.nq.gz
  koine bench query
  koine bench update --clients 128 --time 1m`
}

// Bounds of a benchmark.
const (
	maxBenchClients = 4096
	maxBenchTime    = time.Hour
)

// ServerStarter starts a server with the demo graph in a temporary directory. stop shuts it
// down and removes the directory.
type ServerStarter func(ctx context.Context) (url string, stop func() error, err error)

// Run measures and prints.
func (c *Command) Run(ctx context.Context, t cli.Terminal, start ServerStarter) (err error) {
	if c.Workload == "generate" {
		return c.writeSocialNetwork(ctx, t)
	}
	kinds := []string{c.Workload}
	if c.Workload == "a2a" {
		kinds = a2aKinds
	}
	each := c.Time / time.Duration(len(kinds))
	switch {
	case c.Clients < 1 || c.Clients > maxBenchClients:
		return cli.Usagef("--clients must be between 1 and %d", maxBenchClients)
	case c.Rounds < 1 || each < time.Duration(c.Rounds)*20*time.Millisecond || c.Time > maxBenchTime:
		return cli.Usagef("--time must allow 20ms for each round (a2a: three times that), and be at most %s", maxBenchTime)
	}
	if c.Workload == "a2a" && c.URL == "" {
		url, stop, err := start(ctx)
		if err != nil {
			return err
		}
		c.URL, c.own = url, true
		defer func() { err = errors.Join(err, stop()) }()
	}
	for _, kind := range kinds {
		if err := c.measureWorkload(ctx, t, kind, each); err != nil {
			return err
		}
	}
	return nil
}

// measureWorkload runs one workload against the server and its twin and prints the result.
func (c *Command) measureWorkload(ctx context.Context, t cli.Terminal, kind string, d time.Duration) error {
	load, err := c.newWorkload(ctx, kind)
	if err != nil {
		return err
	}
	defer load.close()
	defer c.cleanUp(context.WithoutCancel(ctx), t, load)
	size, err := load.answerBytes(ctx)
	if err != nil {
		return err
	}
	twin, err := startEcho(size)
	if err != nil {
		return err
	}
	defer twin.close()
	server, bare := c.measureInTurns(ctx, d, load, twin)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if server.Requests == 0 {
		return errors.Join(errors.New("no request succeeded"), server.firstError)
	}
	return c.printReport(t, kind, d, server, bare)
}

// cleanUp removes the statements and tasks that the benchmark added, also after an
// interrupt.
func (c *Command) cleanUp(ctx context.Context, t cli.Terminal, load *workload) {
	if c.own {
		return // the whole store is deleted
	}
	removed, err := load.cleanUp(ctx)
	if err != nil {
		t.Notef("Some statements could not be removed from %s: %v", c.Graph, err)
	} else if removed > 0 {
		t.Notef("Removed %s statements from %s.", cli.FormatCount(uint64(removed)), c.Graph)
	}
	deleted, err := load.deleteTasks(ctx, c.Clients)
	if err != nil {
		t.Notef("Some tasks could not be deleted: %v", err)
	} else if deleted > 0 {
		t.Notef("Deleted %s tasks.", cli.FormatCount(uint64(deleted)))
	}
}

// measureInTurns measures the server and the twin alternately, so that other load on the
// machine affects both.
func (c *Command) measureInTurns(ctx context.Context, d time.Duration, load *workload, twin *echo) (server, bare *measurement) {
	server, bare = &measurement{}, &measurement{}
	turn := d / time.Duration(2*c.Rounds)
	for range c.Rounds {
		server.mergeFrom(measureAction(ctx, c.Clients, turn, load.sendNext))
		bare.mergeFrom(measureAction(ctx, c.Clients, turn, func(ctx context.Context) error { return load.sendTo(ctx, twin.url, load.next()) }))
	}
	return server, bare
}

// benchResult is a measurement as it is printed.
type benchResult struct {
	Rate     float64 `json:"perSecond"`
	P50Ms    float64 `json:"p50Ms"`
	P99Ms    float64 `json:"p99Ms"`
	Requests int     `json:"requests"`
	Errors   int     `json:"errors"`
}

func (c *Command) printReport(t cli.Terminal, kind string, d time.Duration, server, bare *measurement) error {
	s, b := server.toResult(), bare.toResult()
	if c.JSON {
		return json.NewEncoder(t.Out).Encode(map[string]any{
			"workload": kind, "clients": c.Clients, "seconds": d.Seconds(), "server": s, "twin": b, "ratio": s.Rate / b.Rate,
		})
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s, %d clients\trequests/s\tp50\tp99\trequests\terrors\t\n", kind, c.Clients)
	for _, line := range []struct {
		name string
		r    benchResult
	}{{"koine", s}, {"bare net/http", b}} {
		fmt.Fprintf(w, "%s\t%s\t%.2f ms\t%.2f ms\t%s\t%s\t\n", line.name, cli.FormatCount(uint64(line.r.Rate)), line.r.P50Ms, line.r.P99Ms,
			cli.FormatCount(uint64(line.r.Requests)), cli.FormatCount(uint64(line.r.Errors)))
	}
	fmt.Fprintf(w, "ratio\t%.1f %%\t\t\t\t\t\n", 100*s.Rate/b.Rate)
	if err := w.Flush(); err != nil {
		return err
	}
	if server.firstError != nil {
		t.Notef("First error: %v", server.firstError)
	}
	return nil
}

// maxBenchStatements bounds --statements.
const maxBenchStatements = 1_000_000_000

// writeSocialNetwork writes a synthetic social network as N-Quads. Its content depends on
// --statements only.
func (c *Command) writeSocialNetwork(ctx context.Context, t cli.Terminal) error {
	if err := cli.CheckRange("statements", c.Statements, 1, maxBenchStatements); err != nil {
		return err
	}
	w := rdf.NewWriter(t.Out, rdf.NQuads, rdf.WriteOptions{})
	for q := range social.Statements(c.Statements, kg.DefaultGraph) {
		err := ctx.Err()
		if err == nil {
			err = w.Write(q)
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

package offline

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/internal/assertions"
	"koine/internal/provenance"
	"koine/internal/rdf"
	"koine/kg"
)

// ExportCommand writes the statements of a store as RDF.
type ExportCommand struct {
	cli.Target
	cli.PrefixFlags
	Output       string  `short:"o" help:"Write to this file instead of standard output. It is compressed if its name ends with .gz." placeholder:"FILE" type:"path"`
	Format       string  `help:"Output format: nquads, ntriples, trig, turtle or jsonld (default: by the name of the output file, else nquads)." placeholder:"FORMAT" completes:"nquads,ntriples,trig,turtle,jsonld"`
	Graph        string  `help:"Export only this graph; \"default\" is the default graph." placeholder:"IRI"`
	At           string  `help:"Export as of this revision or time (2026-01-31T12:00:00Z)." placeholder:"REVISION"`
	MinCertainty float64 `help:"Export only statements asserted with at least this certainty." placeholder:"0…1"`
	Assertions   bool    `help:"Describe the assertions of each statement as well: source, certainty, time and justification. koine load --assertions restores them."`
}

// Help is shown by --help.
func (ExportCommand) Help() string {
	return `Turtle and N-Triples cannot name graphs: without --graph they contain the statements of all graphs.

Plain RDF has neither certainties nor sources: loaded again, every statement is a fact asserted by the caller. --assertions adds both, with times and justifications, as reified statements (docs/reference/assertions.md). An export has no history and is not a backup (see koine backup).

With --data, the registered prefixes of the store apply; a --prefix is added for this export only.

Examples:
  koine export > everything.nq
  koine export --data ./koine-data -o graph.trig.gz
  koine export --assertions -o graph.trig
  koine export --graph https://example.org/team --format turtle`
}

// Run writes the export. An output file appears under its name when it is complete.
func (c *ExportCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	format, err := c.outputFormat()
	if err != nil {
		return err
	}
	offline, err := c.IsOffline(command)
	if err != nil {
		return err
	}
	registry, err := c.BuiltinPrefixes()
	if err != nil {
		return err
	}
	write := func(out io.Writer) error { return c.exportServer(ctx, out, format, registry) }
	if offline {
		quarantines := new(provenance.Quarantines)
		store, err := c.OpenToRead(log, kg.Options{Governor: kg.Governor{Distrust: quarantines}})
		if err != nil {
			return err
		}
		defer store.Close()
		if err := quarantines.Load(ctx, store); err != nil {
			return err
		}
		if registry, err = c.StorePrefixes(store); err != nil {
			return err
		}
		write = func(out io.Writer) error { return c.exportDirectory(ctx, store, out, format, registry) }
	}
	if c.Output == "" {
		return write(t.Out)
	}
	return c.toFile(write)
}

func (c *ExportCommand) outputFormat() (rdf.Format, error) {
	if c.Format != "" {
		f, ok := rdf.FormatByName(c.Format)
		if !ok || !f.IsWritten() {
			return 0, cli.NotOneOf("--format", c.Format, formatNames(rdf.Formats)...)
		}
		return f, nil
	}
	if f, ok := rdf.FormatByPath(c.Output); ok {
		if !f.IsWritten() {
			return 0, cli.Usagef("%s: %s cannot be written: use --format", c.Output, f)
		}
		return f, nil
	}
	return rdf.NQuads, nil
}

// formatNames returns the names of RDF formats.
func formatNames(formats []rdf.Format) (list []string) {
	for _, f := range formats {
		list = append(list, f.String())
	}
	return list
}

func (c *ExportCommand) toFile(write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(c.Output), ".koine-export-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if strings.HasSuffix(c.Output, ".gz") {
		z := gzip.NewWriter(f)
		err = errors.Join(write(z), z.Close())
	} else {
		err = write(f)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.Output)
}

// exportDirectory exports from a data directory.
func (c *ExportCommand) exportDirectory(ctx context.Context, store *kg.Store, out io.Writer, f rdf.Format, registry *kg.Prefixes) error {
	view, err := c.exportView(ctx, store, registry)
	if err != nil {
		return err
	}
	snapshot, err := store.View(ctx, view)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	quads, prefixes := rdf.Export(snapshot), registry.Fixed()
	if c.Assertions {
		quads, prefixes = assertions.Export(snapshot), assertions.WithPrefixes(prefixes)
	}
	w := rdf.NewWriter(out, f, rdf.WriteOptions{Prefixes: prefixes})
	some := false
	for q, err := range quads {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := w.Write(q); err != nil {
			return err
		}
		some = true
	}
	if !some && len(view.Graphs) == 1 && view.Graphs[0] != kg.DefaultGraph { // the server answers the same
		return kg.Errorf(kg.CodeGraphNotFound, "graph %s does not exist", view.Graphs[0].Name())
	}
	return w.Close()
}

func (c *ExportCommand) exportView(ctx context.Context, store *kg.Store, registry *kg.Prefixes) (kg.View, error) {
	v := kg.View{Principal: c.LocalPrincipal(), MinCertainty: c.MinCertainty}
	if c.Graph != "" {
		g, err := cli.ParseGraphName(registry, c.Graph)
		if err != nil {
			return v, err
		}
		v.Graphs = []kg.Term{g}
	}
	if err := v.Valid(); err != nil {
		return v, cli.AsUsage(err)
	}
	if c.At == "" {
		return v, nil
	}
	m, err := kg.ParseMoment(c.At)
	if err != nil {
		return v, cli.Usagef("--at: %w", err)
	}
	v.At, err = store.ReadableAt(ctx, m)
	return v, err
}

// exportServer exports from a server.
func (c *ExportCommand) exportServer(ctx context.Context, out io.Writer, f rdf.Format, registry *kg.Prefixes) error {
	query := url.Values{}
	if c.Graph != "" {
		query.Set("graph", expandPrefix(registry, c.Graph))
	}
	if c.At != "" {
		query.Set("at", c.At)
	}
	if c.MinCertainty != 0 {
		query.Set("minCertainty", strconv.FormatFloat(c.MinCertainty, 'g', -1, 64))
	}
	if c.Assertions {
		query.Set("assertions", "rdf")
	}
	server, err := c.ServerFlags().OpenUnbounded(ctx)
	if err != nil {
		return err
	}
	in, err := downloadData(ctx, server, query, f)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("the export was interrupted: %w", err)
	}
	return nil
}

// downloadData requests statements from a server and returns the decompressed document.
// The caller must close it.
func downloadData(ctx context.Context, server *client.Client, query url.Values, f rdf.Format) (io.ReadCloser, error) {
	header := http.Header{"Accept": {f.MediaType()}, "Accept-Encoding": {"gzip"}}
	response, err := server.Do(ctx, http.MethodGet, "/data?"+query.Encode(), header, nil)
	if err != nil {
		return nil, err
	}
	if response.Header.Get("Content-Encoding") != "gzip" {
		return response.Body, nil
	}
	text, err := gzip.NewReader(response.Body)
	if err != nil {
		response.Body.Close()
		return nil, cli.InvalidResponse(err)
	}
	return struct {
		io.Reader
		io.Closer
	}{text, response.Body}, nil
}

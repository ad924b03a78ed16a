package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/internal/rdf"
	"koine/kg"
)

// replaceJob replaces the content of a graph by the statements of files.
type replaceJob struct {
	c       *LoadCommand
	t       cli.Terminal
	graph   kg.Term
	sources []*source
	quads   uint64                 // in all files
	reading atomic.Pointer[source] // the file being read, or nil
}

// replaceIn replaces a graph of a data directory. It checks all files before it writes.
func (c *LoadCommand) replaceIn(ctx context.Context, t cli.Terminal, store *kg.Store, graph kg.Term, sources []*source) error {
	r := &replaceJob{c: c, t: t, graph: graph, sources: sources}
	if err := r.checkSources(ctx); err != nil {
		return err
	}
	began := time.Now()
	meta := kg.Meta{Principal: c.LocalPrincipal(), Justification: r.expandWhy()}
	report, err := store.ReplaceGraph(ctx, meta, graph, r.allQuads(ctx), kg.ReplaceOptions{Progress: r.setWritten})
	r.endProgress()
	if err != nil {
		return cli.InterruptedWith(err, "before the graph was replaced; the graph is unchanged")
	}
	r.printSummary(report.Added, report.Removed, report.Revision, time.Since(began))
	return nil
}

// replaceOn replaces a graph on a server in one request: a single file unchanged, several as
// one document.
func (c *LoadCommand) replaceOn(ctx context.Context, t cli.Terminal, server *client.Client, query url.Values, sources []*source) error {
	r := &replaceJob{c: c, t: t, graph: kg.DefaultGraph, sources: sources}
	query.Set("justification", r.expandWhy())
	if len(sources) == 1 {
		return c.sendFile(ctx, t, server, http.MethodPut, sources[0], query)
	}
	if err := r.checkSources(ctx); err != nil {
		return err
	}
	body, out := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		out.CloseWithError(r.writeQuads(ctx, out))
	}()
	header := http.Header{"Content-Type": {rdf.NQuads.MediaType()}, "Content-Encoding": {"gzip"}}
	began := time.Now()
	response, err := server.Do(ctx, http.MethodPut, "/data?"+query.Encode(), header, body)
	body.Close()
	<-written
	if err != nil {
		return err
	}
	report, err := readReport(response)
	if err != nil {
		return err
	}
	report.printReport(t)
	r.printSummary(report.Statements, report.Removed, report.Revision, time.Since(began))
	return nil
}

// checkSources reads all files, so that an error in the last one leaves the graph unchanged.
func (r *replaceJob) checkSources(ctx context.Context) error {
	for _, s := range r.sources {
		if err := r.c.checkSource(ctx, r.t, s, r.graph, nil, nil); err != nil {
			return err
		}
		r.quads += s.summary.Quads
	}
	return nil
}

// allQuads yields the statements of the files, one file after the other.
func (r *replaceJob) allQuads(ctx context.Context) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		defer r.endProgress()
		for _, s := range r.sources {
			in, err := s.open(r.t, "reading "+s.name)
			if err != nil {
				yield(kg.Quad{}, err)
				return
			}
			r.reading.Store(s)
			for q, err := range rdf.ReadContext(ctx, in, s.format, s.options) {
				if !yield(q, err) || err != nil {
					return
				}
			}
			r.endProgress()
		}
	}
}

// writeQuads writes the statements as one compressed document.
func (r *replaceJob) writeQuads(ctx context.Context, w io.Writer) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := rdf.NewWriter(z, rdf.NQuads, rdf.WriteOptions{})
	for q, err := range r.allQuads(ctx) {
		if err == nil {
			err = out.Write(q)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), z.Close())
}

// setWritten reports the number of statements written.
func (r *replaceJob) setWritten(n uint64) {
	if s := r.reading.Load(); s != nil {
		s.progress.setStatements(n)
	}
}

// endProgress ends the progress of the current file.
func (r *replaceJob) endProgress() {
	if s := r.reading.Swap(nil); s != nil {
		s.progress.finish()
	}
}

// expandWhy returns the justification of the commit.
func (r *replaceJob) expandWhy() string {
	var names []string
	for _, s := range r.sources {
		names = append(names, s.name)
	}
	return strings.ReplaceAll(r.c.Why, "{file}", strings.Join(names, ", "))
}

func (r *replaceJob) printSummary(added, removed uint64, revision kg.Revision, took time.Duration) {
	r.t.Notef("%s", replacedText(r.quads, added, removed, revision, took))
}

func replacedText(quads, added, removed uint64, revision kg.Revision, took time.Duration) string {
	return fmt.Sprintf("replaced: %s statements in the files, %s added, %s removed; revision %d; %s", cli.FormatCount(quads), cli.FormatCount(added), cli.FormatCount(removed), revision, took.Round(time.Millisecond))
}

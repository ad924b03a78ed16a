package offline

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"koine/cmd/koine/internal/cli"
	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/kg"
)

// diffSource is one side of a comparison: a data directory, a server or a file. The caller
// must close it after reading its statements.
type diffSource struct {
	command *DiffCommand
	log     *slog.Logger
	name    string
	at      string    // a revision or a time; "" is the newest
	store   *kg.Store // the open store if the source is a data directory
	closers []func() error
}

func (s *diffSource) close() {
	for _, c := range s.closers {
		_ = c() // the source is read-only
	}
	s.closers = nil
}

// isStore reports whether the source is a data directory.
func (s *diffSource) isStore() bool {
	info, err := os.Stat(s.name)
	return err == nil && info.IsDir()
}

func (s *diffSource) isServer() bool {
	return strings.HasPrefix(s.name, "http://") || strings.HasPrefix(s.name, "https://")
}

// readStatements returns the statements of the source.
func (s *diffSource) readStatements(ctx context.Context) (iter.Seq2[assertions.Statement, error], error) {
	switch {
	case s.isServer():
		return s.ofServer(ctx)
	case s.isStore():
		snapshot, err := s.openSnapshot(ctx, s.at)
		if err != nil {
			return nil, err
		}
		return assertions.Statements(snapshot), nil
	}
	return s.ofFile(ctx)
}

// openSnapshot opens a snapshot of a data directory at a revision or time. It includes the
// assertions of quarantined agents.
func (s *diffSource) openSnapshot(ctx context.Context, at string) (*kg.Snapshot, error) {
	t := cli.Target{Data: s.name, CallerFlags: s.command.CallerFlags}
	store, err := t.OpenToRead(s.log, kg.Options{})
	if err != nil {
		return nil, err
	}
	s.store = store
	s.closers = append(s.closers, store.Close)
	view := kg.View{Principal: t.LocalPrincipal()}
	if s.command.Graph != "" {
		g, err := cli.ParseGraphName(store.Prefixes(), s.command.Graph)
		if err != nil {
			return nil, err
		}
		view.Graphs = []kg.Term{g}
	}
	if view.At, err = revisionOf(ctx, store, at); err != nil {
		return nil, err
	}
	snapshot, err := store.View(ctx, view)
	if err != nil {
		return nil, err
	}
	s.closers = append([]func() error{func() error { snapshot.Close(); return nil }}, s.closers...)
	return snapshot, nil
}

// revisionOf parses a revision or time, 0 for the newest.
func revisionOf(ctx context.Context, store *kg.Store, text string) (kg.Revision, error) {
	if text == "" {
		return 0, nil
	}
	m, err := kg.ParseMoment(text)
	if err != nil {
		return 0, cli.AsUsage(err)
	}
	return store.ReadableAt(ctx, m)
}

// diffRevisions returns the statements that differ between two revisions of a data
// directory, before and after. Its cost is proportional to the changes between them.
func (s *diffSource) diffRevisions(ctx context.Context, to string) (before, after iter.Seq2[assertions.Statement, error], err error) {
	snapshot, err := s.openSnapshot(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	var from kg.Revision // 0 is the empty store
	if s.at != "0" {
		if from, err = revisionOf(ctx, s.store, s.at); err != nil {
			return nil, nil, err
		}
	}
	explain := assertions.Explain(snapshot)
	before, after = splitSides(snapshot.Diff(from, kg.IDPattern{}, nil), func(v kg.Version) (assertions.Statement, error) {
		st, err := snapshot.Statement(v.Row)
		if err != nil {
			return assertions.Statement{}, err
		}
		return explain(st)
	})
	return before, after, nil
}

func (s *diffSource) ofServer(ctx context.Context) (iter.Seq2[assertions.Statement, error], error) {
	query := url.Values{}
	if !s.command.NoAssertions {
		query.Set("assertions", "rdf")
	}
	if s.command.Graph != "" {
		query.Set("graph", s.command.Graph)
	}
	if s.at != "" {
		query.Set("at", s.at)
	}
	on := &cli.ServerFlags{URL: s.name, CAFlag: s.command.CAFlag, CallerFlags: s.command.CallerFlags}
	server, err := on.OpenUnbounded(ctx)
	if err != nil {
		return nil, err
	}
	in, err := downloadData(ctx, server, query, rdf.NQuads)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, in.Close)
	return s.ofDocument(ctx, in, rdf.NQuads)
}

func (s *diffSource) ofFile(ctx context.Context) (iter.Seq2[assertions.Statement, error], error) {
	f, known := rdf.FormatByPath(s.name)
	if !known {
		return nil, errNoSource(s.name)
	}
	if s.at != "" {
		return nil, cli.Usagef("%s is a file, which has no revisions", s.name)
	}
	file, err := os.Open(s.name)
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	s.closers = append(s.closers, file.Close)
	in, err := rdf.Decompress(file)
	if err != nil {
		return nil, err
	}
	return s.ofDocument(ctx, in, f)
}

// documentTag is the prefix of blank node labels in all compared documents, so that equal
// labels stay equal.
const documentTag = "n"

func (s *diffSource) ofDocument(ctx context.Context, in io.Reader, f rdf.Format) (iter.Seq2[assertions.Statement, error], error) {
	quads := rdf.ReadContext(ctx, in, f, rdf.Options{Name: s.name, Tag: documentTag, JSONLD: s.command.reading, LiteralBytes: kg.MaxLiteralBytes})
	if s.command.NoAssertions && s.isServer() {
		return plainStatements(quads), nil
	}
	document := assertions.NewDocument(ctx, assertions.DocumentOptions{HasGraphs: f.HasGraphs()})
	s.closers = append(s.closers, document.Close)
	if err := document.AddAll(quads); err != nil {
		return nil, err
	}
	statements := document.Statements()
	if s.isServer() || s.command.Graph == "" {
		return statements, nil
	}
	registry, err := cli.NewPrefixes(nil)
	if err != nil {
		return nil, err
	}
	graph, err := cli.ParseGraphName(registry, s.command.Graph)
	return onlyGraph(statements, graph), err
}

func onlyGraph(statements iter.Seq2[assertions.Statement, error], graph kg.Term) iter.Seq2[assertions.Statement, error] {
	return func(yield func(assertions.Statement, error) bool) {
		for st, err := range statements {
			if err == nil && st.Graph != graph {
				continue
			}
			if !yield(st, err) {
				return
			}
		}
	}
}

func plainStatements(quads iter.Seq2[kg.Quad, error]) iter.Seq2[assertions.Statement, error] {
	return func(yield func(assertions.Statement, error) bool) {
		for q, err := range quads {
			if !yield(assertions.Statement{Quad: q}, err) {
				return
			}
		}
	}
}

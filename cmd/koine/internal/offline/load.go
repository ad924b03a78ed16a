package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/cli"
	"koine/internal/names"
	"koine/internal/rdf"
	"koine/internal/shapes"
	"koine/kg"
)

// LoadCommand loads RDF files into a data directory or through a server.
type LoadCommand struct {
	Files []string `arg:"" name:"file" help:"RDF files, optionally compressed with gzip; - reads standard input." type:"path"`
	cli.Target
	cli.PrefixFlags
	cli.ReserveFlag
	cli.LiteralFlag
	cli.JSONLDFlags
	Base            string `help:"Base IRI for relative IRIs (default: the file: IRI of each file; for standard input none, and on a server the IRI of the graph or the server's address)." placeholder:"IRI"`
	FixIRIs         bool   `name:"fix-iris" help:"Percent-encode characters that IRIs must not contain (RFC 3987) instead of refusing the file."`
	Graph           string `help:"Graph for statements without one; \"default\" is the default graph." placeholder:"IRI"`
	Replace         string `help:"Replace the content of this graph by the statements of all files together; \"default\" is the default graph." placeholder:"IRI"`
	Format          string `help:"Format of the files, if their names do not tell: nquads, ntriples, trig, turtle, jsonld, rdfxml." placeholder:"FORMAT" completes:"nquads,ntriples,trig,turtle,jsonld,rdfxml"`
	ContinueOnError bool   `help:"Skip invalid lines (N-Quads, N-Triples) and statements that cannot be stored (JSON-LD), and report their number. Any other error aborts the file."`
	Resume          bool   `help:"Resume an interrupted load of the same files (with --data)."`
	Assertions      bool   `help:"Restore the assertions described in the files (koine export --assertions): sources, certainties, times and justifications. Requires an administrator."`
	KeepPrefixes    bool   `help:"Register the prefixes that the files declare (Turtle, TriG, JSON-LD) with the store, unless they have another meaning there."`
	Why             string `help:"Justification for the history. {file} is replaced by the name of the file, or of the first file and the number of others." default:"Load of {file}" placeholder:"TEXT"`

	reading rdf.JSONLDOptions // from jsonldFlags
}

// Help is shown by --help.
func (LoadCommand) Help() string {
	return `All files are one load. Each file is checked before anything is written, so an invalid line, reported with its file and number, leaves nothing of the files in the store (on a server: nothing of its file). Blank nodes are scoped to their file; loading a file again adds nothing.

With --data, shapes do not check the load; koine shapes check finds violations afterwards. A server refuses statements that violate its shapes.

With --data, a load that was interrupted by Ctrl-C, a full disk or a crash resumes with --resume and the same files in the same order.

--replace changes a graph of any size in one commit: readers see the graph before it or after it. Statements that remain keep their sources and their history. An empty file empties the graph.

Plain RDF has neither certainties nor sources: every statement becomes a fact asserted by the caller (--as). An export with --assertions has both, and load --assertions restores them. To back up or move a store with its history, use koine backup and koine restore.

With --data, a --prefix is registered with the store, so the next server knows it. A running server has its own prefixes: with --url, --prefix applies to --graph only. Prefixes declared in a file are registered only with --keep-prefixes. Names with neither a registered prefix nor a known URI scheme are loaded, and reported with their number.

Examples:
  koine load --data ./koine-data movies.nq.gz
  koine load --data ./koine-data --prefix ex=https://example.org/ --graph ex:team team.ttl
  koine load --url http://127.0.0.1:8080 team.ttl --graph https://example.org/team
  koine load --replace https://example.org/team team.ttl more.ttl
  curl -s https://example.org/x.trig | koine load --format trig -`
}

// Run loads the files as one load.
func (c *LoadCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	offline, err := c.IsOffline(command)
	if err != nil {
		return err
	}
	if c.Replace != "" {
		if c.Resume {
			return cli.Usagef("--resume cannot be combined with --replace, which is a single commit")
		}
		if c.Graph != "" {
			return cli.Usagef("--replace and --graph are mutually exclusive: --replace names the graph")
		}
		c.Graph = c.Replace
	}
	if c.Assertions && (c.Resume || c.Replace != "") {
		return cli.Usagef("--assertions cannot be combined with --resume and --replace: loading the file again adds what is missing")
	}
	if c.reading, err = c.JSONLDOptions(); err != nil {
		return err
	}
	if err := c.LiteralFlag.CheckMaxLiteral(); err != nil {
		return err
	}
	sources, err := c.openSources(t)
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	if err != nil {
		return err
	}
	if !offline {
		if c.Resume {
			return cli.Usagef("--resume requires --data: a server loads each file in one request; send the unanswered ones again")
		}
		return c.uploadFiles(ctx, t, sources)
	}
	if _, err := c.resolveGraph(c.BuiltinPrefixes()); err != nil { // fails before a directory is created
		return err
	}
	store, err := c.OpenOrCreate(log, kg.Options{ReserveBytes: c.ReserveFlag.ReserveBytes(), LiteralBytes: c.MaxLiteral})
	if err != nil {
		return err
	}
	graph, err := c.resolveGraph(c.RegisterNew(ctx, store, nil))
	switch {
	case err != nil:
	case c.Replace != "":
		err = c.replaceIn(ctx, t, store, graph, sources)
	default:
		err = (&loadJob{c: c, t: t, store: store, sources: sources, graph: graph, work: newLoadProgress(sources)}).run(ctx)
	}
	if err == nil {
		err = warnUnjudged(ctx, t, store, c.Data)
	}
	return errors.Join(err, store.Close())
}

// warnUnjudged reports that the shapes of a data directory did not validate a load into it:
// with write access to the directory, the shapes could be changed as well.
func warnUnjudged(ctx context.Context, t cli.Terminal, store *kg.Store, dir string) error {
	var set shapes.Set
	if err := set.Load(ctx, store); err != nil || set.Idle() {
		return err
	}
	t.Notef("the load was not checked against the shapes of this store; run koine shapes check --data %s to find violations", dir)
	return nil
}

func (c *LoadCommand) resolveGraph(registry *kg.Prefixes, err error) (kg.Term, error) {
	if err != nil || c.Graph == "" {
		return kg.DefaultGraph, err
	}
	return cli.ParseGraphName(registry, c.Graph)
}

// readOptions returns the parser options for a file.
func (c *LoadCommand) readOptions(s *source) rdf.Options {
	return rdf.Options{Name: s.name, Base: s.base, FixIRIs: c.FixIRIs, ContinueOnError: c.ContinueOnError, JSONLD: c.reading, LiteralBytes: c.MaxLiteral}
}

// registerDeclaredPrefixes registers the prefixes that a file declares, except for names
// that are invalid in a store or already have another meaning.
func registerDeclaredPrefixes(t cli.Terminal, file string, declared, kept map[string]string, register func(map[string]string) error) {
	keep := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		namespace := declared[name]
		before, known := names.Meaning(kept, name)
		_, err := kg.NewPrefixes(map[string]string{name: namespace})
		switch {
		case known && before == namespace || name == "":
		case known:
			t.Notef("%s: prefix %s is not registered: in this store, it is %s", file, name, before)
		case err != nil:
			t.Notef("%s: prefix %s is not registered: %v", file, name, err)
		default:
			keep[name] = namespace
		}
	}
	if len(keep) == 0 {
		return
	}
	if err := register(keep); err != nil {
		t.Notef("%s: its prefixes are not registered: %v", file, err)
	}
}

// warnUnknown reports the unregistered prefixes in the names of a file.
func warnUnknown(t cli.Terminal, file string, unknown []names.Unknown) {
	for _, u := range unknown {
		meant := ""
		if len(u.Nearest) > 0 {
			meant = "; did you mean " + strings.Join(u.Nearest, " or ") + "?"
		}
		t.Notef("%s: %s names begin with %s:, which is neither a registered prefix nor a known URI scheme, as in %s%s", file, cli.FormatCount(u.Count), u.Prefix, u.Example, meant)
	}
}

// maxRejectedShown bounds the skipped lines that are reported one by one.
const maxRejectedShown = 20

func printLoaded(t cli.Terminal, name string, s rdf.Summary, statements uint64, revision kg.Revision, took time.Duration) {
	skipped := ""
	if s.Rejected > 0 {
		skipped = fmt.Sprintf(", %s lines skipped", cli.FormatCount(s.Rejected))
	}
	at := ""
	if revision > 0 { // 0: the server answered a document without statements
		at = fmt.Sprintf("; revision %d", revision)
	}
	t.Notef("%s: %s statements, %s of them new%s%s; %s, %s statements/s", name, cli.FormatCount(s.Quads), cli.FormatCount(statements),
		skipped, at, took.Round(time.Millisecond), cli.FormatCount(uint64(float64(s.Quads)/max(took.Seconds(), 1e-3))))
}

// source is a file to load. Standard input is copied into a temporary file, because a
// document is read twice.
type source struct {
	name     string // for messages
	path     string
	format   rdf.Format
	base     string // base IRI of relative IRIs
	size     int64
	file     *os.File
	progress *progress
	remove   bool

	options rdf.Options
	summary rdf.Summary
	before  uint64 // quads of the files before it
	work    *fileProgress
}

func (c *LoadCommand) openSources(t cli.Terminal) (out []*source, err error) {
	for _, path := range c.Files {
		s := &source{name: filepath.Base(path), path: path, base: c.Base}
		if filepath.Base(path) == "-" {
			s.name = "standard input"
			if s.path, err = copyToTemp(t.In); err != nil {
				return out, err
			}
			s.remove = true
		} else if s.base == "" {
			if s.base, err = fileIRI(path); err != nil {
				return out, err
			}
		}
		out = append(out, s)
		if s.format, err = c.detectFormat(path); err != nil {
			return out, err
		}
		info, err := os.Stat(s.path)
		if err != nil {
			return out, cli.Usagef("cannot read %s: %w", s.path, errors.Unwrap(err))
		}
		if info.Size() == 0 && strings.HasSuffix(path, ".gz") {
			return out, kg.Errorf(kg.CodeInvalid, "%s is empty, which is not a gzip file; a compressed empty document has 20 bytes", path)
		}
		if info.IsDir() {
			return out, cli.Usagef("%s is a directory: pass the files in it", s.path)
		}
		s.size = info.Size()
	}
	return out, nil
}

// fileIRI returns the file: IRI of a path (RFC 8089).
func fileIRI(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String(), nil
}

func (c *LoadCommand) detectFormat(path string) (rdf.Format, error) {
	if c.Format != "" {
		f, ok := rdf.FormatByName(c.Format)
		if !ok {
			return 0, cli.NotOneOf("--format", c.Format, formatNames(rdf.ReadFormats)...)
		}
		return f, nil
	}
	f, ok := rdf.FormatByPath(path)
	if !ok {
		return 0, cli.Usagef("%s: the format is not known from the name (.nq, .nt, .trig, .ttl, .jsonld, .rdf, .owl, .xml, each also with .gz); use --format", path)
	}
	return f, nil
}

// copyToTemp copies an input into a temporary file and returns its path.
func copyToTemp(in io.Reader) (path string, err error) {
	f, err := os.CreateTemp("", "koine-load-*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, in)
	return f.Name(), errors.Join(err, f.Close())
}

// open opens the decompressed text from its beginning; label names its progress.
func (s *source) open(t cli.Terminal, label string) (io.Reader, error) {
	in, err := s.openRaw(t, label)
	if err != nil {
		return nil, err
	}
	return rdf.Decompress(in)
}

// openRaw opens the file without decompression.
func (s *source) openRaw(t cli.Terminal, label string) (io.Reader, error) {
	s.closeFile()
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	s.file, s.progress = f, newPart(t, label, f, s.size, s.work)
	return s.progress, nil
}

// checkSource reads a source from end to end and reports skipped lines and dropped entries.
// It calls prefix, if set, for each declared prefix and seen for each statement, and sets
// the source's options and summary.
func (c *LoadCommand) checkSource(ctx context.Context, t cli.Terminal, s *source, graph kg.Term, prefix func(name, namespace string), seen func(*kg.Quad)) error {
	s.options = c.readOptions(s)
	s.options.Graph = graph
	checking := s.options
	reported := 0
	checking.Rejected = func(e *rdf.SyntaxError) {
		if reported++; reported <= maxRejectedShown {
			t.Notef("skipped: %v", e)
		}
	}
	left := droppedEntries{}
	checking.JSONLD.Dropped = left.recordDropped
	checking.Prefix = prefix
	summary, err := s.survey(ctx, t, checking, seen)
	if err != nil {
		return err
	}
	left.printSummary(t, s.name)
	s.summary, s.options.Tag = summary, summary.Tag
	return nil
}

func (s *source) survey(ctx context.Context, t cli.Terminal, o rdf.Options, seen func(*kg.Quad)) (rdf.Summary, error) {
	in, err := s.open(t, "checking "+s.name)
	if err != nil {
		return rdf.Summary{}, err
	}
	defer s.progress.finish()
	summary, err := rdf.SurveyContext(ctx, in, s.format, o, seen)
	var placed *rdf.SyntaxError
	if err != nil && ctx.Err() == nil && !errors.As(err, &placed) {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	return summary, err
}

func (s *source) closeFile() {
	if s.file != nil {
		s.file.Close()
	}
	s.file = nil
}

func (s *source) close() {
	s.closeFile()
	if s.remove {
		os.Remove(s.path)
	}
}

// droppedEntries counts the entries of a JSON-LD document that stand for no statement.
type droppedEntries struct {
	entries uint64
	first   string
}

func (l *droppedEntries) recordDropped(e *rdf.SyntaxError) {
	if l.entries++; l.entries == 1 {
		l.first = e.Error()
	}
}

func (l *droppedEntries) printSummary(t cli.Terminal, file string) {
	if l.entries > 0 {
		t.Notef("%s: %s entries without a meaning were ignored, the first: %s", file, cli.FormatCount(l.entries), l.first)
	}
}

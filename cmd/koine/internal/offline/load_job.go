package offline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/assertions"
	"koine/internal/names"
	"koine/internal/rdf"
	"koine/kg"
)

// loadJob loads several files into a data directory.
type loadJob struct {
	c       *LoadCommand
	t       cli.Terminal
	store   *kg.Store
	sources []*source
	graph   kg.Term
	work    *loadProgress

	quads uint64 // in all files
	from  uint64 // quads that an interrupted load has committed
}

func (l *loadJob) run(ctx context.Context) error {
	var unknown [][]names.Unknown
	var declared []map[string]string
	for _, s := range l.sources {
		u, d, err := l.checkFile(ctx, s)
		if err != nil {
			return cli.InterruptedWith(err, "while "+s.name+" was checked; nothing was written")
		}
		unknown, declared = append(unknown, u), append(declared, d)
	}
	session := l.sessionID()
	if l.c.Resume {
		if whole, err := l.findResumePoint(ctx, session); whole || err != nil {
			return err
		}
	}
	if l.c.KeepPrefixes {
		for i, s := range l.sources {
			l.keepPrefixes(ctx, s, declared[i])
		}
	}
	load := func() error { return l.loadStatements(ctx, session) }
	if l.c.Assertions {
		load = func() error { return l.restoreAll(ctx) }
	}
	if err := load(); err != nil {
		return err
	}
	for i, s := range l.sources {
		warnUnknown(l.t, s.name, unknown[i])
	}
	return nil
}

// checkFile reads a file from end to end. It returns the unknown names and the declared
// prefixes.
func (l *loadJob) checkFile(ctx context.Context, s *source) ([]names.Unknown, map[string]string, error) {
	declared := map[string]string{}
	census := names.NewCensus(l.store)
	s.work = l.work.startCheck(s)
	err := l.c.checkSource(ctx, l.t, s, l.graph, func(name, namespace string) { declared[name] = namespace }, census.Add)
	if err != nil {
		return nil, nil, err
	}
	s.before = l.quads
	l.quads += s.summary.Quads
	return census.Unknown(), declared, nil
}

func (l *loadJob) keepPrefixes(ctx context.Context, s *source, declared map[string]string) {
	meta := kg.Meta{Principal: l.c.LocalPrincipal(), Justification: "Register the prefixes of " + s.name}
	registerDeclaredPrefixes(l.t, s.name, declared, l.store.KeptPrefixes(), func(prefixes map[string]string) error {
		_, err := names.Register(ctx, l.store, meta, prefixes, false)
		return err
	})
}

// sessionID identifies the load in its commits (kg.Meta.SessionID). It is a hash of the
// files, their order, the options and the base IRIs, so that --resume finds the same load
// again.
func (l *loadJob) sessionID() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %t %q %t\n", l.graph, l.c.ContinueOnError, l.c.Format, l.c.FixIRIs)
	for _, s := range l.sources {
		base := s.base
		if s.format == rdf.NQuads || s.format == rdf.NTriples { // no relative IRIs
			base = ""
		}
		fmt.Fprintf(sum, "%s %s %d %q\n", s.summary.Tag, s.format, s.summary.Quads, base)
	}
	fmt.Fprintln(sum, l.c.reading.Contexts.Digest())
	return "koine load " + hex.EncodeToString(sum.Sum(nil)[:16])
}

// findResumePoint finds the end of an interrupted load of the same files. It reports whole
// if nothing remains to load.
func (l *loadJob) findResumePoint(ctx context.Context, session string) (whole bool, err error) {
	place, at, err := l.store.LoadedUpTo(ctx, l.c.LocalPrincipal().ID, session)
	if err != nil {
		return false, err
	}
	if place == "" {
		return false, cli.Usagef("--resume: no interrupted load of these files, in this order, from the same place and with these options, exists: load them without --resume")
	}
	if l.from, err = strconv.ParseUint(place, 10, 64); err != nil || l.from > l.quads {
		return false, fmt.Errorf("--resume: commit %d has an invalid load position %q", at, place)
	}
	if l.from == l.quads {
		l.t.Notef("nothing to resume: all %s statements are loaded, at revision %d", cli.FormatCount(l.quads), at)
		return true, nil
	}
	l.t.Notef("resuming %s, after revision %d", l.statementPosition(l.from), at)
	return false, nil
}

// statementPosition describes the statement after the first n quads, for messages.
func (l *loadJob) statementPosition(quads uint64) string {
	for _, s := range l.sources {
		if quads < s.before+s.summary.Quads {
			return fmt.Sprintf("at statement %s of %s in %s", cli.FormatCount(quads-s.before+1), cli.FormatCount(s.summary.Quads), s.name)
		}
	}
	return "at the end"
}

func (l *loadJob) loadStatements(ctx context.Context, session string) error {
	meta := kg.Meta{Principal: l.c.LocalPrincipal(), Justification: expandWhy(l.c.Why, l.displayName()), SessionID: session}
	began := time.Now()
	report, err := l.store.Load(ctx, meta, l.unloadedQuads(ctx), kg.LoadOptions{
		Place:    l.formatPosition,
		Progress: l.work.statements.Store,
		Indexing: l.work.indexReporter(l.t),
	})
	for _, s := range l.sources {
		s.closeFile()
	}
	l.work.finish()
	if err != nil {
		return l.interruptedError(err, report)
	}
	all := rdf.Summary{}
	for _, s := range l.sources {
		all.Quads += s.summary.Quads
		all.Rejected += s.summary.Rejected
		if len(l.sources) > 1 {
			l.t.Notef("%s: %s statements", s.name, cli.FormatCount(s.summary.Quads))
		}
	}
	all.Quads -= l.from
	printLoaded(l.t, l.displayName(), all, report.Statements, report.Revision, time.Since(began))
	return nil
}

// formatPosition encodes the progress of the load for its commits; findResumePoint reads it.
func (l *loadJob) formatPosition(loaded uint64) string { return strconv.FormatUint(l.from+loaded, 10) }

// displayName returns the name of the file, or of the first file and the number of files.
func (l *loadJob) displayName() string {
	if n := len(l.sources) - 1; n > 0 {
		return fmt.Sprintf("%s and %d more", l.sources[0].name, n)
	}
	return l.sources[0].name
}

// interruptedError adds to err how far the load came.
func (l *loadJob) interruptedError(err error, report kg.LoadReport) error {
	if report.Commits == 0 {
		if l.from > 0 {
			return cli.InterruptedWith(err, fmt.Sprintf("%s, where it began: use --resume to continue", l.statementPosition(l.from)))
		}
		return cli.InterruptedWith(err, "before anything was written")
	}
	in := l.from + report.Read
	progress := fmt.Sprintf("%s: the %s before it are stored, at revision %d; run the same command with --resume to continue", l.statementPosition(in), cli.FormatCount(in), report.Revision)
	if errors.Is(err, context.Canceled) {
		return cli.InterruptedWith(err, progress)
	}
	return fmt.Errorf("%w\nstopped %s", err, progress)
}

// unloadedQuads yields the statements of the files that are not in the store yet.
func (l *loadJob) unloadedQuads(ctx context.Context) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for _, s := range l.sources {
			s.work = l.work.startLoad(s)
			if l.from >= s.before+s.summary.Quads {
				s.work.markDone()
				continue
			}
			in, err := s.open(l.t, "loading "+s.name)
			if err != nil {
				yield(kg.Quad{}, err)
				return
			}
			known := l.from - min(l.from, s.before)
			for q, err := range rdf.ReadContext(ctx, in, s.format, s.options) {
				if err == nil && known > 0 {
					known--
					continue
				}
				if !yield(q, err) || err != nil {
					s.progress.finish()
					return
				}
			}
			s.progress.finish()
		}
	}
}

// expandWhy replaces {file} in the justification by the name.
func expandWhy(why, name string) string { return strings.ReplaceAll(why, "{file}", name) }

// restoreAll loads the statements of the files with the assertions that the files describe,
// one file after the other.
func (l *loadJob) restoreAll(ctx context.Context) error {
	for _, s := range l.sources {
		s.work = l.work.startLoad(s)
		if err := l.restoreFile(ctx, s); err != nil {
			return err
		}
	}
	l.work.finish()
	return nil
}

func (l *loadJob) restoreFile(ctx context.Context, s *source) (err error) {
	document := assertions.NewDocument(ctx, assertions.DocumentOptions{HasGraphs: s.format.HasGraphs(), Dir: l.c.Data})
	defer func() { err = errors.Join(err, document.Close()) }()
	began := time.Now()
	in, err := s.open(l.t, "loading "+s.name)
	if err != nil {
		return err
	}
	defer s.closeFile()
	err = document.AddAll(rdf.ReadContext(ctx, in, s.format, s.options))
	s.progress.finish()
	if err != nil {
		return cli.InterruptedWith(err, fmt.Sprintf("while %s was read; nothing of it was written", s.name))
	}
	meta := kg.Meta{Principal: l.c.LocalPrincipal(), Justification: expandWhy(l.c.Why, s.name)}
	report, err := assertions.Restore(ctx, l.store, meta, document.Statements(), assertions.RestoreOptions{Dir: l.c.Data})
	if err != nil {
		progress := fmt.Sprintf("%s assertions before it are stored; loading the file again adds the rest", cli.FormatCount(report.Changed))
		if errors.Is(err, context.Canceled) {
			return cli.InterruptedWith(err, fmt.Sprintf("in %s: %s", s.name, progress))
		}
		if report.Changed > 0 {
			return fmt.Errorf("%w\n%s", err, progress)
		}
		return err
	}
	printRestored(l.t, s.name, s.summary.Rejected, report, document.Unasserted(), time.Since(began))
	return nil
}

func printRestored(t cli.Terminal, name string, rejected uint64, r assertions.RestoreReport, unasserted uint64, took time.Duration) {
	skipped := ""
	if rejected > 0 {
		skipped = fmt.Sprintf(", %s lines skipped", cli.FormatCount(rejected))
	}
	t.Notef("%s: %s statements with %s assertions, %s of them new%s; revision %d; %s", name, cli.FormatCount(r.Statements), cli.FormatCount(r.Assertions),
		cli.FormatCount(r.Changed), skipped, r.Revision, took.Round(time.Millisecond))
	if unasserted > 0 {
		t.Notef("%s: %s descriptions of statements that it does not contain were ignored", name, cli.FormatCount(unasserted))
	}
}

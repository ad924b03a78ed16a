package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/kg"
)

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
		return interruptedWith(err, fmt.Sprintf("while %s was read; nothing of it was written", s.name))
	}
	meta := kg.Meta{Principal: l.c.localPrincipal(), Justification: expandWhy(l.c.Why, s.name)}
	report, err := assertions.Restore(ctx, l.store, meta, document.Statements(), assertions.RestoreOptions{Dir: l.c.Data})
	if err != nil {
		progress := fmt.Sprintf("%s assertions before it are stored; loading the file again adds the rest", countText(report.Changed))
		if errors.Is(err, context.Canceled) {
			return interruptedWith(err, fmt.Sprintf("in %s: %s", s.name, progress))
		}
		if report.Changed > 0 {
			return fmt.Errorf("%w\n%s", err, progress)
		}
		return err
	}
	printRestored(l.t, s.name, s.summary.Rejected, report, document.Unasserted(), time.Since(began))
	return nil
}

func printRestored(t terminal, name string, rejected uint64, r assertions.RestoreReport, unasserted uint64, took time.Duration) {
	skipped := ""
	if rejected > 0 {
		skipped = fmt.Sprintf(", %s lines skipped", countText(rejected))
	}
	t.sayf("%s: %s statements with %s assertions, %s of them new%s; revision %d; %s", name, countText(r.Statements), countText(r.Assertions),
		countText(r.Changed), skipped, r.Revision, took.Round(time.Millisecond))
	if unasserted > 0 {
		t.sayf("%s: %s descriptions of statements that it does not contain were ignored", name, countText(unasserted))
	}
}

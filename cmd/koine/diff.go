package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/kg"
)

// diffCommand compares two stores, or two revisions of a store.
type diffCommand struct {
	A string `arg:"" help:"A data directory that no server has open, the URL of a server, or an RDF file."`
	B string `arg:"" optional:"" help:"What A is compared with; without it, two revisions of A are."`
	caFlag
	callerFlags
	From         string `help:"Read A as of this revision or time (2026-01-31T12:00:00Z)." placeholder:"REVISION"`
	To           string `help:"Read B, or A where there is no B, as of this revision or time; default is the newest." placeholder:"REVISION"`
	Graph        string `help:"Compare only this graph; default is the one without a name." placeholder:"IRI"`
	NoAssertions bool   `help:"Compare statements only, not who asserts them, how surely, since when and why."`
	Labels       bool   `help:"Blank nodes are the same if their labels are, as they always are in two revisions of one store. Without it they are the same if what is said of them is."`
	MaxBlank     int    `help:"Statements with blank nodes of which so many are held in memory of each side. With more, blank nodes are compared by their labels, and differences of labels alone end with exit code 2." default:"200000" placeholder:"N"`
	jsonldFlags
	outputFlags

	reading rdf.JSONLDOptions // the JSON-LD options from the flags
}

// Help is shown by --help.
func (diffCommand) Help() string {
	return `Statements that B has and A has not are added (+), those that A alone has are removed (-). A statement that both have by other assertions is told with the assertions that differ. Revisions make no difference, since each store counts its own. Koine's own graphs (policies, agents, proposals) are not compared.

In a file, assertions are what koine export --assertions wrote.

Exit codes: 0 they are equal, 1 they differ, 2 they could not be compared.

Examples:
  koine diff ./koine-data ./restored
  koine diff ./koine-data http://127.0.0.1:8080 --no-assertions
  koine diff ./koine-data --from 120 --to 140
  koine diff ./koine-data --from 2026-01-31T00:00:00Z --graph https://example.org/team
  koine diff before.trig after.trig`
}

// Exit codes of a comparison. They are those of diff(1).
const (
	exitDifferent = 1
	exitTrouble   = 2
)

// Run prints the differences.
func (c *diffCommand) Run(ctx context.Context, t terminal, log *slog.Logger) error {
	differ, err := c.printDifferences(ctx, t, log)
	switch {
	case err != nil && exitCode(err) == exitInterrupted:
		return err
	case err != nil:
		return exitError{err, exitTrouble}
	case differ:
		return exitStatus(exitDifferent)
	}
	return nil
}

func (c *diffCommand) printDifferences(ctx context.Context, t terminal, log *slog.Logger) (differ bool, err error) {
	if c.MaxBlank < 1 {
		return false, usageError{errors.New("--max-blank: at least 1")}
	}
	if c.reading, err = c.jsonldOptions(); err != nil {
		return false, err
	}
	comparison, err := c.compareSources(ctx, log)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, comparison.Close()) }()
	out := newDiffPrinter(t, c.outputFlags)
	sure := false
	for d, err := range comparison.Differences() {
		sure = sure || comparison.Sure(&d)
		if err == nil {
			err = errors.Join(ctx.Err(), out.printDifference(&d))
		}
		if err != nil {
			return false, err
		}
	}
	if err := out.finishOutput(); err != nil {
		return false, err
	}
	for _, note := range comparison.Notes() {
		t.sayf("%s", note)
	}
	if out.printedAny() && !sure {
		return false, errors.New("all differences are of statements with blank nodes, which could not be paired: raise --max-blank, or compare labels with --labels")
	}
	return out.printedAny(), nil
}

func (c *diffCommand) compareSources(ctx context.Context, log *slog.Logger) (*assertions.Comparison, error) {
	o := assertions.CompareOptions{WithoutAssertions: c.NoAssertions, Labels: c.Labels, MaxBlank: c.MaxBlank}
	a := &diffSource{command: c, log: log, name: c.A, at: c.From}
	if c.B == "" {
		if c.From == "" {
			return nil, usageError{errors.New("diff requires a second source, or --from REVISION")}
		}
		o.Labels = true
		if a.isStore() {
			before, after, err := a.diffRevisions(ctx, c.To)
			defer a.close()
			if err != nil {
				return nil, err
			}
			return assertions.Compare(ctx, before, after, o)
		}
	}
	b := &diffSource{command: c, log: log, name: c.B, at: c.To}
	if c.B == "" {
		b.name = c.A
	}
	before, err := a.readStatements(ctx)
	defer a.close()
	if err != nil {
		return nil, err
	}
	after, err := b.readStatements(ctx)
	defer b.close()
	if err != nil {
		return nil, err
	}
	return assertions.Compare(ctx, before, after, o)
}

// splitSides splits differences into the statements before and the statements after.
func splitSides(differences iter.Seq2[kg.Difference, error], statement func(kg.Version) (assertions.Statement, error)) (before, after iter.Seq2[assertions.Statement, error]) {
	side := func(of func(*kg.Difference) kg.Version) iter.Seq2[assertions.Statement, error] {
		return func(yield func(assertions.Statement, error) bool) {
			for d, err := range differences {
				if err != nil {
					yield(assertions.Statement{}, err)
					return
				}
				v := of(&d)
				if v.From == 0 {
					continue
				}
				st, err := statement(v)
				if !yield(st, err) || err != nil {
					return
				}
			}
		}
	}
	return side(func(d *kg.Difference) kg.Version { return d.Before }), side(func(d *kg.Difference) kg.Version { return d.After })
}

// errNoSource returns the error for a name that is not a comparable source.
func errNoSource(name string) error {
	return usageError{fmt.Errorf("%s is not a data directory, the URL of a server or an RDF file (.nq, .nt, .trig, .ttl, .jsonld, each also with .gz)", name)}
}

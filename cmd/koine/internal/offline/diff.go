package offline

import (
	"context"
	"errors"
	"iter"
	"log/slog"

	"koine/cmd/koine/internal/cli"
	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/kg"
)

// DiffCommand compares two stores, or two revisions of a store.
type DiffCommand struct {
	A string `arg:"" help:"Data directory that no server has open, URL of a server, or RDF file."`
	B string `arg:"" optional:"" help:"Source to compare A with (default: another revision of A)."`
	cli.CAFlag
	cli.CallerFlags
	From         string `help:"Read A at this revision or time (2026-01-31T12:00:00Z)." placeholder:"REVISION"`
	To           string `help:"Read B, or A without B, at this revision or time (default: the newest)." placeholder:"REVISION"`
	Graph        string `help:"Compare only this graph; \"default\" is the default graph." placeholder:"IRI"`
	NoAssertions bool   `help:"Compare statements only, and not their assertions."`
	Labels       bool   `help:"Match blank nodes by their labels, as is always done for two revisions of a store (default: by their statements)."`
	MaxBlank     int    `help:"Maximum number of statements with blank nodes held in memory per side. With more, blank nodes are matched by their labels, and if only labels differ, the exit code is 2." default:"200000" placeholder:"N"`
	cli.JSONLDFlags
	cli.OutputFlags

	reading rdf.JSONLDOptions // the JSON-LD options from the flags
}

// Help is shown by --help.
func (DiffCommand) Help() string {
	return `Statements that only B has are added (+), those that only A has are removed (-). A statement that both have with different assertions is printed with the assertions that differ. Revisions are not compared, since each store has its own, and neither are koine's own graphs (policies, agents, proposals).

In a file, assertions are those that koine export --assertions wrote.

Exit codes: 0 equal, 1 different, 2 not comparable.

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
func (c *DiffCommand) Run(ctx context.Context, t cli.Terminal, log *slog.Logger) error {
	differ, err := c.printDifferences(ctx, t, log)
	switch {
	case err != nil && cli.ExitCode(err) == cli.ExitInterrupted:
		return err
	case err != nil:
		return cli.WithCode(err, exitTrouble)
	case differ:
		return cli.ExitStatus(exitDifferent)
	}
	return nil
}

func (c *DiffCommand) printDifferences(ctx context.Context, t cli.Terminal, log *slog.Logger) (differ bool, err error) {
	if c.MaxBlank < 1 {
		return false, cli.Usagef("--max-blank must be at least 1")
	}
	if c.reading, err = c.JSONLDOptions(); err != nil {
		return false, err
	}
	comparison, err := c.compareSources(ctx, log)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, comparison.Close()) }()
	out := newDiffPrinter(t, c.OutputFlags)
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
		t.Notef("%s", note)
	}
	if out.printedAny() && !sure {
		return false, errors.New("all differences are statements with blank nodes that could not be matched: raise --max-blank, or compare labels with --labels")
	}
	return out.printedAny(), nil
}

func (c *DiffCommand) compareSources(ctx context.Context, log *slog.Logger) (*assertions.Comparison, error) {
	o := assertions.CompareOptions{WithoutAssertions: c.NoAssertions, Labels: c.Labels, MaxBlank: c.MaxBlank}
	a := &diffSource{command: c, log: log, name: c.A, at: c.From}
	if c.B == "" {
		if c.From == "" {
			return nil, cli.Usagef("diff requires a second source, or --from REVISION")
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
	return cli.Usagef("%s is not a data directory, the URL of a server or an RDF file (.nq, .nt, .trig, .ttl, .jsonld, each also with .gz)", name)
}

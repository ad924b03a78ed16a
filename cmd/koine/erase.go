package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"koine/kg"
)

// eraseCommand erases statements from a data directory for good.
type eraseCommand struct {
	Data string `required:"" help:"The data directory, which no server may have open." placeholder:"DIR" type:"path" env:"KOINE_DATA"`
	prefixFlags
	Subject   string `help:"Statements about this resource: an IRI, or prefix:name." placeholder:"IRI"`
	Predicate string `help:"Statements with this predicate." placeholder:"IRI"`
	Object    string `help:"Statements that lead to this resource." placeholder:"IRI"`
	Text      string `help:"Statements whose value is this text, of any datatype and language." placeholder:"TEXT"`
	Graph     string `help:"Statements in this graph; default is the one without a name." placeholder:"IRI"`
	Source    string `help:"Only what this agent asserted; statements that others back stay." placeholder:"AGENT"`
	DryRun    bool   `help:"Say how much it would be, and change nothing."`
	Keep      bool   `help:"Leave the files of before in the directory, under before-erasing; they hold what was erased."`
}

// Help is shown by --help.
func (eraseCommand) Help() string {
	return `Deleting leaves a statement in the history; this takes it out of that too. What fits all that is said is erased: the log is written anew with the same revisions, without it, and the index is built from that. When both have been checked against each other they take the place of the old files, which are removed.

Commits of which something was erased also lose their justification, and their idempotency keys are refused from then on. Their authors, times, and references to tasks stay. The store is another one for its clients: positions and cursors are refused, and they start again.

Graphs that koine keeps for itself (proposals among them) are erased only if --graph names them. Backups are not touched: make a new one and delete the old ones. It takes as much free space as the store.

Examples:
  koine erase --data ./koine-data --subject https://example.org/person/7 --dry-run
  koine erase --data ./koine-data --subject https://example.org/person/7
  koine erase --data ./koine-data --predicate foaf:phone --prefix foaf=http://xmlns.com/foaf/0.1/
  koine erase --data ./koine-data --source dora --graph https://example.org/review`
}

// Run erases the statements and prints the result.
func (c *eraseCommand) Run(ctx context.Context, t terminal, log *slog.Logger) error {
	o, err := c.eraseOptions(log)
	if err != nil {
		return err
	}
	r, err := kg.Erase(ctx, c.Data, o)
	if err != nil {
		return hintInUse(err)
	}
	if r.Changes+r.Rows == 0 {
		t.sayf("No statement matches; nothing was changed.")
		return nil
	}
	what := fmt.Sprintf("%s changes in %s commits", countText(r.Changes), countText(r.Commits))
	if r.Rows > 0 {
		what += fmt.Sprintf(", and %s rows from before the log begins", countText(r.Rows))
	}
	if c.DryRun {
		t.sayf("It would be %s. Nothing was changed.", what)
		return nil
	}
	t.sayf("Erased: %s. The remaining content is consistent; the newest revision is still %d.", what, r.Revision)
	if c.Keep {
		t.sayf("The erased content is still in %s.", filepath.Join(c.Data, kg.KeptName))
	}
	t.sayf("Earlier backups still contain it.")
	return nil
}

// eraseOptions converts the flags to options. It reads the prefixes of the store to expand
// short names.
func (c *eraseCommand) eraseOptions(log *slog.Logger) (o kg.EraseOptions, err error) {
	o = kg.EraseOptions{Text: c.Text, Source: kg.AgentID(c.Source), DryRun: c.DryRun, Keep: c.Keep, Logger: log}
	dir := target{Data: c.Data}
	store, err := dir.openStore(log, false, kg.Options{})
	if err != nil {
		return o, err
	}
	registry, err := c.storePrefixes(store)
	if err = errors.Join(err, store.Close()); err != nil {
		return o, err
	}
	for _, part := range []struct {
		flag, text string
		to         *kg.Term
	}{{"subject", c.Subject, &o.Pattern.Subject}, {"predicate", c.Predicate, &o.Pattern.Predicate}, {"object", c.Object, &o.Pattern.Object}} {
		if part.text == "" {
			continue
		}
		if *part.to, err = registry.Resource(part.text); err != nil {
			return o, usageError{fmt.Errorf("--%s: %w", part.flag, err)}
		}
	}
	if c.Graph != "" {
		o.Pattern.Graph, err = parseGraphName(registry, c.Graph)
	}
	if err == nil && o.Pattern == (kg.Pattern{}) && c.Text == "" && c.Source == "" {
		err = usageError{errors.New("erase requires at least one of --subject, --predicate, --object, --text, --graph and --source")}
	}
	return o, err
}

package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/cmd/koine/internal/cli"
	"koine/internal/embedding"
	"koine/internal/search"
	"koine/kg"
)

// EraseCommand erases statements from a data directory for good.
type EraseCommand struct {
	Data string `required:"" help:"Data directory to work on. No server may have it open." placeholder:"DIR" type:"path" env:"KOINE_DATA"`
	cli.PrefixFlags
	Subject   string `help:"Erase statements about this subject: an IRI, or prefix:name." placeholder:"IRI"`
	Predicate string `help:"Erase statements with this predicate." placeholder:"IRI"`
	Object    string `help:"Erase statements with this resource as their object." placeholder:"IRI"`
	Text      string `help:"Erase statements with this text as their value, of any datatype and language." placeholder:"TEXT"`
	Graph     string `help:"Erase statements in this graph; \"default\" is the default graph." placeholder:"IRI" xor:"messages"`
	Source    string `help:"Erase only assertions of this agent. Statements that other agents assert remain." placeholder:"AGENT"`
	Messages  bool   `help:"Erase messages in all channels as well, with their audit copies and those that were held." xor:"messages"`
	DryRun    bool   `help:"Print how much would be erased without changing anything."`
	Keep      bool   `help:"Keep the previous files, which contain the erased data, in the folder before-erasing of the directory."`
}

// Help is shown by --help.
func (EraseCommand) Help() string {
	return `Deleting a statement keeps it in the history; erase removes it from the history as well. Statements that match all given flags are erased: the log is rewritten without them, under the same revisions, and the index is rebuilt from the log. When both have been verified they replace the old files, which are deleted.

Commits with erased statements also lose their justification, and their idempotency keys are refused from then on. Their authors, times and task references remain. The store is a new one for its clients: positions and cursors are refused.

Koine's own graphs (such as proposals) are erased only if --graph names them. A message (urn:koine:message:ID) is erased by its --subject alone, and what an agent said by --source with --messages: with it go its audit copy and its content in a review. The vectors that an embeddings endpoint made of erased texts go too. Backups are not changed: take a new one and delete the old ones. The command needs as much free disk space as the store uses.

Examples:
  koine erase --data ./koine-data --subject https://example.org/person/7 --dry-run
  koine erase --data ./koine-data --subject https://example.org/person/7
  koine erase --data ./koine-data --predicate foaf:phone --prefix foaf=http://xmlns.com/foaf/0.1/
  koine erase --data ./koine-data --source dora --graph https://example.org/review
  koine erase --data ./koine-data --source dora --messages`
}

// Run erases the statements and prints the result.
func (c *EraseCommand) Run(ctx context.Context, t cli.Terminal, log *slog.Logger) error {
	o, err := c.eraseOptions(log)
	if err != nil {
		return err
	}
	r, err := kg.Erase(ctx, c.Data, o)
	if err != nil {
		return cli.HintInUse(err)
	}
	// Also where nothing was erased: an earlier run may have ended before this.
	if err := search.RemoveIndex(c.Data); err != nil {
		return err
	}
	if !c.DryRun {
		if err := c.pruneEmbeddings(ctx, log); err != nil {
			return err
		}
	}
	if r.Changes+r.Rows == 0 {
		t.Notef("No statement matches; nothing changed.")
		return nil
	}
	what := fmt.Sprintf("%s changes in %s commits", cli.FormatCount(r.Changes), cli.FormatCount(r.Commits))
	if r.Rows > 0 {
		what += fmt.Sprintf(", and %s rows from before the start of the log", cli.FormatCount(r.Rows))
	}
	if c.DryRun {
		t.Notef("Would erase: %s. Nothing changed.", what)
		return nil
	}
	t.Notef("Erased: %s. The store was verified; its newest revision is still %d.", what, r.Revision)
	if c.Keep {
		t.Notef("The erased data is still in %s.", filepath.Join(c.Data, kg.KeptName))
	}
	t.Notef("Earlier backups still contain the erased data.")
	return nil
}

// pruneEmbeddings removes the made vectors of texts that were erased.
func (c *EraseCommand) pruneEmbeddings(ctx context.Context, log *slog.Logger) error {
	dir := embedding.Directory(c.Data)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	target := cli.Target{Data: c.Data}
	store, err := target.OpenStore(log, false, kg.Options{})
	if err != nil {
		return err
	}
	return errors.Join(embedding.Prune(ctx, store, dir, search.TextOf), store.Close())
}

// eraseOptions converts the flags to options. It reads the prefixes of the store to expand
// short names.
func (c *EraseCommand) eraseOptions(log *slog.Logger) (o kg.EraseOptions, err error) {
	o = kg.EraseOptions{Text: c.Text, Source: kg.AgentID(c.Source), DryRun: c.DryRun, Keep: c.Keep, Logger: log}
	dir := cli.Target{Data: c.Data}
	store, err := dir.OpenStore(log, false, kg.Options{})
	if err != nil {
		return o, err
	}
	registry, err := c.StorePrefixes(store)
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
			return o, cli.Usagef("--%s: %w", part.flag, err)
		}
	}
	if c.Graph != "" {
		o.Pattern.Graph, err = cli.ParseGraphName(registry, c.Graph)
	}
	o.Also = c.messageGraphs(&o.Pattern)
	if err == nil && o.Pattern == (kg.Pattern{}) && c.Text == "" && c.Source == "" {
		err = cli.Usagef("erase requires at least one of --subject, --predicate, --object, --text, --graph and --source")
	}
	return o, err
}

// messageGraphs returns the graphs with content of messages that the flags select: those of the
// channel whose messages --graph names, or of all channels.
func (c *EraseCommand) messageGraphs(p *kg.Pattern) func(graph kg.Term) bool {
	if id, part := channel.OfGraph(p.Graph); part == channel.JournalPart {
		return func(graph kg.Term) bool {
			of, _ := channel.OfGraph(graph)
			return of == id && channel.HoldsContent(graph)
		}
	}
	if p.Graph.IsZero() && (c.Messages || message.IDOf(p.Subject) != "") {
		return channel.HoldsContent
	}
	return nil
}

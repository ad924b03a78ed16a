package online

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// UpdateCommand changes statements through knowledge/update.
type UpdateCommand struct {
	Add     addStatement     `cmd:"" help:"Assert a statement."`
	Remove  removeStatement  `cmd:"" help:"Remove a statement, or with --source one agent's assertion of it."`
	Replace replaceStatement `cmd:"" help:"Assert a statement in place of all others with its subject, predicate and graph."`
	Apply   applyUpdate      `cmd:"" help:"Apply patches from JSON, all or none."`
}

// Help is shown by --help.
func (UpdateCommand) Help() string {
	return `Examples (with koine serve --demo):
  koine update add finding:1 lab:status checked --certainty 0.9 --why "Read it again" --as dora
  koine update replace finding:1 rdfs:label "Water costs capacity" --language en
  koine update remove finding:1 lab:status checked
  koine update apply patches.json`
}

// updateFlags are common to all updates.
type updateFlags struct {
	cli.ServerFlags
	Why              string `help:"Justification for the history." placeholder:"TEXT"`
	IdempotencyKey   string `help:"Key that makes it safe to send the same update again." placeholder:"KEY"`
	ExpectedRevision uint64 `help:"Refuse the update if the subject changed after this revision." placeholder:"REVISION"`
	DryRun           bool   `help:"Check the update without applying it."`
}

type (
	addStatement     struct{ statementUpdate }
	removeStatement  struct{ statementUpdate }
	replaceStatement struct{ statementUpdate }
)

// Help is shown by --help.
func (addStatement) Help() string {
	return `Updates the caller's own assertion of the statement, if there is one. Assertions of others remain.

Examples (with koine serve --demo):
  koine update add finding:1 lab:status checked --certainty 0.9 --why "Read it again" --as dora
  koine update add finding:1 lab:seen 2026-01-31 --type xsd:date
  koine update add finding:1 rdfs:comment "Needs a second run" --language en
  koine update add finding:1 lab:supports finding:2 --graph https://example.org/review --source chen`
}

// Help is shown by --help.
func (removeStatement) Help() string {
	return `Without --source, the statement and everybody's assertions of it are removed. With --source, only that agent's assertion is removed, and the statement remains while another agent asserts it. Removing a statement that does not exist is not an error.

Examples (with koine serve --demo):
  koine update remove finding:1 lab:status checked --source dora
  koine update remove finding:1 lab:status checked --why "Wrong sample"`
}

// Help is shown by --help.
func (replaceStatement) Help() string {
	return `Removes all other statements with this subject, predicate and graph, whoever asserted them.

Example (with koine serve --demo):
  koine update replace finding:1 rdfs:label "Water costs capacity" --language en`
}

// Run asserts the statement.
func (c *addStatement) Run(ctx context.Context, t cli.Terminal) error {
	return c.sendPatch(ctx, t, "add")
}

// Run removes the statement.
func (c *removeStatement) Run(ctx context.Context, t cli.Terminal) error {
	return c.sendPatch(ctx, t, "remove")
}

// Run asserts the statement in place of the others with its subject, predicate and
// graph.
func (c *replaceStatement) Run(ctx context.Context, t cli.Terminal) error {
	return c.sendPatch(ctx, t, "replace")
}

// statementUpdate is an update of one statement.
type statementUpdate struct {
	Subject   string `arg:"" help:"IRI, or prefix:name."`
	Predicate string `arg:"" help:"IRI, or prefix:name."`
	Object    string `arg:"" help:"IRI or prefix:name, JSON number, true, false, or text."`
	updateFlags
	Graph     string  `help:"Graph of the statement (default: the default graph)." placeholder:"IRI"`
	Certainty float64 `help:"Certainty of the statement (default: it is a fact)." placeholder:"0…1" default:"-1"`
	Type      string  `help:"Datatype of the object (such as xsd:date), or class if it is a resource." placeholder:"IRI"`
	Language  string  `help:"Language of a text." placeholder:"TAG"`
	Text      bool    `help:"Treat the object as text, whatever it looks like."`
	Source    string  `help:"Agent that the assertion belongs to. With remove, only this agent's assertion is removed instead of all." placeholder:"AGENT"`
}

func (c *statementUpdate) sendPatch(ctx context.Context, t cli.Terminal, op string) error {
	patch := client.Patch{Op: op, Statement: client.Statement{
		Subject: client.Resource(c.Subject), Predicate: client.Resource(c.Predicate), Object: c.objectNode(), Graph: c.Graph,
	}}
	if c.Certainty != -1 {
		patch = patch.Certain(c.Certainty)
	}
	if c.Source != "" {
		patch = patch.From(c.Source)
	}
	return c.sendPatches(ctx, t, []client.Patch{patch})
}

// looksLikeID matches absolute IRIs and prefix:name. Both are without white space.
var looksLikeID = regexp.MustCompile(`^(<[^<>\s]+>|_:[^\s]+|[A-Za-z][A-Za-z0-9+._-]*:[^\s]+)$`)

func (c *statementUpdate) objectNode() client.Node {
	o := client.Node{Type: c.Type, Language: c.Language}
	switch raw := json.RawMessage(c.Object); {
	case !c.Text && c.Language == "" && looksLikeID.MatchString(c.Object) && !strings.HasPrefix(c.Type, "xsd:"):
		o.ID = strings.Trim(c.Object, "<>")
	case !c.Text && c.Language == "" && json.Valid(raw) && !strings.ContainsAny(c.Object[:1], `{["n`):
		o.Value = raw
	default:
		o.Value = c.Object
	}
	return o
}

// applyUpdate applies a document of patches.
type applyUpdate struct {
	File string `arg:"" optional:"" help:"JSON array of patches as in knowledge/update, or object with mutations; - or no file reads standard input." type:"path"`
	updateFlags
}

// Run sends the patches of the document.
func (c *applyUpdate) Run(ctx context.Context, t cli.Terminal) error {
	text, err := cli.ReadText(t, "", c.File)
	if err != nil {
		return err
	}
	patches, err := readPatches([]byte(text))
	if err != nil {
		return err
	}
	return c.sendPatches(ctx, t, patches)
}

// readPatches returns the patches of a document, unchanged.
func readPatches(document []byte) (patches []client.Patch, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(document, &list); err != nil {
		var object struct {
			Mutations []json.RawMessage `json:"mutations"`
		}
		if err := json.Unmarshal(document, &object); err != nil || object.Mutations == nil {
			return nil, cli.Refusedf("the patches must be a JSON array, or an object with mutations")
		}
		list = object.Mutations
	}
	for _, raw := range list {
		patches = append(patches, client.RawPatch(raw))
	}
	return patches, nil
}

// sendPatches sends the update and prints its outcome.
func (c *updateFlags) sendPatches(ctx context.Context, t cli.Terminal, patches []client.Patch) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	result, err := server.Update(ctx, client.Update{
		Patches: patches, Justification: c.Why, IdempotencyKey: c.IdempotencyKey, Once: true, ExpectedRevision: c.ExpectedRevision, DryRun: c.DryRun,
	})
	if result == nil {
		return err
	}
	if err := cli.PrintJSON(t.Out, result.Raw, false); err != nil {
		return err
	}
	if !result.Success {
		return cli.Refusedf("the update was refused: %s", result.VerificationStatus)
	}
	return nil
}

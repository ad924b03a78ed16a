package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// updateCommand changes statements through knowledge/update.
type updateCommand struct {
	Add     addStatement     `cmd:"" help:"Assert a statement."`
	Remove  removeStatement  `cmd:"" help:"Remove a statement, or with --source one agent's assertion of it."`
	Replace replaceStatement `cmd:"" help:"Assert a statement in place of all others with its subject, predicate and graph."`
	Apply   applyUpdate      `cmd:"" help:"Apply patches from JSON, all of them or none."`
}

// Help is shown by --help.
func (updateCommand) Help() string {
	return `Examples (with koine serve --demo):
  koine update add finding:1 lab:status checked --certainty 0.9 --why "Read it again" --as dora
  koine update replace finding:1 rdfs:label "Water costs capacity" --language en
  koine update remove finding:1 lab:status checked
  koine update apply patches.json`
}

// updateFlags are common to all updates.
type updateFlags struct {
	URL string `help:"The server (default ${url})." placeholder:"URL"`
	as
	Why              string `help:"The reason, kept in the history." placeholder:"TEXT"`
	IdempotencyKey   string `help:"Makes it safe to send the same update again." placeholder:"KEY"`
	ExpectedRevision uint64 `help:"Refuse if the subject changed after this revision." placeholder:"REVISION"`
	DryRun           bool   `help:"Only judge; change nothing."`
}

type (
	addStatement     struct{ statementUpdate }
	removeStatement  struct{ statementUpdate }
	replaceStatement struct{ statementUpdate }
)

// Help is shown by --help.
func (addStatement) Help() string {
	return `What the same source said of the statement before is brought up to date; what others say stays.

Examples (with koine serve --demo):
  koine update add finding:1 lab:status checked --certainty 0.9 --why "Read it again" --as dora
  koine update add finding:1 lab:seen 2026-01-31 --type xsd:date
  koine update add finding:1 rdfs:comment "Needs a second run" --language en
  koine update add finding:1 lab:supports finding:2 --graph https://example.org/review --source chen`
}

// Help is shown by --help.
func (removeStatement) Help() string {
	return `Without --source the statement goes, with everybody's assertions of it. With --source only that agent's assertion goes, and the statement stays while another agent asserts it. Removing what is not there is no error.

Examples (with koine serve --demo):
  koine update remove finding:1 lab:status checked --source dora
  koine update remove finding:1 lab:status checked --why "Wrong sample"`
}

// Help is shown by --help.
func (replaceStatement) Help() string {
	return `All other statements with this subject, predicate and graph go, whoever asserted them.

Example (with koine serve --demo):
  koine update replace finding:1 rdfs:label "Water costs capacity" --language en`
}

// Run asserts it.
func (c *addStatement) Run(ctx context.Context, t terminal) error { return c.run(ctx, t, "add") }

// Run removes it.
func (c *removeStatement) Run(ctx context.Context, t terminal) error { return c.run(ctx, t, "remove") }

// Run puts it in the place of others.
func (c *replaceStatement) Run(ctx context.Context, t terminal) error {
	return c.run(ctx, t, "replace")
}

// statementUpdate is an update of one statement.
type statementUpdate struct {
	Subject   string `arg:"" help:"An IRI, or prefix:name."`
	Predicate string `arg:"" help:"An IRI, or prefix:name."`
	Object    string `arg:"" help:"An IRI or prefix:name, a JSON number, true, false, or a text."`
	updateFlags
	Graph     string  `help:"The graph; otherwise the default graph." placeholder:"IRI"`
	Certainty float64 `help:"How certain it is; without, it is a fact." placeholder:"0…1" default:"-1"`
	Type      string  `help:"The object's datatype (xsd:date), or class if it is a resource." placeholder:"IRI"`
	Language  string  `help:"The language of a text." placeholder:"TAG"`
	Text      bool    `help:"The object is a text, whatever it looks like."`
	Source    string  `help:"With remove: withdraw only this agent's assertion; without, everybody's go. Otherwise: whose assertion it is." placeholder:"AGENT"`
}

type updateStatement struct {
	Subject    map[string]any `json:"subject"`
	Predicate  map[string]any `json:"predicate"`
	Object     map[string]any `json:"object"`
	Graph      string         `json:"graph,omitempty"`
	Certainty  *float64       `json:"certainty,omitempty"`
	Provenance map[string]any `json:"provenance,omitempty"`
}

func (c *statementUpdate) run(ctx context.Context, t terminal, op string) error {
	s := updateStatement{
		Subject: map[string]any{"id": c.Subject}, Predicate: map[string]any{"id": c.Predicate},
		Object: c.object(), Graph: c.Graph,
	}
	if c.Certainty != -1 {
		s.Certainty = &c.Certainty
	}
	if c.Source != "" {
		s.Provenance = map[string]any{"sourceAgentId": c.Source}
	}
	return c.send(ctx, t, []any{map[string]any{"op": op, "statement": s}})
}

// looksLikeID matches absolute IRIs and prefix:name, which hold no white space.
var looksLikeID = regexp.MustCompile(`^(<[^<>\s]+>|_:[^\s]+|[A-Za-z][A-Za-z0-9+._-]*:[^\s]+)$`)

func (c *statementUpdate) object() map[string]any {
	o := map[string]any{}
	if c.Type != "" {
		o["type"] = c.Type
	}
	if c.Language != "" {
		o["language"] = c.Language
	}
	switch raw := json.RawMessage(c.Object); {
	case !c.Text && c.Language == "" && looksLikeID.MatchString(c.Object) && !strings.HasPrefix(c.Type, "xsd:"):
		o["id"] = strings.Trim(c.Object, "<>")
	case !c.Text && c.Language == "" && json.Valid(raw) && !strings.ContainsAny(c.Object[:1], `{["n`):
		o["value"] = raw
	default:
		o["value"] = c.Object
	}
	return o
}

// applyUpdate applies a document of patches.
type applyUpdate struct {
	File string `arg:"" optional:"" help:"JSON: an array of patches as in knowledge/update, or an object with mutations; - or nothing reads standard input." type:"path"`
	updateFlags
}

// Run sends the document's patches.
func (c *applyUpdate) Run(ctx context.Context, t terminal) error {
	text, err := textOf(t, "", c.File)
	if err != nil {
		return err
	}
	var mutations []any
	if err := json.Unmarshal([]byte(text), &mutations); err != nil {
		var document struct {
			Mutations []any `json:"mutations"`
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil || document.Mutations == nil {
			return exitError{errors.New("the patches are neither a JSON array nor an object with mutations"), exitRefused}
		}
		mutations = document.Mutations
	}
	return c.send(ctx, t, mutations)
}

// send makes the update and says what came of it.
func (c *updateFlags) send(ctx context.Context, t terminal, mutations []any) error {
	own := map[string]any{}
	if c.IdempotencyKey != "" {
		own["idempotencyKey"] = c.IdempotencyKey
	}
	if c.ExpectedRevision != 0 {
		own["expectedRevision"] = c.ExpectedRevision
	}
	if c.DryRun {
		own["dryRun"] = true
	}
	params := map[string]any{"mutations": mutations, "metadata": map[string]any{"koine": own}}
	if c.Why != "" {
		params["justification"] = c.Why
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := newClient(c.URL, c.as).call(ctx, "knowledge/update", params)
	if err != nil {
		return err
	}
	if err := printJSON(t.out, result, false); err != nil {
		return err
	}
	var answer struct {
		Success            bool   `json:"success"`
		VerificationStatus string `json:"verificationStatus"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	if !answer.Success {
		return exitError{fmt.Errorf("the update was refused: %s", answer.VerificationStatus), exitRefused}
	}
	return nil
}

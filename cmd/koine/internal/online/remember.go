package online

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"koine/cmd/koine/internal/cli"
)

// maxRemembered bounds the text that RememberCommand reads.
const maxRemembered = 8 << 20

// RememberCommand adds facts about entities that are named by labels.
type RememberCommand struct {
	Facts     []string `arg:"" optional:"" help:"A triple in words, three arguments, or facts in lines; without arguments they are read from standard input."`
	Why       string   `help:"Justification for the history." placeholder:"TEXT"`
	Certainty *float64 `help:"Certainty of statements that state none (default: none, which counts as 1)." placeholder:"0…1"`
	Define    []string `help:"Make this predicate or class if there is none; may be repeated." placeholder:"WORD" sep:"none"`
	NewNames  string   `help:"IRI prefix of new entities; a slug of the label is appended (default: that of the server)." placeholder:"IRI"`
	Graph     string   `help:"Graph of facts that name none." placeholder:"IRI"`
	DryRun    bool     `help:"Check the facts without adding them."`
	cli.ServerFlags
}

// Help is shown by --help.
func (RememberCommand) Help() string {
	return `A label stands for the entity with that label, and with the class that the facts give it; where there is none, one is made. Standard input has facts in lines, as "koine recall" prints them, or triples in JSON ([["Ada Lovelace", "wrote", "Note G"]]), or JSON-LD. A repetition changes nothing.

Examples (with koine serve --demo):
  koine remember "Run 9" "is a" lab:Measurement --why "Done today"
  koine remember "Run 9" "was stored at" "4 degrees" --define "was stored at" --certainty 0.8
  koine recall finding:1 | koine remember --url http://other.example:8080`
}

// Run adds the facts and prints the entities.
func (c *RememberCommand) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	input := map[string]any{"dryRun": c.DryRun}
	if err := c.addFacts(t, input); err != nil {
		return err
	}
	for name, value := range map[string]string{"justification": c.Why, "newNames": c.NewNames, "graph": c.Graph} {
		if value != "" {
			input[name] = value
		}
	}
	if c.Certainty != nil {
		input["certainty"] = *c.Certainty
	}
	if c.Define != nil {
		input["define"] = c.Define
	}
	var answer struct {
		Remember struct {
			Entities []struct {
				Label, IRI string
				Made       bool
			}
			Known          []struct{ Predicate struct{ ID string } }
			Contradictions []struct{ Reason string }
			Update         struct {
				StatementsAffected              int
				Revision                        int64
				ProposalID, VerificationDetails string
			}
		}
	}
	const mutation = `mutation($input: RememberInput!) { remember(input: $input) { entities { label iri made } known { predicate { id } } contradictions { reason } update { statementsAffected revision proposalId verificationDetails } } }`
	if err := server.GraphQL(ctx, mutation, map[string]any{"input": input}, &answer); err != nil {
		return err
	}
	r := &answer.Remember
	var b strings.Builder
	for _, e := range r.Entities {
		made := ""
		if e.Made {
			made = " (new)"
		}
		fmt.Fprintf(&b, "%s: %s%s\n", e.Label, e.IRI, made)
	}
	for _, contradiction := range r.Contradictions {
		fmt.Fprintf(&b, "Contradiction: %s\n", contradiction.Reason)
	}
	switch u := &r.Update; {
	case u.ProposalID != "":
		fmt.Fprintf(&b, "Held for review as proposal %s: %s\n", u.ProposalID, u.VerificationDetails)
	case c.DryRun:
		fmt.Fprintf(&b, "%d statements would be added; %d facts are known\n", u.StatementsAffected, len(r.Known))
	default:
		fmt.Fprintf(&b, "%d statements added in revision %d; %d facts were known\n", u.StatementsAffected, u.Revision, len(r.Known))
	}
	_, err = io.WriteString(t.Out, b.String())
	return err
}

// addFacts adds the facts of the arguments, or of standard input, to the input of the
// mutation.
func (c *RememberCommand) addFacts(t cli.Terminal, input map[string]any) error {
	if len(c.Facts) == 3 && !strings.Contains(strings.Join(c.Facts, ""), "\n") {
		input["triples"] = [][]string{c.Facts}
		return nil
	}
	text := strings.Join(c.Facts, "\n")
	if len(c.Facts) == 0 {
		raw, err := io.ReadAll(io.LimitReader(t.In, maxRemembered+1))
		if err != nil {
			return err
		}
		if len(raw) > maxRemembered {
			return fmt.Errorf("standard input has more than %d bytes: remember it in parts", maxRemembered)
		}
		text = string(raw)
	}
	form, document := "facts", json.RawMessage(strings.TrimSpace(text))
	var triples [][]json.RawMessage
	switch {
	case json.Unmarshal(document, &triples) == nil:
		form = "triples"
	case json.Valid(document):
		form = "jsonLd"
	default:
		input[form] = text
		return nil
	}
	input[form] = document
	return nil
}

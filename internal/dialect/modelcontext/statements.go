package modelcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"koine/internal/compact"
	"koine/kg"
)

type factsArgs struct {
	Facts string `json:"facts" jsonschema:"lines of facts"`
	Why   string `json:"why,omitempty" jsonschema:"the reason, kept with the change"`
}

type changeAnswer struct {
	Changed  int    `json:"changed" jsonschema:"how many statements"`
	Revision int64  `json:"revision" jsonschema:"of the graph after it"`
	Proposal string `json:"proposal,omitempty" jsonschema:"the id of the proposal that it is held as, until others approve"`
}

// patchesOf returns the facts of a text as inputs of patches that add them.
func (t tools) patchesOf(ctx context.Context, text string) ([]map[string]any, error) {
	return t.readPatches(ctx, text, false)
}

// shownPatchesOf returns facts as they were shown, without the parts of their assertions.
func (t tools) shownPatchesOf(ctx context.Context, text string) ([]map[string]any, error) {
	return t.readPatches(ctx, text, true)
}

func (t tools) readPatches(ctx context.Context, text string, shown bool) ([]map[string]any, error) {
	prefixes, err := t.readPrefixes(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := compact.Read(text, prefixes)
	if err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	if len(facts) == 0 {
		return nil, fmt.Errorf("facts has no fact; write a subject at the beginning of a line, then indented lines with a predicate and its objects")
	}
	labels := &labelled{t: t, found: map[string]kg.Term{}, prefixes: prefixes}
	patches := make([]map[string]any, len(facts))
	for i := range facts {
		if f := &facts[i]; shown {
			*f = compact.Fact{Graph: f.Graph, Subject: f.Subject, Predicate: f.Predicate, Object: f.Object}
		}
		if patches[i], err = labels.patchOf(ctx, &facts[i]); err != nil {
			return nil, err
		}
	}
	return patches, nil
}

// applyPatches applies patches, and returns the answer and a text that begins with a verb.
func (t tools) applyPatches(ctx context.Context, verb string, patches []map[string]any, why string) (string, changeAnswer, error) {
	input := map[string]any{"patches": patches}
	if why != "" {
		input["justification"] = why
	}
	var answer struct{ ApplyPatches updateNode }
	if err := t.GraphQL(ctx, `mutation($input: ApplyPatchesInput!) { applyPatches(input: $input) `+updateFields+` }`, map[string]any{"input": input}, &answer); err != nil {
		return "", changeAnswer{}, err
	}
	u := &answer.ApplyPatches
	return u.describeUpdate(fmt.Sprintf("%s %d of %d facts", verb, u.StatementsAffected, len(patches)))
}

// updateNode is an ApplyPatchesPayload.
type updateNode struct {
	Success             bool
	StatementsAffected  int
	VerificationStatus  string
	VerificationDetails string
	Revision            int64
	ProposalID          string
}

const updateFields = `{ success statementsAffected verificationStatus verificationDetails revision proposalId }`

// describeUpdate returns the answer for an update, and done with its revision if it is not held.
func (u *updateNode) describeUpdate(done string) (string, changeAnswer, error) {
	out := changeAnswer{Changed: u.StatementsAffected, Revision: u.Revision, Proposal: u.ProposalID}
	switch {
	case u.ProposalID != "":
		return fmt.Sprintf("Held for review as proposal %s: %s", u.ProposalID, u.VerificationDetails), out, nil
	case !u.Success:
		return "", out, fmt.Errorf("%s: %s", u.VerificationStatus, u.VerificationDetails)
	}
	return fmt.Sprintf("%s in revision %d", done, u.Revision), out, nil
}

// correctFacts replaces the values of each subject and predicate by those of the facts.
func (t tools) correctFacts(ctx context.Context, a factsArgs) (string, changeAnswer, error) {
	patches, err := t.patchesOf(ctx, a.Facts)
	if err != nil {
		return "", changeAnswer{}, err
	}
	replaced := map[string]bool{}
	for _, p := range patches {
		st := p["statement"].(map[string]any)
		key, err := json.Marshal([]any{st["subject"], st["predicate"], st["graph"]})
		if err != nil {
			return "", changeAnswer{}, err
		}
		if !replaced[string(key)] {
			p["op"] = "replace"
		}
		replaced[string(key)] = true
	}
	return t.applyPatches(ctx, "Corrected: changed", patches, a.Why)
}

// retractFacts removes facts.
func (t tools) retractFacts(ctx context.Context, a factsArgs) (string, changeAnswer, error) {
	patches, err := t.shownPatchesOf(ctx, a.Facts)
	if err != nil {
		return "", changeAnswer{}, err
	}
	for _, p := range patches {
		p["op"] = "remove"
	}
	return t.applyPatches(ctx, "Retracted", patches, a.Why)
}

// commit is a commit in an answer of GraphQL.
type commit struct {
	Time     string `json:"time"`
	By       string `json:"by"`
	Why      string `json:"why,omitempty"`
	Revision int64  `json:"revision"`
}

const commitFields = `{ time by: actorId why: justification revision }`

// formatLine returns when a commit was made, by whom and why.
func (c *commit) formatLine() string {
	if c == nil {
		return c.formatReason()
	}
	return shortAgent(c.By) + ", " + c.formatReason()
}

// formatReason returns when a commit was made, and why.
func (c *commit) formatReason() string {
	switch {
	case c == nil:
		return "no longer in the log"
	case c.Why == "":
		return c.Time
	}
	return c.Time + " (" + c.Why + ")"
}

type whyArgs struct {
	Fact string `json:"fact" jsonschema:"one fact as it was shown to you"`
}

type origin struct {
	By        string   `json:"by"`
	Certainty *float64 `json:"certainty,omitempty"`
	Evidence  any      `json:"evidence,omitempty" jsonschema:"as its source gave it"`
	Message   string   `json:"message,omitempty" jsonschema:"the id of the message that it came with"`
	Commit    *commit  `json:"commit,omitempty"`
}

type step struct {
	Op     string  `json:"op"`
	By     string  `json:"by"`
	Commit *commit `json:"commit,omitempty"`
}

type whyAnswer struct {
	Fact    string   `json:"fact"`
	Origins []origin `json:"origins" jsonschema:"who states it"`
	Left    int      `json:"left,omitempty" jsonschema:"how many more state it"`
	History []step   `json:"history" jsonschema:"the newest first"`
}

func (t tools) explainFact(ctx context.Context, a whyArgs) (string, whyAnswer, error) {
	out := whyAnswer{Origins: []origin{}, History: []step{}}
	patches, err := t.shownPatchesOf(ctx, a.Fact)
	if err != nil {
		return "", out, err
	}
	if len(patches) > 1 {
		return "", out, fmt.Errorf("fact has %d facts; ask for one", len(patches))
	}
	type stated struct {
		assertion
		Provenance any
	}
	var answer struct {
		Why *struct {
			Statement record
			Origins   []struct {
				Assertion stated
				Commit    *commit
				Message   *struct{ ID string }
			}
			History []struct {
				Op        string
				Assertion assertion
				Commit    *commit
			}
		}
	}
	const query = `query($of: StatementRef!) { why(statement: $of) { statement ` + recordFields + ` origins { assertion { sourceId certainty provenance } commit ` + commitFields + ` message { id } } history { op assertion ` + assertionFields + ` commit ` + commitFields + ` } } }`
	prefixes, err := t.runRead(ctx, query, map[string]any{"of": patches[0]["statement"]}, &answer)
	if err != nil {
		return "", out, err
	}
	if answer.Why == nil {
		return "", out, fmt.Errorf("nobody states the fact, and nobody did; recall its subject, and write it as it is shown")
	}
	out.Fact = writeFact(&answer.Why.Statement, prefixes)
	var b strings.Builder
	b.WriteString(out.Fact + "\n\nStated by:\n")
	origins, left := cutParts(answer.Why.Origins)
	for _, o := range origins {
		by := origin{By: o.Assertion.SourceID, Certainty: o.Assertion.Certainty, Evidence: o.Assertion.Provenance, Commit: o.Commit}
		b.WriteString(shortAgent(by.By))
		if by.Certainty != nil {
			fmt.Fprintf(&b, " [%v]", *by.Certainty)
		}
		b.WriteString(", " + by.Commit.formatReason())
		if by.Evidence != nil {
			evidence, err := json.Marshal(by.Evidence)
			if err != nil {
				return "", out, err
			}
			fmt.Fprintf(&b, ", evidence %s", evidence)
		}
		if o.Message != nil {
			by.Message = o.Message.ID
			b.WriteString(", in message " + by.Message)
		}
		b.WriteByte('\n')
		out.Origins = append(out.Origins, by)
	}
	if len(out.Origins) == 0 {
		b.WriteString("nobody any more\n")
	}
	if out.Left = left; left > 0 {
		fmt.Fprintf(&b, "# %d more sources\n", left)
	}
	b.WriteString("\nHistory, the newest first:\n")
	for _, h := range answer.Why.History {
		out.History = append(out.History, step{h.Op, h.Assertion.SourceID, h.Commit})
		fmt.Fprintf(&b, "%s by %s, %s\n", h.Op, shortAgent(h.Assertion.SourceID), h.Commit.formatReason())
	}
	return b.String(), out, nil
}

// changeOf is a change in an answer of GraphQL. Its members are aliased to those of records.
type changeOf struct {
	Op        string
	Statement struct {
		record
		Assertions []assertion
	}
	Commit *commit
}

const changeFields = `{ op commit ` + commitFields + ` statement { subject { id: iri } predicate: predicateEntity { id: iri } object { ... on Entity { id: iri } ... on Literal { value type: datatype language } } graph assertions ` + assertionFields + ` } }`

type change struct {
	Op     string  `json:"op" jsonschema:"add, remove or replace"`
	Fact   string  `json:"fact"`
	Commit *commit `json:"commit,omitempty"`
}

// listChangesOf returns the answer for a page of changes.
func listChangesOf(c connection[changeOf], p *kg.Prefixes, none string) (string, list[change], error) {
	out := connection[change]{PageInfo: c.PageInfo}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		out.Nodes = append(out.Nodes, change{n.Op, writeFact(&n.Statement.record, p, n.Statement.Assertions...), n.Commit})
	}
	return listOf(out, none, func(c *change) string {
		return fmt.Sprintf("%s: %s\n  %s", c.Commit.formatLine(), c.Op, strings.ReplaceAll(c.Fact, "\n", "\n  "))
	})
}

type historyArgs struct {
	Name string `json:"name" jsonschema:"the name of an entity, such as lab:run-7"`
	pageArgs
}

func (t tools) listHistory(ctx context.Context, a historyArgs) (string, list[change], error) {
	variables, err := a.pageVariables("iri", a.Name)
	if err != nil {
		return "", list[change]{}, err
	}
	var answer struct {
		Entity *struct{ History connection[changeOf] }
	}
	prefixes, err := t.runRead(ctx, `query($iri: IRI!, $first: Int, $after: Cursor) { entity(iri: $iri) { history(direction: BOTH, first: $first, after: $after) { nodes `+changeFields+pageInfo+` } } }`, variables, &answer)
	if err != nil {
		return "", list[change]{}, err
	}
	if answer.Entity == nil {
		return listChangesOf(connection[changeOf]{}, prefixes, fmt.Sprintf("Nothing is known about %s, and nothing was. %s", a.Name, t.nearNames(ctx, a.Name)))
	}
	return listChangesOf(answer.Entity.History, prefixes, "")
}

// maxNear bounds the entities that are listed for a name that is none.
const maxNear = 3

// nearNames tells the entities with the words of a name, as far as the server searches.
func (t tools) nearNames(ctx context.Context, name string) string {
	words := strings.Join(strings.FieldsFunc(name[strings.LastIndexAny(name, ":/#")+1:], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
	text, near, err := t.searchWords(ctx, searchArgs{Query: words, pageArgs: pageArgs{Limit: maxNear}})
	if err != nil || len(near.Items) == 0 {
		return "Search for its name."
	}
	text, _, _ = strings.Cut(text, "# more")
	return "Did you mean one of these?\n" + text
}

type changesArgs struct {
	Since string `json:"since,omitempty" jsonschema:"a time such as 2026-01-31T12:00:00Z, or a revision"`
	pageArgs
}

func (t tools) listChanges(ctx context.Context, a changesArgs) (string, list[change], error) {
	order := "ASC"
	if a.Since == "" {
		order = "DESC"
	}
	variables, err := a.pageVariables("since", a.Since, "order", order)
	if err != nil {
		return "", list[change]{}, err
	}
	var answer struct{ Changes connection[changeOf] }
	prefixes, err := t.runRead(ctx, `query($since: Moment, $order: SortDirection!, $first: Int, $after: Cursor) { changes(since: $since, order: $order, first: $first, after: $after) { nodes `+changeFields+pageInfo+` } }`, variables, &answer)
	if err != nil {
		return "", list[change]{}, err
	}
	return listChangesOf(answer.Changes, prefixes, "Nothing changed.")
}

type contradiction struct {
	Kind   string   `json:"kind"`
	Reason string   `json:"reason"`
	Facts  []string `json:"facts"`
}

// contradictionNode is a contradiction in an answer of GraphQL.
type contradictionNode struct {
	Kind, Reason string
	Statements   []struct {
		Statement  record
		Assertions []assertion
	}
}

const contradictionFields = `{ kind reason statements { statement ` + recordFields + ` assertions ` + assertionFields + ` } }`

func (n *contradictionNode) describeContradiction(p *kg.Prefixes) contradiction {
	c := contradiction{Kind: n.Kind, Reason: n.Reason}
	for i := range n.Statements {
		c.Facts = append(c.Facts, writeFact(&n.Statements[i].Statement, p, n.Statements[i].Assertions...))
	}
	return c
}

func (c *contradiction) formatText() string {
	return c.Reason + "\n  " + strings.ReplaceAll(strings.Join(c.Facts, "\n"), "\n", "\n  ")
}

func (t tools) listContradictions(ctx context.Context, a pageArgs) (string, list[contradiction], error) {
	variables, err := a.pageVariables()
	if err != nil {
		return "", list[contradiction]{}, err
	}
	var answer struct {
		Contradictions connection[contradictionNode]
	}
	prefixes, err := t.runRead(ctx, `query($first: Int, $after: Cursor) { contradictions(first: $first, after: $after) { nodes `+contradictionFields+pageInfo+` } }`, variables, &answer)
	if err != nil {
		return "", list[contradiction]{}, err
	}
	out := connection[contradiction]{PageInfo: answer.Contradictions.PageInfo}
	for i := range answer.Contradictions.Nodes {
		out.Nodes = append(out.Nodes, answer.Contradictions.Nodes[i].describeContradiction(prefixes))
	}
	return listOf(out, "There are no contradictions.", (*contradiction).formatText)
}

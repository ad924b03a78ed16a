package online

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"koine/cmd/koine/internal/cli"
)

// ReviewCommand handles proposals: updates that are held for approval.
type ReviewCommand struct {
	List     listProposals   `cmd:"" help:"List the proposals that you may see."`
	Show     showProposal    `cmd:"" help:"Show a proposal with its patches and reviews."`
	Approve  approveProposal `cmd:"" help:"Approve a proposal."`
	Reject   rejectProposal  `cmd:"" help:"Reject a proposal."`
	Withdraw withdrawn       `cmd:"" help:"Withdraw your own proposal."`
}

// Help is shown by --help.
func (ReviewCommand) Help() string {
	return `Examples:
  koine review list --status pending
  koine review show 01a2010b-421f-73ae-8f81-4f574b1d21cc
  koine review approve 01a2010b-421f-73ae-8f81-4f574b1d21cc --comment "Seen the contract"`
}

const proposalSelection = `{ id status author: authorId justification reason rules requiredApprovals approvalCount reviewerRoles createdAt expiresAt endedAt conflictReason appliedRevision patches
  reviews { reviewer: reviewerId decision comment time } }`

type proposalInfo struct {
	ID, Status, Author, Justification, Reason, CreatedAt, ExpiresAt, ConflictReason string
	Rules, ReviewerRoles                                                            []string
	RequiredApprovals, ApprovalCount                                                int
	AppliedRevision                                                                 *uint64
	Patches                                                                         []struct {
		Op        string
		Statement changedStatement
	}
	Reviews []struct{ Reviewer, Decision, Comment, Time string }
}

var proposalObjects = objects[proposalInfo]{
	columns: []string{"ID", "STATUS", "AUTHOR", "CREATED", "APPROVALS", "PATCHES", "REASON"},
	row: func(p *proposalInfo) []string {
		return []string{p.ID, strings.ToLower(p.Status), p.Author, p.CreatedAt, fmt.Sprintf("%d of %d", p.ApprovalCount, p.RequiredApprovals), strconv.Itoa(len(p.Patches)), p.Reason}
	},
}

type listProposals struct {
	cli.ServerFlags
	Status string `help:"List only proposals with this status: pending, applied, rejected, withdrawn, expired or conflicted." placeholder:"STATUS" completes:"pending,applied,rejected,withdrawn,expired,conflicted"`
	Author string `help:"List only proposals of this agent." placeholder:"AGENT"`
	Limit  int    `help:"Maximum number of proposals to list, the newest first." default:"100" placeholder:"N"`
	cli.OutputFlags
}

// Run prints a row per proposal.
func (c *listProposals) Run(ctx context.Context, t cli.Terminal) error {
	if c.Limit < 1 {
		return cli.Usagef("--limit must be at least 1")
	}
	if statuses := []string{"pending", "applied", "rejected", "withdrawn", "expired", "conflicted"}; c.Status != "" && !slices.Contains(statuses, strings.ToLower(c.Status)) {
		return cli.NotOneOf("--status", c.Status, statuses...)
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	variables := map[string]any{}
	if c.Status != "" {
		variables["status"] = strings.ToUpper(c.Status)
	}
	if c.Author != "" {
		variables["author"] = c.Author
	}
	nodes, err := cli.ReadPages(ctx, server, `query($status: ProposalStatus, $author: ID, $first: Int, $after: Cursor) { proposals(status: $status, authorId: $author, first: $first, after: $after) { nodes `+proposalSelection+cli.PageFields+` } }`, "proposals", variables)
	if err != nil {
		return err
	}
	slices.Reverse(nodes) // the server lists the oldest first
	nodes = nodes[:min(len(nodes), c.Limit)]
	return proposalObjects.print(ctx, t, server, c.OutputFlags, nodes...)
}

type showProposal struct {
	ID string `arg:"" help:"Id of the proposal."`
	cli.ServerFlags
	cli.OutputFlags
}

// Run prints the proposal, its patches and its reviews; with --csv a row as in the list.
func (c *showProposal) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	raw, err := fetchObject(ctx, server, "proposal "+c.ID, `query($id: ID!) { one: proposal(id: $id) `+proposalSelection+` }`, map[string]any{"id": c.ID})
	switch {
	case err != nil:
		return err
	case c.JSON:
		return cli.PrintJSON(t.Out, raw, false)
	case c.CSV:
		return proposalObjects.print(ctx, t, server, c.OutputFlags, raw)
	}
	p, err := decodeObject[proposalInfo](raw)
	if err != nil {
		return err
	}
	short, err := cli.FetchPrefixes(ctx, server)
	if err != nil {
		return err
	}
	for _, b := range p.detailTables() {
		if len(b.Rows) == 0 {
			continue
		}
		if err := b.ShortenIRIs(short).Print(t); err != nil {
			return err
		}
	}
	return nil
}

// detailTables returns the tables of show: fields, patches, reviews.
func (p *proposalInfo) detailTables() []*cli.Table {
	fields := &cli.Table{Columns: []string{"FIELD", "VALUE"}}
	for _, f := range [][]string{
		{"id", p.ID}, {"status", strings.ToLower(p.Status)}, {"author", p.Author}, {"justification", p.Justification}, {"reason", p.Reason},
		{"approvals", fmt.Sprintf("%d of %d", p.ApprovalCount, p.RequiredApprovals)}, {"reviewers", strings.Join(p.ReviewerRoles, " ")},
		{"created", p.CreatedAt}, {"expires", p.ExpiresAt}, {"conflict", p.ConflictReason},
	} {
		if f[1] != "" {
			fields.Rows = append(fields.Rows, f)
		}
	}
	if p.AppliedRevision != nil {
		fields.Rows = append(fields.Rows, []string{"applied in", strconv.FormatUint(*p.AppliedRevision, 10)})
	}
	patches := &cli.Table{Title: "\npatches", Columns: []string{"OP", "SUBJECT", "PREDICATE", "OBJECT", "GRAPH"}}
	for _, one := range p.Patches {
		s := &one.Statement
		patches.Rows = append(patches.Rows, []string{one.Op, s.Subject.String(), s.Predicate.String(), s.Object.String(), s.Graph})
	}
	reviews := &cli.Table{Title: "\nreviews", Columns: []string{"REVIEWER", "DECISION", "AT", "COMMENT"}}
	for _, r := range p.Reviews {
		reviews.Rows = append(reviews.Rows, []string{r.Reviewer, strings.ToLower(r.Decision), r.Time, r.Comment})
	}
	return []*cli.Table{fields, patches, reviews}
}

// reviewDecision approves or rejects a proposal.
type reviewDecision struct {
	ID string `arg:"" help:"Id of the proposal."`
	cli.ServerFlags
	Comment string `help:"Comment, kept with the decision." placeholder:"TEXT"`
	JSON    bool   `help:"Print the proposal as JSON."`
}

type (
	approveProposal struct{ reviewDecision }
	rejectProposal  struct{ reviewDecision }
)

// Run approves the proposal.
func (c *approveProposal) Run(ctx context.Context, t cli.Terminal) error {
	return c.reviewProposal(ctx, t, "APPROVE")
}

// Run rejects the proposal.
func (c *rejectProposal) Run(ctx context.Context, t cli.Terminal) error {
	return c.reviewProposal(ctx, t, "REJECT")
}

func (c *reviewDecision) reviewProposal(ctx context.Context, t cli.Terminal, decision string) error {
	variables := map[string]any{"id": c.ID, "decision": decision}
	if c.Comment != "" {
		variables["comment"] = c.Comment
	}
	return endProposal(ctx, t, &c.ServerFlags, c.ID, c.JSON, `mutation($id: ID!, $decision: ReviewDecision!, $comment: String) { one: reviewProposal(input: {proposalId: $id, decision: $decision, comment: $comment}) { proposal `+proposalSelection+` } }`, variables)
}

type withdrawn struct {
	ID string `arg:"" help:"Id of the proposal."`
	cli.ServerFlags
	JSON bool `help:"Print the proposal as JSON."`
}

// Run withdraws the proposal.
func (c *withdrawn) Run(ctx context.Context, t cli.Terminal) error {
	return endProposal(ctx, t, &c.ServerFlags, c.ID, c.JSON, `mutation($id: ID!) { one: withdrawProposal(input: {proposalId: $id}) { proposal `+proposalSelection+` } }`, map[string]any{"id": c.ID})
}

// endProposal sends a mutation that ends a proposal and prints the resulting status.
func endProposal(ctx context.Context, t cli.Terminal, s *cli.ServerFlags, id string, asJSON bool, mutation string, variables map[string]any) error {
	server, err := s.OpenClient(ctx)
	if err != nil {
		return err
	}
	raw, err := changeObject(ctx, server, "proposal", id, mutation, variables)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(t.Out, raw, true)
	}
	p, err := decodeObject[proposalInfo](raw)
	if err != nil {
		return err
	}
	text := strings.ToLower(p.Status)
	if p.AppliedRevision != nil {
		text += fmt.Sprintf(", applied in revision %d", *p.AppliedRevision)
	} else if p.Status == "PENDING" {
		text += fmt.Sprintf(", %d of %d approvals", p.ApprovalCount, p.RequiredApprovals)
	}
	_, err = fmt.Fprintln(t.Out, text)
	return err
}

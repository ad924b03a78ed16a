package online

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// IntentCommand groups the commands for intents.
type IntentCommand struct {
	Create createIntent  `cmd:"" help:"Create an intent and print its id."`
	Apply  applyWorkflow `cmd:"" help:"Create the intent and the channels of a workflow file."`
	List   listIntents   `cmd:"" help:"List the intents that you may see."`
	Show   showIntent    `cmd:"" help:"Show an intent."`
	Patch  patchIntent   `cmd:"" help:"Change the state of an intent."`
	Status setStatus     `cmd:"" help:"Set the status of an intent."`
	Assign assignAgent   `cmd:"" help:"Assign an agent to an intent."`
	Grant  grantAccess   `cmd:"" help:"Give an agent or a role access to an intent."`
	Lease  acquireLease  `cmd:"" help:"Lease a part of an intent and print the id of the lease."`
	Free   releaseLease  `cmd:"" help:"Release a lease."`
	Events intentEvents  `cmd:"" help:"Print the events of an intent."`
}

// Help is shown by --help.
func (IntentCommand) Help() string {
	return `An intent is a goal that agents work on: it has a state, a status, channels and a log of events. You manage the intents that you create.

Examples (with koine serve --demo):
  id=$(koine intent create 'Count the cells' --agent bob --as ann)
  koine intent patch $id found/rows=7 --as bob
  koine intent lease $id counting --as bob
  koine intent status $id completed --as ann
  koine intent events $id --as bob`
}

const intentFields = `{ intentId title status version state description createdById updatedAt assignments { agentId role } }`

// intentInfo is an intent as intentFields selects it.
type intentInfo struct {
	IntentID, Title, Status string
	Version                 int64
	State                   json.RawMessage
	UpdatedAt               time.Time
	Assignments             []struct{ AgentID, Role string }
}

var intentObjects = objects[intentInfo]{
	columns: []string{"ID", "STATUS", "VERSION", "UPDATED", "AGENTS", "TITLE"},
	row: func(it *intentInfo) []string {
		var agents []string
		for _, a := range it.Assignments {
			agents = append(agents, strings.TrimPrefix(a.AgentID, "agent://"))
		}
		return []string{it.IntentID, strings.ToLower(it.Status), strconv.FormatInt(it.Version, 10), it.UpdatedAt.UTC().Format(time.DateTime), strings.Join(agents, " "), it.Title}
	},
}

// createIntent creates an intent.
type createIntent struct {
	Title string `arg:"" help:"Title of the intent."`
	cli.ServerFlags
	Description string   `help:"Description of the intent." placeholder:"TEXT"`
	State       string   `help:"State that it begins with, a JSON object." placeholder:"JSON"`
	Agent       []string `help:"Agent with access; may be repeated." placeholder:"AGENT"`
	Everybody   bool     `help:"Give access to everyone whom the server admits."`
	Active      bool     `help:"Begin with the status active (default: draft)."`
	Once        string   `help:"Idempotency key: commands with the same key create one intent." placeholder:"KEY"`
	JSON        bool     `help:"Print the intent as JSON."`
}

// Run creates the intent and prints its id.
func (c *createIntent) Run(ctx context.Context, t cli.Terminal) error {
	input := map[string]any{"title": c.Title, "access": map[string]any{"everybody": c.Everybody, "agentIds": slices.Clone(c.Agent)}}
	if c.Description != "" {
		input["description"] = c.Description
	}
	if c.State != "" {
		if !json.Valid([]byte(c.State)) {
			return cli.Usagef("--state must be a JSON object")
		}
		input["state"] = json.RawMessage(c.State)
	}
	if c.Active {
		input["status"] = "ACTIVE"
	}
	if c.Once != "" {
		input["idempotencyKey"] = c.Once
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	raw, err := mutateIntent(ctx, server, "", "createIntent", "CreateIntentInput", input)
	if err != nil {
		return err
	}
	return printIntent(t, raw, c.JSON)
}

// mutateIntent runs a mutation of an intent and returns the intent.
func mutateIntent(ctx context.Context, server *client.Client, id, field, inputType string, input map[string]any) (json.RawMessage, error) {
	mutation := fmt.Sprintf(`mutation($input: %s!) { one: %s(input: $input) { intent %s } }`, inputType, field, intentFields)
	return changeObject(ctx, server, "intent", id, mutation, map[string]any{"input": input})
}

// printIntent prints the id of an intent, or all of it as JSON.
func printIntent(t cli.Terminal, raw json.RawMessage, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(t.Out, raw, true)
	}
	it, err := decodeObject[intentInfo](raw)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.Out, it.IntentID)
	return err
}

type listIntents struct {
	cli.ServerFlags
	Status string `help:"List only intents with this status." enum:"draft,active,blocked,suspended_awaiting_input,completed,abandoned," default:"" placeholder:"STATUS"`
	cli.OutputFlags
}

// Run prints a row for each intent.
func (c *listIntents) Run(ctx context.Context, t cli.Terminal) error {
	const query = `query($first: Int, $after: Cursor, $status: IntentStatus) { intents(first: $first, after: $after, status: $status) { nodes ` + intentFields + cli.PageFields + ` } }`
	variables := map[string]any{}
	if c.Status != "" {
		variables["status"] = strings.ToUpper(c.Status)
	}
	return intentObjects.printAll(ctx, t, &c.ServerFlags, c.OutputFlags, query, "intents", variables)
}

type showIntent struct {
	ID string `arg:"" help:"Intent to show."`
	cli.ServerFlags
}

// Run prints the intent as JSON.
func (c *showIntent) Run(ctx context.Context, t cli.Terminal) error {
	const query = `query($id: ID!) { one: intent(id: $id) { intentId title description status state constraints governance confidence version parentId dependsOnIds
		assignments { agentId role at } grants { grantId agentId role level expiresAt } tasks { taskId name status version } leases(first: 100) { nodes { leaseId scope agentId expiresAt } }
		scope { access { everybody agentIds roles } channels(first: 100) { nodes { id name } } } createdById createdAt updatedAt } }`
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	raw, err := fetchObject(ctx, server, "intent "+c.ID, query, map[string]any{"id": c.ID})
	if err != nil {
		return err
	}
	return cli.PrintJSON(t.Out, raw, false)
}

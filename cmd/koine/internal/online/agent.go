package online

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"koine/cmd/koine/internal/cli"
)

// AgentCommand groups the commands for the agents that a server knows.
type AgentCommand struct {
	List       listAgents      `cmd:"" help:"List the agents that the server knows."`
	Show       showAgent       `cmd:"" help:"Show an agent and its registration."`
	Register   registerAgent   `cmd:"" help:"Register an agent, so that others can send it messages."`
	Upstream   agentUpstream   `cmd:"" help:"Set the A2A server that an agent is, show it or remove it."`
	Deregister deregisterAgent `cmd:"" help:"Deregister an agent."`
}

// Help is shown by --help.
func (AgentCommand) Help() string {
	return `REGISTERED is the time of the registration, or no: agents that are not registered cannot be sent messages. STATUS tells whether the server admits the agent.

Examples:
  koine agent list --capability count
  koine agent show counter
  koine agent register counter card.json --as counter
  koine agent upstream counter https://counter.example/a2a --bearer-file token --as counter
  koine agent deregister counter --as counter`
}

const agentFields = `{ id name owner: ownerId roles status createdAt statementCount presence { status } registration { description version capabilities endpoint registeredAt } }`

type agentInfo struct {
	ID, Name, Owner, Status, CreatedAt string
	Roles                              []string
	Presence                           *struct{ Status string }
	Registration                       *struct {
		Description, Version, Endpoint, RegisteredAt string
		Capabilities                                 []string
	}
}

var agentObjects = objects[agentInfo]{
	columns: []string{"AGENT", "NAME", "STATUS", "REGISTERED", "PRESENCE", "SINCE", "CAPABILITIES", "DESCRIPTION"},
	row: func(a *agentInfo) []string {
		row := []string{a.ID, a.Name, strings.ToLower(a.Status), "no", "", a.CreatedAt, "", ""}
		if a.Presence != nil {
			row[4] = strings.ToLower(a.Presence.Status)
		}
		if r := a.Registration; r != nil {
			row[3], row[6], row[7] = r.RegisteredAt, strings.Join(r.Capabilities, " "), r.Description
		}
		return row
	},
}

type listAgents struct {
	cli.ServerFlags
	Capability string `help:"List only registered agents with this capability." placeholder:"WORD"`
	cli.OutputFlags
}

// Run prints a row for each agent.
func (c *listAgents) Run(ctx context.Context, t cli.Terminal) error {
	variables := map[string]any{}
	if c.Capability != "" {
		variables["capability"] = c.Capability
	}
	const query = `query($first: Int, $after: Cursor, $capability: String) { agents(first: $first, after: $after, capability: $capability) { nodes ` + agentFields + cli.PageFields + ` } }`
	return agentObjects.printAll(ctx, t, &c.ServerFlags, c.OutputFlags, query, "agents", variables)
}

type showAgent struct {
	ID string `arg:"" help:"Id of the agent."`
	cli.ServerFlags
	cli.OutputFlags
}

// Run prints the agent.
func (c *showAgent) Run(ctx context.Context, t cli.Terminal) error {
	return agentObjects.printOne(ctx, t, &c.ServerFlags, c.OutputFlags, "agent "+c.ID, `query($id: ID!) { one: agent(id: $id) `+agentFields+` }`, map[string]any{"id": c.ID})
}

type registerAgent struct {
	ID   string `arg:"" help:"Id of the agent."`
	Card string `arg:"" help:"JSON file with its description (name, description, capabilities, …); - reads standard input." type:"path"`
	cli.ServerFlags
	JSON bool `help:"Print the agent as JSON."`
}

// Run prints the id of the agent.
func (c *registerAgent) Run(ctx context.Context, t cli.Terminal) error {
	text, err := cli.ReadText(t, "", c.Card)
	if err != nil {
		return err
	}
	var card map[string]any
	if err := json.Unmarshal([]byte(text), &card); err != nil {
		return cli.Usagef("%s is not a JSON object: %w", c.Card, err)
	}
	return changeAgent(ctx, t, &c.ServerFlags, c.ID, c.JSON, `mutation($input: RegisterAgentInput!) { one: registerAgent(input: $input) { agent `+agentFields+` } }`,
		map[string]any{"input": map[string]any{"agentId": c.ID, "card": card}})
}

type deregisterAgent struct {
	ID string `arg:"" help:"Id of the agent."`
	cli.ServerFlags
	JSON bool `help:"Print the agent as JSON."`
}

// Run prints the id of the agent.
func (c *deregisterAgent) Run(ctx context.Context, t cli.Terminal) error {
	return changeAgent(ctx, t, &c.ServerFlags, c.ID, c.JSON, `mutation($id: ID!) { one: deregisterAgent(input: {agentId: $id}) { agent `+agentFields+` } }`, map[string]any{"id": c.ID})
}

// changeAgent runs a mutation about an agent and prints the agent's id, or with asJSON the
// whole agent.
func changeAgent(ctx context.Context, t cli.Terminal, s *cli.ServerFlags, id string, asJSON bool, mutation string, variables map[string]any) error {
	server, err := s.OpenClient(ctx)
	if err != nil {
		return err
	}
	raw, err := changeObject(ctx, server, "agent", id, mutation, variables)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(t.Out, raw, true)
	}
	a, err := decodeObject[agentInfo](raw)
	if err == nil {
		_, err = fmt.Fprintln(t.Out, a.ID)
	}
	return err
}

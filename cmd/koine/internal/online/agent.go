package online

import (
	"context"
	"encoding/json"
	"fmt"
	"koine/cmd/koine/internal/cli"
	"strings"
)

// AgentCommand groups the commands for the agents that a server knows.
type AgentCommand struct {
	List       listAgents      `cmd:"" help:"List the agents that the server knows."`
	Show       showAgent       `cmd:"" help:"Show an agent and its registration."`
	Register   registerAgent   `cmd:"" help:"Register an agent, so that others can send it messages."`
	Deregister deregisterAgent `cmd:"" help:"Deregister an agent."`
}

// Help is shown by --help.
func (AgentCommand) Help() string {
	return `REGISTERED is the time of the registration, or no: agents that are not registered cannot be sent messages. STATUS tells whether the server admits the agent.

Examples:
  koine agent list --capability count
  koine agent show counter
  koine agent register counter card.json --as counter
  koine agent deregister counter --as counter`
}

const agentFields = `{ id name owner roles status createdAt statementCount presence { status } registration { description version capabilities endpoint registeredAt } }`

type agentInfo struct {
	ID, Name, Owner, Status, CreatedAt string
	Roles                              []string
	Presence                           *struct{ Status string }
	Registration                       *struct {
		Description, Version, Endpoint, RegisteredAt string
		Capabilities                                 []string
	}
}

func agentTable(raw []json.RawMessage) (*cli.Table, error) {
	b := &cli.Table{Columns: []string{"AGENT", "NAME", "STATUS", "REGISTERED", "PRESENCE", "SINCE", "CAPABILITIES", "DESCRIPTION"}}
	for _, one := range raw {
		var a agentInfo
		if err := json.Unmarshal(one, &a); err != nil {
			return nil, cli.InvalidResponse(err)
		}
		row := []string{a.ID, a.Name, strings.ToLower(a.Status), "no", "", a.CreatedAt, "", ""}
		if a.Presence != nil {
			row[4] = strings.ToLower(a.Presence.Status)
		}
		if r := a.Registration; r != nil {
			row[3], row[6], row[7] = r.RegisteredAt, strings.Join(r.Capabilities, " "), r.Description
		}
		b.Rows = append(b.Rows, row)
	}
	return b, nil
}

type listAgents struct {
	cli.ServerFlags
	Capability string `help:"List only registered agents with this capability." placeholder:"WORD"`
	cli.OutputFlags
}

// Run prints a row for each agent.
func (c *listAgents) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	variables := map[string]any{}
	if c.Capability != "" {
		variables["capability"] = c.Capability
	}
	all, err := readPages(ctx, server, `query($first: Int, $after: String, $capability: String) { agents(first: $first, after: $after, capability: $capability) `+agentFields+` }`, "agents", "id", variables)
	if err != nil {
		return err
	}
	b, err := agentTable(all)
	if err != nil {
		return err
	}
	return c.PrintList(ctx, t, server, all, b)
}

type showAgent struct {
	ID string `arg:"" help:"Id of the agent."`
	cli.ServerFlags
	cli.OutputFlags
}

// Run prints the agent.
func (c *showAgent) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	var answer struct{ Agent json.RawMessage }
	if err := server.GraphQL(ctx, `query($id: String!) { agent(id: $id) `+agentFields+` }`, map[string]any{"id": c.ID}, &answer); err != nil {
		return err
	}
	if cli.IsNull(answer.Agent) {
		return cli.Refusedf("agent %s does not exist, or you may not see it", c.ID)
	}
	b, err := agentTable([]json.RawMessage{answer.Agent})
	if err != nil {
		return err
	}
	return c.PrintList(ctx, t, server, []json.RawMessage{answer.Agent}, b)
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
	return sendAgentMutation(ctx, t, &c.ServerFlags, c.JSON, `mutation($input: RegisterAgentInput!) { made: registerAgent(input: $input) `+agentFields+` }`,
		map[string]any{"input": map[string]any{"id": c.ID, "card": card}})
}

type deregisterAgent struct {
	ID string `arg:"" help:"Id of the agent."`
	cli.ServerFlags
	JSON bool `help:"Print the agent as JSON."`
}

// Run prints the id of the agent.
func (c *deregisterAgent) Run(ctx context.Context, t cli.Terminal) error {
	return sendAgentMutation(ctx, t, &c.ServerFlags, c.JSON, `mutation($id: String!) { made: deregisterAgent(id: $id) `+agentFields+` }`, map[string]any{"id": c.ID})
}

// sendAgentMutation runs a mutation about an agent and prints the agent's id, or with
// asJSON the whole agent.
func sendAgentMutation(ctx context.Context, t cli.Terminal, s *cli.ServerFlags, asJSON bool, mutation string, variables map[string]any) error {
	server, err := s.OpenClient(ctx)
	if err != nil {
		return err
	}
	var answer struct{ Made json.RawMessage }
	if err := server.GraphQL(ctx, mutation, variables, &answer); err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(t.Out, answer.Made, true)
	}
	var a agentInfo
	if err := json.Unmarshal(answer.Made, &a); err != nil {
		return cli.InvalidResponse(err)
	}
	_, err = fmt.Fprintln(t.Out, a.ID)
	return err
}

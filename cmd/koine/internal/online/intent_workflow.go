package online

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"gopkg.in/yaml.v3"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// applyWorkflow creates the intents that a workflow file of RFC-0021 describes.
type applyWorkflow struct {
	File string `arg:"" help:"Workflow file; - is the standard input."`
	cli.ServerFlags
	Once string `help:"Idempotency key: commands with the same key create one intent." placeholder:"KEY"`
}

// Help is shown by --help.
func (applyWorkflow) Help() string {
	return `The file has the title of the intent, its channels with members, member_policy (intent or explicit), audit, ttl_seconds and max_messages, and its agents. Agents and members of channels are assigned to the intent. on_message of an agent names the methods that koine_openintent calls for messages of a channel.

Example:
  version: "1.0"
  intent:
    title: Research Q1 Financials
  channels:
    data-clarification:
      members: [research-agent, data-agent]
      member_policy: explicit
      audit: true
  agents:
    data-agent:
      on_message:
        - channel: data-clarification
          handler: answer_questions`
}

// workflow is a workflow file.
type workflow struct {
	Version string `yaml:"version"`
	Intent  struct {
		Title       string `yaml:"title"`
		Description string `yaml:"description"`
	} `yaml:"intent"`
	Channels map[string]workflowChannel `yaml:"channels"`
	Agents   map[string]workflowAgent   `yaml:"agents"`
}

type workflowChannel struct {
	Members      []string `yaml:"members"`
	MemberPolicy string   `yaml:"member_policy"`
	Audit        bool     `yaml:"audit"`
	TTLSeconds   int64    `yaml:"ttl_seconds"`
	MaxMessages  *int64   `yaml:"max_messages"`
}

type workflowAgent struct {
	OnMessage []struct {
		Channel string `yaml:"channel" json:"channel,omitempty"`
		Handler string `yaml:"handler" json:"handler"`
	} `yaml:"on_message" json:"on_message,omitempty"`
}

const (
	maxWorkflowBytes    = 1 << 20
	defaultKeptMessages = 1000 // of a channel of RFC-0021
)

// parseWorkflow reads and checks a workflow file.
func parseWorkflow(r io.Reader) (*workflow, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxWorkflowBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxWorkflowBytes {
		return nil, fmt.Errorf("the file has more than %d bytes", maxWorkflowBytes)
	}
	w := new(workflow)
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(w); err != nil {
		return nil, err
	}
	switch {
	case w.Version != "1.0":
		return nil, fmt.Errorf("version is %q; this koine reads version \"1.0\"", w.Version)
	case w.Intent.Title == "":
		return nil, errors.New("intent.title is missing")
	}
	for name, c := range w.Channels {
		if c.MemberPolicy != "" && c.MemberPolicy != "intent" && c.MemberPolicy != "explicit" {
			return nil, fmt.Errorf("channels.%s.member_policy is %q; it is intent or explicit", name, c.MemberPolicy)
		}
	}
	for name, a := range w.Agents {
		for _, on := range a.OnMessage {
			if on.Handler == "" {
				return nil, fmt.Errorf("agents.%s.on_message has an entry without a handler", name)
			}
			if _, ok := w.Channels[on.Channel]; on.Channel != "" && !ok {
				return nil, fmt.Errorf("agents.%s.on_message names the channel %q, which is not in channels", name, on.Channel)
			}
		}
	}
	return w, nil
}

// participants lists the agents of a workflow and the members of its channels.
func (w *workflow) participants() []string {
	all := map[string]bool{}
	for name := range w.Agents {
		all[name] = true
	}
	for _, c := range w.Channels {
		for _, name := range c.Members {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Run creates the intent, assigns its agents, creates its channels, and prints the id.
func (c *applyWorkflow) Run(ctx context.Context, t cli.Terminal) error {
	in := t.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return cli.AsUsage(err)
		}
		defer f.Close()
		in = f
	}
	w, err := parseWorkflow(in)
	if err != nil {
		return cli.Usagef("%s: %w", cmp.Or(c.File, "-"), err)
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	input := map[string]any{
		"title": w.Intent.Title, "status": "ACTIVE",
		"constraints": map[string]any{"workflow": map[string]any{"version": w.Version, "agents": w.Agents}},
	}
	if w.Intent.Description != "" {
		input["description"] = w.Intent.Description
	}
	if c.Once != "" {
		input["idempotencyKey"] = c.Once
	}
	raw, err := mutateIntent(ctx, server, "", "createIntent", "CreateIntentInput", input)
	if err != nil {
		return err
	}
	it, err := decodeObject[intentInfo](raw)
	if err != nil {
		return err
	}
	for _, agent := range w.participants() {
		if _, err := mutateIntent(ctx, server, it.IntentID, "assignAgent", "AssignAgentInput", map[string]any{"intentId": it.IntentID, "agentId": agent}); err != nil {
			return fmt.Errorf("assign %s to intent %s: %w", agent, it.IntentID, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Channels)) {
		if err := createWorkflowChannel(ctx, server, it.IntentID, name, w.Channels[name], c.Once); err != nil {
			return fmt.Errorf("create channel %s of intent %s: %w", name, it.IntentID, err)
		}
	}
	return printIntent(t, raw, false)
}

// createWorkflowChannel creates a channel of a workflow.
func createWorkflowChannel(ctx context.Context, server *client.Client, intent, name string, c workflowChannel, once string) error {
	input := map[string]any{"name": name, "scopeId": intent, "memberPolicy": "SCOPE", "audit": c.Audit, "keepMessages": defaultKeptMessages}
	if c.MemberPolicy == "explicit" {
		input["memberPolicy"] = "EXPLICIT"
	}
	if c.MaxMessages != nil {
		input["keepMessages"] = *c.MaxMessages
	}
	if c.TTLSeconds != 0 {
		input["expireAfterSeconds"] = c.TTLSeconds
	}
	if once != "" {
		input["idempotencyKey"] = once + "/" + name
	}
	var members []map[string]any
	for _, agent := range c.Members {
		members = append(members, map[string]any{"agentId": agent})
	}
	if members != nil {
		input["members"] = members
	}
	return server.GraphQL(ctx, `mutation($input: CreateChannelInput!) { createChannel(input: $input) { channel { id } } }`, map[string]any{"input": input}, nil)
}

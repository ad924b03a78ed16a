package online

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

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
	Everybody   bool     `help:"Give everybody access that the server admits."`
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

type patchIntent struct {
	ID      string   `arg:"" help:"Intent to change."`
	Changes []string `arg:"" optional:"" help:"Values to set: PATH=VALUE, where VALUE is JSON or else a text, and PATH names members separated by slashes."`
	cli.ServerFlags
	Append []string `help:"Append a value to a list: PATH=VALUE; may be repeated." placeholder:"PATH=VALUE"`
	Remove []string `help:"Remove the value at a path; may be repeated." placeholder:"PATH"`
	Expect int64    `help:"Version that the intent must have (default: the current one)." placeholder:"N"`
	JSON   bool     `help:"Print the intent as JSON."`
}

// Run changes the state and prints it.
func (c *patchIntent) Run(ctx context.Context, t cli.Terminal) error {
	var patches []map[string]any
	for _, change := range []struct {
		op   string
		list []string
	}{{"SET", c.Changes}, {"APPEND", c.Append}} {
		for _, text := range change.list {
			path, value, ok := strings.Cut(text, "=")
			if !ok || path == "" {
				return cli.Usagef("%q is not PATH=VALUE", text)
			}
			patches = append(patches, map[string]any{"op": change.op, "path": path, "value": jsonOrText(value)})
		}
	}
	for _, path := range c.Remove {
		patches = append(patches, map[string]any{"op": "REMOVE", "path": path})
	}
	if len(patches) == 0 {
		return cli.Usagef("name a change: PATH=VALUE, --append or --remove")
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	version, err := intentVersion(ctx, server, c.ID, c.Expect)
	if err != nil {
		return err
	}
	raw, err := mutateIntent(ctx, server, c.ID, "patchIntentState", "PatchIntentStateInput", map[string]any{"intentId": c.ID, "expectedVersion": version, "patches": patches})
	if err != nil || c.JSON {
		return errors.Join(err, printIfAny(t, raw))
	}
	it, err := decodeObject[intentInfo](raw)
	if err != nil {
		return err
	}
	return cli.PrintJSON(t.Out, it.State, true)
}

// printIfAny prints JSON, nothing for nil.
func printIfAny(t cli.Terminal, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	return cli.PrintJSON(t.Out, raw, true)
}

// jsonOrText returns a value that is JSON as it is, and any other as a text.
func jsonOrText(value string) any {
	if json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	return value
}

// intentVersion returns the version that was asked for, or that of the intent for 0.
func intentVersion(ctx context.Context, server *client.Client, id string, wanted int64) (int64, error) {
	if wanted != 0 {
		return wanted, nil
	}
	raw, err := fetchObject(ctx, server, "intent "+id, `query($id: ID!) { one: intent(id: $id) { version } }`, map[string]any{"id": id})
	if err != nil {
		return 0, err
	}
	it, err := decodeObject[intentInfo](raw)
	if err != nil {
		return 0, err
	}
	return it.Version, nil
}

type setStatus struct {
	ID     string `arg:"" help:"Intent to change."`
	Status string `arg:"" help:"draft, active, blocked, suspended_awaiting_input, completed or abandoned. The last two are final." enum:"draft,active,blocked,suspended_awaiting_input,completed,abandoned"`
	cli.ServerFlags
	Expect int64  `help:"Version that the intent must have (default: the current one)." placeholder:"N"`
	Why    string `help:"Reason for the change." placeholder:"TEXT"`
	JSON   bool   `help:"Print the intent as JSON."`
}

// Run sets the status and prints the id of the intent.
func (c *setStatus) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	version, err := intentVersion(ctx, server, c.ID, c.Expect)
	if err != nil {
		return err
	}
	input := map[string]any{"intentId": c.ID, "expectedVersion": version, "status": strings.ToUpper(c.Status)}
	if c.Why != "" {
		input["reason"] = c.Why
	}
	raw, err := mutateIntent(ctx, server, c.ID, "setIntentStatus", "SetIntentStatusInput", input)
	if err != nil {
		return err
	}
	return printIntent(t, raw, c.JSON)
}

type assignAgent struct {
	ID    string `arg:"" help:"Intent to assign to."`
	Agent string `arg:"" help:"Agent to assign."`
	cli.ServerFlags
	Role   string `help:"Role of the agent; coordinator manages the intent." default:"worker" placeholder:"ROLE"`
	Remove bool   `help:"End the assignment."`
}

// Run assigns the agent, or ends its assignment.
func (c *assignAgent) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	field, kind, input := "assignAgent", "AssignAgentInput", map[string]any{"intentId": c.ID, "agentId": c.Agent, "role": c.Role}
	if c.Remove {
		field, kind = "unassignAgent", "UnassignAgentInput"
		delete(input, "role")
	}
	_, err = mutateIntent(ctx, server, c.ID, field, kind, input)
	return err
}

type grantAccess struct {
	ID string `arg:"" help:"Intent to give access to."`
	To string `arg:"" help:"Agent, or role:NAME."`
	cli.ServerFlags
	Level string        `help:"read (sees the intent), write (takes part) or admin (manages it)." enum:"read,write,admin" default:"write"`
	For   time.Duration `help:"Time after which the access ends." placeholder:"DURATION"`
	Why   string        `help:"Reason for the grant." placeholder:"TEXT"`
}

// Run grants access and prints the id of the grant.
func (c *grantAccess) Run(ctx context.Context, t cli.Terminal) error {
	input := map[string]any{"intentId": c.ID, "level": strings.ToUpper(c.Level)}
	if role, ok := strings.CutPrefix(c.To, "role:"); ok {
		input["role"] = role
	} else {
		input["agentId"] = c.To
	}
	if c.For != 0 {
		input["expiresAt"] = time.Now().Add(c.For).UTC().Format(time.RFC3339Nano)
	}
	if c.Why != "" {
		input["reason"] = c.Why
	}
	return printIDOf(ctx, t, &c.ServerFlags, "grant", "grantId", c.ID, `mutation($input: GrantAccessInput!) { one: grantAccess(input: $input) { grant { grantId } } }`, input)
}

// printIDOf runs a mutation and prints the id of the object in its payload.
func printIDOf(ctx context.Context, t cli.Terminal, s *cli.ServerFlags, kind, field, id, mutation string, input map[string]any) error {
	server, err := s.OpenClient(ctx)
	if err != nil {
		return err
	}
	raw, err := changeObject(ctx, server, kind, id, mutation, map[string]any{"input": input})
	if err != nil {
		return err
	}
	object, err := decodeObject[map[string]string](raw)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.Out, (*object)[field])
	return err
}

type acquireLease struct {
	ID   string `arg:"" help:"Intent that the part belongs to."`
	Part string `arg:"" help:"Part to lease, any text."`
	cli.ServerFlags
	For time.Duration `help:"Time until the lease ends." default:"5m" placeholder:"DURATION"`
}

// Run acquires the lease and prints its id.
func (c *acquireLease) Run(ctx context.Context, t cli.Terminal) error {
	return printIDOf(ctx, t, &c.ServerFlags, "lease", "leaseId", c.ID, `mutation($input: AcquireLeaseInput!) { one: acquireLease(input: $input) { lease { leaseId } } }`,
		map[string]any{"intentId": c.ID, "scope": c.Part, "seconds": int(c.For.Seconds())})
}

type releaseLease struct {
	ID    string `arg:"" help:"Intent that the lease belongs to."`
	Lease string `arg:"" help:"Lease to release."`
	cli.ServerFlags
}

// Run releases the lease and prints its id.
func (c *releaseLease) Run(ctx context.Context, t cli.Terminal) error {
	return printIDOf(ctx, t, &c.ServerFlags, "lease", "leaseId", c.ID, `mutation($input: ReleaseLeaseInput!) { one: releaseLease(input: $input) { lease { leaseId } } }`,
		map[string]any{"intentId": c.ID, "leaseId": c.Lease})
}

// eventInfo is an event of a scope.
type eventInfo struct {
	Sequence      int64
	Type, ActorID string
	Time          time.Time
	Data          json.RawMessage
}

var eventObjects = objects[eventInfo]{
	columns: []string{"SEQUENCE", "TIME", "ACTOR", "TYPE", "DATA"},
	row: func(e *eventInfo) []string {
		return []string{strconv.FormatInt(e.Sequence, 10), e.Time.UTC().Format(time.DateTime), strings.TrimPrefix(e.ActorID, "agent://"), e.Type, string(e.Data)}
	},
}

type intentEvents struct {
	ID string `arg:"" help:"Intent."`
	cli.ServerFlags
	Verify bool `help:"Check the hash chain instead, and print the number of events and the last hash."`
	cli.OutputFlags
}

// Run prints a row for each event, oldest first.
func (c *intentEvents) Run(ctx context.Context, t cli.Terminal) error {
	if c.Verify {
		return c.verify(ctx, t)
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	const query = `query($id: ID!, $after: Cursor) { one: scope(id: $id) { events(first: 200, after: $after) { nodes { sequence type actorId time data } pageInfo { hasNextPage endCursor } } } }`
	var all []json.RawMessage
	for variables := map[string]any{"id": c.ID}; ; {
		raw, err := fetchObject(ctx, server, "intent "+c.ID, query, variables)
		if err != nil {
			return err
		}
		page, err := decodeObject[struct {
			Events struct {
				Nodes    []json.RawMessage
				PageInfo struct {
					HasNextPage bool
					EndCursor   *string
				}
			}
		}](raw)
		if err != nil {
			return err
		}
		if all = append(all, page.Events.Nodes...); !page.Events.PageInfo.HasNextPage {
			return eventObjects.print(ctx, t, server, c.OutputFlags, all...)
		}
		variables["after"] = page.Events.PageInfo.EndCursor
	}
}

// verify prints the number of events whose chain is intact.
func (c *intentEvents) verify(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	const query = `query($id: ID!, $from: Long!) { one: scope(id: $id) { verifyEvents(fromSequence: $from) { verifiedCount lastHash nextSequence } } }`
	verified, last := int64(0), ""
	for from := int64(1); from != 0; {
		raw, err := fetchObject(ctx, server, "intent "+c.ID, query, map[string]any{"id": c.ID, "from": from})
		if err != nil {
			return err
		}
		check, err := decodeObject[struct {
			VerifyEvents struct {
				VerifiedCount int64
				LastHash      string
				NextSequence  int64
			}
		}](raw)
		if err != nil {
			return err
		}
		verified += check.VerifyEvents.VerifiedCount
		last, from = check.VerifyEvents.LastHash, check.VerifyEvents.NextSequence
	}
	_, err = fmt.Fprintf(t.Out, "%d events verified %s\n", verified, last)
	return err
}

// applyWorkflow creates what a workflow file of RFC-0021 describes.
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

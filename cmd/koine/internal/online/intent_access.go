package online

import (
	"context"
	"fmt"
	"strings"
	"time"

	"koine/cmd/koine/internal/cli"
)

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

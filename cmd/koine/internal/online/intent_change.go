package online

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

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

package offline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/internal/auth"
	"koine/kg"
)

// KeysCommand manages the API keys.
type KeysCommand struct {
	Create createKey `cmd:"" help:"Create a key and print its secret."`
	List   listKeys  `cmd:"" help:"List keys, without their secrets."`
	Rotate rotateKey `cmd:"" help:"Replace a key by a new one with the same rights."`
	Revoke revokeKey `cmd:"" help:"Revoke a key."`
}

// Help is shown by --help.
func (KeysCommand) Help() string {
	return `With --data, the commands work on a data directory that no server has open; otherwise on a server, as an administrator with the key in KOINE_KEY: command lines are visible to other users.

Examples:
  koine keys create --data ./koine-data --agent dora --role reviewer --name "Dora's laptop"
  koine keys list --url http://127.0.0.1:8080
  koine keys rotate 5mZq0RkT8bXa --overlap 24h
  koine keys revoke 5mZq0RkT8bXa`
}

// createKey creates a key.
type createKey struct {
	cli.Target
	Agent  string        `help:"Agent that the key belongs to." placeholder:"AGENT" required:""`
	Name   string        `help:"Display name of the key." placeholder:"TEXT"`
	Role   []string      `help:"Role of the key: admin, reviewer, reader, metrics, backup, or one of your own; may be repeated. A key whose only roles are reader, metrics and backup cannot change anything: reader reads what its agent may read, backup only takes backups." placeholder:"ROLE"`
	ActFor []string      `help:"Agent that the key may act for, or * for all; may be repeated." placeholder:"AGENT"`
	Test   bool          `help:"Create an ak_test_ key."`
	Secret string        `help:"File with the whole text of the key, such as one that another system generated: ak_live_ or, with --test, ak_test_, 12 letters and digits, _, and 43 random ones; - for standard input. Only with --data." name:"secret-file" placeholder:"FILE"`
	Life   time.Duration `help:"Lifetime of the key, such as 720h (default: unlimited)." name:"expires" placeholder:"TIME"`
}

// Run creates a key and writes only the secret to standard output.
func (c *createKey) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	mode := auth.Live
	if c.Test {
		mode = auth.Test
	}
	request := auth.KeyRequest{Agent: kg.AgentID(c.Agent), Label: c.Name, Roles: c.Role, Mode: mode, Lifetime: c.Life}
	for _, agent := range c.ActFor {
		request.ActFor = append(request.ActFor, kg.AgentID(agent))
	}
	if err := c.readSecret(command, t, &request); err != nil {
		return err
	}
	return withKeys(ctx, &c.Target, command, log, c.OpenOrCreate, func(keys *auth.Keys, m kg.Meta) error {
		made, err := keys.Create(ctx, m, request)
		if err != nil {
			return err
		}
		if request.Secret != "" { // the caller has it
			t.Notef("Key %s of %s.", made.Name, made.Agent)
			return nil
		}
		return printKey(t, newWireKey(&made.Key), made.Secret)
	}, func(ctx context.Context, server *client.Client) error {
		input := map[string]any{"agentId": c.Agent, "name": c.Name, "roles": request.Roles, "actFor": c.ActFor, "mode": strings.ToUpper(string(mode))}
		if s := int64(c.Life / time.Second); s > 0 {
			input["lifetimeSeconds"] = s
		}
		var answer struct{ Made createdKey }
		err := server.GraphQL(ctx, `mutation($input: CreateApiKeyInput!) { made: createApiKey(input: $input) { key `+keyFields+` secret } }`, map[string]any{"input": input}, &answer)
		if err != nil {
			return err
		}
		return printKey(t, answer.Made.Key, answer.Made.Secret)
	})
}

// maxSecretFile bounds the bytes that are read of the file of --secret-file: a key and
// spaces around it.
const maxSecretFile = 1 << 10

// readSecret reads the text of the key from the file of --secret-file. The text never goes
// over the network and never into an error.
func (c *createKey) readSecret(command *kong.Context, t cli.Terminal, request *auth.KeyRequest) error {
	if c.Secret == "" {
		return nil
	}
	switch offline, err := c.IsOffline(command); {
	case err != nil:
		return err
	case !offline:
		return cli.Usagef("--secret-file works on a data directory only: pass --data DIR")
	}
	in := t.In
	if c.Secret != "-" {
		file, err := os.Open(c.Secret)
		if err != nil {
			return fmt.Errorf("--secret-file: %w", err)
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxSecretFile))
	if err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	request.Secret = strings.TrimSpace(string(raw))
	if request.Secret == "" {
		return cli.Usagef("--secret-file: %s is empty", c.Secret)
	}
	return nil
}

// listKeys lists the keys.
type listKeys struct {
	cli.Target
	Agent string `help:"List only keys of this agent." placeholder:"AGENT"`
	Ended bool   `help:"List revoked and expired keys as well."`
	cli.OutputFlags
}

// Run prints a table.
func (c *listKeys) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	return withKeys(ctx, &c.Target, command, log, c.OpenToRead, func(keys *auth.Keys, m kg.Meta) error {
		list, err := keys.List(ctx, m.Principal, kg.AgentID(c.Agent), c.Ended)
		if err != nil {
			return err
		}
		out := make([]wireKey, len(list))
		for i := range list {
			out[i] = newWireKey(&list[i])
		}
		return c.printKeys(t, out)
	}, func(ctx context.Context, server *client.Client) error {
		variables := map[string]any{"ended": c.Ended}
		if c.Agent != "" {
			variables["agent"] = c.Agent
		}
		raw, err := cli.ReadPages(ctx, server, `query($agent: ID, $ended: Boolean!, $first: Int, $after: Cursor) { apiKeys(agentId: $agent, includeEnded: $ended, first: $first, after: $after) { nodes `+keyFields+cli.PageFields+` } }`, "apiKeys", variables)
		if err != nil {
			return err
		}
		list := make([]wireKey, len(raw))
		for i := range raw {
			if err := json.Unmarshal(raw[i], &list[i]); err != nil {
				return cli.InvalidResponse(err)
			}
		}
		return c.printKeys(t, list)
	})
}

func (c *listKeys) printKeys(t cli.Terminal, list []wireKey) error {
	b := &cli.Table{Columns: []string{"ID", "MODE", "STATE", "AGENT", "ROLES", "EXPIRES", "NAME"}}
	for _, k := range list {
		expires := "never"
		if k.ExpiresAt != nil {
			expires = k.ExpiresAt.UTC().Format(time.RFC3339)
		}
		b.Rows = append(b.Rows, []string{k.ID, strings.ToLower(k.Mode), strings.ToLower(k.State), k.Agent, strings.Join(k.Roles, ","), expires, k.Name})
	}
	return c.PrintWhole(t, b, func(i int) any { return &list[i] })
}

// rotateKey replaces a key by a new one with the same rights.
type rotateKey struct {
	ID string `arg:"" help:"Id of the key, as printed by koine keys list."`
	cli.Target
	Overlap time.Duration `help:"How long the old key remains valid." default:"0s"`
}

// Run creates a key and writes only the secret to standard output.
func (c *rotateKey) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	return withKeys(ctx, &c.Target, command, log, c.OpenToWrite, func(keys *auth.Keys, m kg.Meta) error {
		made, old, err := keys.Rotate(ctx, m, c.ID, c.Overlap)
		if err != nil {
			return err
		}
		t.Notef("%s is valid until %s.", old.Name, old.Expires.UTC().Format(time.RFC3339))
		return printKey(t, newWireKey(&made.Key), made.Secret)
	}, func(ctx context.Context, server *client.Client) error {
		input := map[string]any{"keyId": c.ID}
		if s := int64(c.Overlap / time.Second); s > 0 {
			input["overlapSeconds"] = s
		}
		var answer struct{ Made createdKey }
		err := server.GraphQL(ctx, `mutation($input: RotateApiKeyInput!) { made: rotateApiKey(input: $input) { key `+keyFields+` secret replaced `+keyFields+` } }`, map[string]any{"input": input}, &answer)
		if err != nil {
			return err
		}
		t.Notef("%s is valid until %s.", answer.Made.Replaced.ID, answer.Made.Replaced.ExpiresAt.UTC().Format(time.RFC3339))
		return printKey(t, answer.Made.Key, answer.Made.Secret)
	})
}

// revokeKey revokes a key.
type revokeKey struct {
	ID string `arg:"" help:"Id of the key, as printed by koine keys list."`
	cli.Target
}

// Run revokes the key.
func (c *revokeKey) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	return withKeys(ctx, &c.Target, command, log, c.OpenToWrite, func(keys *auth.Keys, m kg.Meta) error {
		_, err := keys.Revoke(ctx, m, c.ID)
		return err
	}, func(ctx context.Context, server *client.Client) error {
		return server.GraphQL(ctx, `mutation($id: ID!) { revokeApiKey(input: {keyId: $id}) { key { id } } }`, map[string]any{"id": c.ID}, nil)
	})
}

// withKeys runs here on the data directory, opened by open, or there on the server.
func withKeys(ctx context.Context, t *cli.Target, command *kong.Context, log *slog.Logger, open func(*slog.Logger, kg.Options) (*kg.Store, error), here func(*auth.Keys, kg.Meta) error, there func(context.Context, *client.Client) error) error {
	offline, err := t.IsOffline(command)
	if err != nil {
		return err
	}
	if !offline {
		server, err := t.ServerFlags().OpenClient(ctx)
		if err != nil {
			return err
		}
		return there(ctx, server)
	}
	store, err := open(log, kg.Options{ReserveBytes: 1})
	if err != nil {
		return err
	}
	err = here(auth.NewKeys(store), kg.Meta{Principal: t.LocalPrincipal()})
	return cmp.Or(err, store.Close())
}

// wireKey is a key as GraphQL encodes it.
type wireKey struct {
	ID        string     `json:"id"`
	Mode      string     `json:"mode"`
	State     string     `json:"state"`
	Agent     string     `json:"agent"`
	Name      string     `json:"name"`
	Roles     []string   `json:"roles"`
	ActFor    []string   `json:"actFor"`
	ExpiresAt *time.Time `json:"expiresAt"`
}

const keyFields = `{ id mode state agent: agentId name roles actFor: actForIds expiresAt }`

type createdKey struct {
	Key      wireKey
	Secret   string
	Replaced wireKey
}

func newWireKey(k *auth.Key) wireKey {
	w := wireKey{ID: k.Name, Mode: strings.ToUpper(string(k.Mode)), State: string(k.StateAt(time.Now())), Agent: string(k.Agent), Name: k.Label, Roles: k.Roles}
	for _, agent := range k.ActFor {
		w.ActFor = append(w.ActFor, string(agent))
	}
	if !k.Expires.IsZero() {
		w.ExpiresAt = &k.Expires
	}
	return w
}

// printKey writes the secret of a new key to standard output, for scripts, and a note to
// standard error.
func printKey(t cli.Terminal, k wireKey, secret string) error {
	t.Notef("Key %s of %s. It is printed only once:", k.ID, k.Agent)
	_, err := fmt.Fprintln(t.Out, secret)
	return err
}

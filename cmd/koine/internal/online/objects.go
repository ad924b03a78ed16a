package online

import (
	"context"
	"encoding/json"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// objects is a kind of objects of a server that commands list, show and change, such as
// graphs. T is the part of one that its row shows.
type objects[T any] struct {
	columns []string
	row     func(*T) []string
}

// decodeObject decodes an object of a response.
func decodeObject[T any](raw json.RawMessage) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, cli.InvalidResponse(err)
	}
	return object, nil
}

// table returns a table with a row for each object.
func (k *objects[T]) table(raw ...json.RawMessage) (*cli.Table, error) {
	b := &cli.Table{Columns: k.columns}
	for _, one := range raw {
		object, err := decodeObject[T](one)
		if err != nil {
			return nil, err
		}
		b.Rows = append(b.Rows, k.row(object))
	}
	return b, nil
}

// print prints objects in the form that the flags select.
func (k *objects[T]) print(ctx context.Context, t cli.Terminal, server *client.Client, o cli.OutputFlags, raw ...json.RawMessage) error {
	b, err := k.table(raw...)
	if err != nil {
		return err
	}
	return o.PrintList(ctx, t, server, raw, b)
}

// printAll prints all pages of a list; see cli.ReadPages.
func (k *objects[T]) printAll(ctx context.Context, t cli.Terminal, s *cli.ServerFlags, o cli.OutputFlags, query, list string, variables map[string]any) error {
	server, err := s.OpenClient(ctx)
	if err != nil {
		return err
	}
	all, err := cli.ReadPages(ctx, server, query, list, variables)
	if err != nil {
		return err
	}
	return k.print(ctx, t, server, o, all...)
}

// printOne prints the object that a query returns as one.
func (k *objects[T]) printOne(ctx context.Context, t cli.Terminal, s *cli.ServerFlags, o cli.OutputFlags, name, query string, variables map[string]any) error {
	server, err := s.OpenClient(ctx)
	if err != nil {
		return err
	}
	one, err := fetchObject(ctx, server, name, query, variables)
	if err != nil {
		return err
	}
	return k.print(ctx, t, server, o, one)
}

// fetchObject returns the object that a query or a mutation returns as one. name is its name
// in the error if there is none.
func fetchObject(ctx context.Context, server *client.Client, name, query string, variables map[string]any) (json.RawMessage, error) {
	var answer struct{ One json.RawMessage }
	if err := server.GraphQL(ctx, query, variables, &answer); err != nil {
		return nil, err
	}
	if cli.IsNull(answer.One) {
		return nil, cli.Refusedf("%s does not exist, or you may not see it", name)
	}
	return answer.One, nil
}

// changeObject runs a mutation that answers with its payload under the alias "one", and
// returns the payload's object of the kind.
func changeObject(ctx context.Context, server *client.Client, kind, id, mutation string, variables map[string]any) (json.RawMessage, error) {
	raw, err := fetchObject(ctx, server, kind+" "+id, mutation, variables)
	if err != nil {
		return nil, err
	}
	payload, err := decodeObject[map[string]json.RawMessage](raw)
	if err != nil {
		return nil, err
	}
	return (*payload)[kind], nil
}

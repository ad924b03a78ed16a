package cli

import (
	"bytes"
	"context"
	"encoding/json"

	"koine/client"
)

// listPageSize is the page size of lists.
const listPageSize = 100

// ReadPages reads all pages of a query's list or connection. It sets the variables first and
// after; after is the field key of the last element.
func ReadPages(ctx context.Context, server *client.Client, query, list, key string, variables map[string]any) (all []json.RawMessage, err error) {
	variables["first"] = listPageSize
	for {
		var answer map[string]listedPage
		if err := server.GraphQL(ctx, query, variables, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer[list]...)
		if len(answer[list]) < listPageSize {
			return all, nil
		}
		var last map[string]json.RawMessage
		if err := json.Unmarshal(all[len(all)-1], &last); err != nil {
			return nil, InvalidResponse(err)
		}
		variables["after"] = last[key]
	}
}

// listedPage decodes a list, or a connection with nodes.
type listedPage []json.RawMessage

// UnmarshalJSON accepts both forms.
func (p *listedPage) UnmarshalJSON(raw []byte) error {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return json.Unmarshal(raw, (*[]json.RawMessage)(p))
	}
	var connection struct{ Nodes []json.RawMessage }
	err := json.Unmarshal(raw, &connection)
	*p = connection.Nodes
	return err
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"koine/client"
)

// listPage is how many elements a list asks for at a time.
const listPage = 100

// readPages reads a list, or the nodes of a connection, that a query gives page by page: it
// takes $first and $after, which is the key of the element before. The variables get both.
func readPages(ctx context.Context, server *client.Client, query, list, key string, variables map[string]any) (all []json.RawMessage, err error) {
	variables["first"] = listPage
	for {
		var answer map[string]page
		if err := server.GraphQL(ctx, query, variables, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer[list]...)
		if len(answer[list]) < listPage {
			return all, nil
		}
		var last map[string]json.RawMessage
		if err := json.Unmarshal(all[len(all)-1], &last); err != nil {
			return nil, fmt.Errorf("the server's answer: %w", err)
		}
		variables["after"] = last[key]
	}
}

// page is a list, or a connection of which the nodes are one.
type page []json.RawMessage

// UnmarshalJSON takes both.
func (p *page) UnmarshalJSON(raw []byte) error {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return json.Unmarshal(raw, (*[]json.RawMessage)(p))
	}
	var connection struct{ Nodes []json.RawMessage }
	err := json.Unmarshal(raw, &connection)
	*p = connection.Nodes
	return err
}

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"koine/client"
)

// listPage is how many elements a list asks for at a time.
const listPage = 100

// readPages reads a list that a query gives page by page: it takes $first and $after, which
// is the key of the element before. The variables get both.
func readPages(ctx context.Context, server *client.Client, query, list, key string, variables map[string]any) (all []json.RawMessage, err error) {
	variables["first"] = listPage
	for {
		var answer map[string][]json.RawMessage
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

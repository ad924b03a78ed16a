package cli

import (
	"context"
	"encoding/json"
	"errors"

	"koine/client"
)

// listPageSize is the page size of lists.
const listPageSize = 100

// PageFields are the fields that a query of ReadPages selects beside the nodes of its list.
const PageFields = ` pageInfo { hasNextPage endCursor }`

// ReadPages reads the nodes of all pages of a query's list. It sets the variables first and
// after.
func ReadPages(ctx context.Context, server *client.Client, query, list string, variables map[string]any) (all []json.RawMessage, err error) {
	variables["first"] = listPageSize
	for {
		var answer map[string]struct {
			Nodes    []json.RawMessage
			PageInfo struct {
				HasNextPage bool
				EndCursor   *string
			}
		}
		if err := server.GraphQL(ctx, query, variables, &answer); err != nil {
			return nil, err
		}
		page := answer[list]
		all = append(all, page.Nodes...)
		if !page.PageInfo.HasNextPage {
			return all, nil
		}
		if page.PageInfo.EndCursor == nil {
			return nil, InvalidResponse(errors.New("a page before the last has no cursor"))
		}
		variables["after"] = *page.PageInfo.EndCursor
	}
}

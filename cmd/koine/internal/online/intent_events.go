package online

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"koine/cmd/koine/internal/cli"
)

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

// verify prints the number of events in an intact chain.
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

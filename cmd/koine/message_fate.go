package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"koine/client"
	"koine/graph"
)

// fate is what became of a message, which GraphQL knows and its event does not tell.
type fate struct {
	Facts    []struct{} // that stand, maxFactsCounted at the most
	Proposal struct{ Status string }
	Retracts struct{ Sequence int64 }
}

// messageFates are those of messages by their ids.
type messageFates map[string]fate

// maxFactsCounted bounds how many of a message's facts are looked at for whether they
// stand: it is the most that a server gives.
const maxFactsCounted = 1000

// messageFatesOf looks up what the lines of messages tell beside their events: what became of
// facts that were held or whose message was retracted, and which message one retracts. It
// asks for as many at once as a server answers. What it cannot learn is left out.
func messageFatesOf(ctx context.Context, server *client.Client, list []*client.Message) messageFates {
	out := messageFates{}
	asked := slices.DeleteFunc(slices.Clone(list), func(m *client.Message) bool { return m.Retracts == "" && !hasFate(m) })
	for some := range slices.Chunk(asked, graph.DefaultRootFields) {
		if out.queryFates(ctx, server, some) == nil || len(some) == 1 {
			continue
		}
		for i := range some { // one that cannot be answered is not in the way of the others
			if ctx.Err() != nil {
				return out
			}
			_ = out.queryFates(ctx, server, some[i:i+1])
		}
	}
	return out
}

// queryFates adds what one query tells.
func (f messageFates) queryFates(ctx context.Context, server *client.Client, list []*client.Message) error {
	var declared, fields strings.Builder
	variables := map[string]any{}
	for i, m := range list {
		name := fmt.Sprintf("m%d", i)
		variables[name] = m.ID
		fmt.Fprintf(&declared, "$%s: ID! ", name)
		fmt.Fprintf(&fields, " %s: message(id: $%s) {", name, name)
		if m.Retracts != "" {
			fields.WriteString(" retracts { sequence }")
		}
		if hasFate(m) {
			fmt.Fprintf(&fields, " facts(first: %d) { __typename } proposal { status }", maxFactsCounted)
		}
		fields.WriteString(" }")
	}
	var answer messageFates
	if err := server.GraphQL(ctx, "query("+declared.String()+") {"+fields.String()+" }", variables, &answer); err != nil {
		return err
	}
	for i, m := range list {
		f[m.ID] = answer[fmt.Sprintf("m%d", i)]
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"koine/client"
	"koine/graph"
)

// messageFate is the later state of a message, which only GraphQL reports, not the message's event.
type messageFate struct {
	Facts    []struct{} // still asserted; at most maxFactsCounted
	Proposal struct{ Status string }
	Retracts struct{ Sequence int64 }
}

// messageFates maps message ids to fates.
type messageFates map[string]messageFate

// maxFactsCounted is the number of facts fetched per message: the largest page that a server
// returns.
const maxFactsCounted = 1000

// lookupFates looks up the proposals, remaining facts and retractions of messages, in
// queries of as many root fields as a server accepts. Messages whose lookup fails are left
// out.
func lookupFates(ctx context.Context, server *client.Client, list []*client.Message) messageFates {
	out := messageFates{}
	lookups := slices.DeleteFunc(slices.Clone(list), func(m *client.Message) bool { return m.Retracts == "" && !mayHaveFate(m) })
	for some := range slices.Chunk(lookups, graph.DefaultRootFields) {
		if out.queryFates(ctx, server, some) == nil || len(some) == 1 {
			continue
		}
		for i := range some { // one by one: a failing message must not hide the others
			if ctx.Err() != nil {
				return out
			}
			_ = out.queryFates(ctx, server, some[i:i+1])
		}
	}
	return out
}

// queryFates adds the fates of the messages in list, by one query.
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
		if mayHaveFate(m) {
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

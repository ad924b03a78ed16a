package main

import (
	"context"
	"fmt"
	"strings"

	"koine/client"
)

// factsNoteHelp says what factsNote says.
const factsNoteHelp = `[2 facts] came with it, [2 facts proposed] wait for review; those of a message that was retracted stand or were withdrawn with it ([2 facts, none stands]), as far as you may read them.`

// maxFactsCounted bounds how many of a message's facts are looked at for whether they
// stand: it is the most that a server gives.
const maxFactsCounted = 1000

// factsNote says that a message came with facts, and what is of them where that is not as
// one expects; "" if it came with none.
func factsNote(ctx context.Context, server *client.Client, m *client.Message) string {
	if m.FactCount == 0 && m.ProposalID == "" {
		return ""
	}
	note := "facts"
	switch {
	case m.FactCount == 1:
		note = "1 fact"
	case m.FactCount > 1:
		note = fmt.Sprintf("%d facts", m.FactCount)
	}
	if m.ProposalID == "" && m.Withheld != "retracted" {
		return note
	}
	var answer struct {
		Message struct {
			Facts    []struct{}
			Proposal struct{ Status string }
		}
	}
	const query = `query($id: ID!, $first: Int) { message(id: $id) { facts(first: $first) { __typename } proposal { status } } }`
	err := server.GraphQL(ctx, query, map[string]any{"id": m.ID, "first": maxFactsCounted}, &answer)
	status, stand := answer.Message.Proposal.Status, len(answer.Message.Facts)
	switch {
	case err != nil:
		return note
	case status == "PENDING":
		return note + " proposed"
	case status != "" && status != "APPLIED":
		return note + " " + strings.ToLower(status)
	case m.Withheld == "retracted" && stand == 0:
		return note + ", none stands"
	case m.Withheld == "retracted" && stand < m.FactCount:
		return fmt.Sprintf("%s, %d stand", note, stand)
	case m.Withheld == "retracted":
		return note + ", all stand"
	case status != "" || stand > 0:
		return note + " approved"
	}
	return note + " proposed" // and only others know what became of it
}

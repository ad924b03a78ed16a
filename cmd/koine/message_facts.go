package main

import (
	"fmt"
	"strings"

	"koine/client"
)

// factsNoteHelp documents the notes of factsNote in help texts.
const factsNoteHelp = `[2 facts] marks the facts of a message, [2 facts proposed] facts pending review, and [2 facts, none asserted] those of a retracted message, as far as you may read them.`

// mayHaveFate reports whether the facts of a message may differ from its event: they were held
// for review, or the message was retracted.
func mayHaveFate(m *client.Message) bool {
	return m.ProposalID != "" || m.FactCount > 0 && m.Withheld == "retracted"
}

// factsNote returns the note about a message's facts, with their state if it is not the
// usual one; "" without facts.
func factsNote(m *client.Message, known messageFates) string {
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
	now, ok := known[m.ID]
	if !ok || !mayHaveFate(m) {
		return note
	}
	status, stand := now.Proposal.Status, len(now.Facts)
	switch {
	case status == "PENDING":
		return note + " proposed"
	case status != "" && status != "APPLIED":
		return note + " " + strings.ToLower(status)
	case m.Withheld == "retracted" && stand == 0:
		return note + ", none asserted"
	case m.Withheld == "retracted" && stand < m.FactCount:
		return fmt.Sprintf("%s, %d asserted", note, stand)
	case m.Withheld == "retracted":
		return note + ", all asserted"
	case status != "" || stand > 0:
		return note + " approved"
	}
	return note + " proposed" // the outcome is not visible to the caller
}

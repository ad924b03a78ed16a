package channels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"koine/kg"
)

// ChannelID identifies a channel: a UUID, or the result of DirectID.
type ChannelID string

// MessageID identifies a message: a version 7 UUID.
type MessageID string

// ScopeID identifies a scope: a UUID.
type ScopeID string

// MaxIDBytes is the maximum length of an id in a request.
const MaxIDBytes = 256

// Prefixes of entities and graphs.
const (
	channelPrefix = "urn:koine:channel:"
	messagePrefix = "urn:koine:message:"
	scopePrefix   = "urn:koine:scope:"
	eventPrefix   = "urn:koine:event:"
	tallyPrefix   = "urn:koine:tally:"

	recordPrefix      = kg.OwnGraphPrefix + "channel:"
	journalPrefix     = kg.JournalGraphPrefix + "messages:"
	receiptPrefix     = kg.JournalGraphPrefix + "receipts:"
	factsPrefix       = "urn:koine:facts:"
	scopeRecordPrefix = kg.OwnGraphPrefix + "scope:"
	eventsPrefix      = kg.JournalGraphPrefix + "events:"

	directPrefix = "chan:direct:"
)

// Entity returns the channel as an entity of the graph.
func (c ChannelID) Entity() kg.Term { return kg.IRI(channelPrefix + string(c)) }

// RecordGraph returns the graph of the channel's record.
func (c ChannelID) RecordGraph() kg.Term { return kg.IRI(recordPrefix + string(c)) }

// MessagesGraph returns the graph of the channel's messages.
func (c ChannelID) MessagesGraph() kg.Term { return kg.IRI(journalPrefix + string(c)) }

// partitionGraph returns the graph of the content that only these agents can read.
func (c ChannelID) partitionGraph(readers []kg.AgentID) kg.Term {
	sum := sha256.New()
	for _, agent := range readers {
		sum.Write([]byte(string(agent) + "\n"))
	}
	return kg.IRI(journalPrefix + string(c) + "/" + hex.EncodeToString(sum.Sum(nil))[:32])
}

// ReceiptsGraph returns the graph of receipts and message counts.
func (c ChannelID) ReceiptsGraph() kg.Term { return kg.IRI(receiptPrefix + string(c)) }

// FactsGraph returns the graph of the facts that messages assert, unless the channel is
// public.
func (c ChannelID) FactsGraph() kg.Term { return kg.IRI(factsPrefix + string(c)) }

// IsDirect reports whether the id is that of a direct channel.
func (c ChannelID) IsDirect() bool { return strings.HasPrefix(string(c), directPrefix) }

// isValid reports whether a channel may have the id. A channel with an invalid id is
// not found.
func (c ChannelID) isValid() bool {
	return len(c) > 0 && len(c) <= MaxIDBytes && kg.IsAbsoluteIRI(channelPrefix+string(c)) && !strings.ContainsAny(string(c), "/#?")
}

// DirectID returns the id of the direct channel of two agents: the first 24 hexadecimal
// digits of the SHA-256 of their canonical ids, sorted and joined by a line feed
// (channels extension, section 5).
func DirectID(a, b kg.AgentID) ChannelID {
	if b < a {
		a, b = b, a
	}
	sum := sha256.Sum256([]byte(string(a) + "\n" + string(b)))
	return ChannelID(directPrefix + hex.EncodeToString(sum[:])[:24])
}

// Entity returns the message as an entity of the graph.
func (m MessageID) Entity() kg.Term { return kg.IRI(messagePrefix + string(m)) }

// Entity returns the scope as an entity of the graph.
func (s ScopeID) Entity() kg.Term { return kg.IRI(scopePrefix + string(s)) }

// RecordGraph returns the graph of the scope's record.
func (s ScopeID) RecordGraph() kg.Term { return kg.IRI(scopeRecordPrefix + string(s)) }

// EventsGraph returns the graph of the scope's events.
func (s ScopeID) EventsGraph() kg.Term { return kg.IRI(eventsPrefix + string(s)) }

// idOf returns the id after the prefix of a term, or "" for another term.
func idOf[ID ~string](t kg.Term, prefix string) ID {
	id, ok := strings.CutPrefix(t.Value(), prefix)
	if !ok {
		return ""
	}
	return ID(id)
}

// messageIDIn returns the id of a message entity, or "" for another term.
func messageIDIn(t kg.Term) MessageID { return idOf[MessageID](t, messagePrefix) }

// scopeIDIn returns the id of a scope entity, or "" for another term.
func scopeIDIn(t kg.Term) ScopeID { return idOf[ScopeID](t, scopePrefix) }

// scopeOfGraph returns the scope that a graph belongs to and the part of the scope that
// it holds.
func scopeOfGraph(graph kg.Term) (ScopeID, graphPart) {
	if id := idOf[ScopeID](graph, scopeRecordPrefix); id != "" {
		return id, recordPart
	}
	if id := idOf[ScopeID](graph, eventsPrefix); id != "" {
		return id, journalPart
	}
	return "", 0
}

// channelOfGraph returns the channel that a graph belongs to and the part of the
// channel that it holds.
func channelOfGraph(graph kg.Term) (id ChannelID, part graphPart) {
	name := graph.Value()
	for _, p := range [...]struct {
		prefix string
		part   graphPart
	}{{recordPrefix, recordPart}, {journalPrefix, journalPart}, {receiptPrefix, receiptPart}, {factsPrefix, factsPart}} {
		rest, ok := strings.CutPrefix(name, p.prefix)
		if !ok {
			continue
		}
		if id, _, partition := strings.Cut(rest, "/"); partition && p.part == journalPart {
			return ChannelID(id), partitionPart
		}
		return ChannelID(rest), p.part
	}
	return "", 0
}

// IsRecordGraph reports whether a graph is the record of a channel or of a scope.
func IsRecordGraph(graph kg.Term) bool {
	_, part := channelOfGraph(graph)
	_, of := scopeOfGraph(graph)
	return part == recordPart || of == recordPart
}

// IsJournalGraph reports whether a graph holds messages, receipts, or events of a
// scope.
func IsJournalGraph(graph kg.Term) bool {
	_, part := channelOfGraph(graph)
	_, of := scopeOfGraph(graph)
	return part == journalPart || part == partitionPart || part == receiptPart || of == journalPart
}

// graphPart is the part of a channel or scope that a graph holds; 0 means none.
type graphPart uint8

const (
	recordPart graphPart = iota + 1
	journalPart
	receiptPart
	factsPart
	partitionPart // content addressed to some of the readers
)

func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("create id: %w", err)
	}
	return id.String(), nil
}

package channels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"koine/kg"
)

// ChannelID names a channel: a UUID, or what DirectID gives.
type ChannelID string

// MessageID names a message: a UUID of version 7.
type MessageID string

// ScopeID names a scope: a UUID.
type ScopeID string

// MaxIDBytes bounds the ids that are looked at.
const MaxIDBytes = 256

// What the names of entities and graphs begin with.
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

// Entity is the channel as an entity of the graph.
func (c ChannelID) Entity() kg.Term { return kg.IRI(channelPrefix + string(c)) }

// RecordGraph holds what is known of the channel itself.
func (c ChannelID) RecordGraph() kg.Term { return kg.IRI(recordPrefix + string(c)) }

// MessagesGraph holds the channel's messages.
func (c ChannelID) MessagesGraph() kg.Term { return kg.IRI(journalPrefix + string(c)) }

// partitionGraph holds the content of messages that only these agents read.
func (c ChannelID) partitionGraph(readers []kg.AgentID) kg.Term {
	sum := sha256.New()
	for _, agent := range readers {
		sum.Write([]byte(string(agent) + "\n"))
	}
	return kg.IRI(journalPrefix + string(c) + "/" + hex.EncodeToString(sum.Sum(nil))[:32])
}

// ReceiptsGraph holds who got and read them, and how many there were.
func (c ChannelID) ReceiptsGraph() kg.Term { return kg.IRI(receiptPrefix + string(c)) }

// FactsGraph holds what messages of the channel assert, unless it is public.
func (c ChannelID) FactsGraph() kg.Term { return kg.IRI(factsPrefix + string(c)) }

// IsDirect tells whether the id is one of a direct channel.
func (c ChannelID) IsDirect() bool { return strings.HasPrefix(string(c), directPrefix) }

// isValid tells whether a channel may have the id. What is not valid is not there.
func (c ChannelID) isValid() bool {
	return len(c) > 0 && len(c) <= MaxIDBytes && kg.IsAbsoluteIRI(channelPrefix+string(c)) && !strings.ContainsAny(string(c), "/#?")
}

// DirectID is the id of the channel of two agents: the first 24 hexadecimal digits
// of the SHA-256 of their canonical ids, sorted and joined by a line feed (channels
// extension, section 5).
func DirectID(a, b kg.AgentID) ChannelID {
	if b < a {
		a, b = b, a
	}
	sum := sha256.Sum256([]byte(string(a) + "\n" + string(b)))
	return ChannelID(directPrefix + hex.EncodeToString(sum[:])[:24])
}

// Entity is the message as an entity of the graph.
func (m MessageID) Entity() kg.Term { return kg.IRI(messagePrefix + string(m)) }

// Entity is the scope as an entity of the graph.
func (s ScopeID) Entity() kg.Term { return kg.IRI(scopePrefix + string(s)) }

// RecordGraph holds what is known of the scope itself.
func (s ScopeID) RecordGraph() kg.Term { return kg.IRI(scopeRecordPrefix + string(s)) }

// EventsGraph holds the events of the scope.
func (s ScopeID) EventsGraph() kg.Term { return kg.IRI(eventsPrefix + string(s)) }

// idOf is the id behind a prefix that a term is named by, "" for another term.
func idOf[ID ~string](t kg.Term, prefix string) ID {
	id, ok := strings.CutPrefix(t.Value(), prefix)
	if !ok {
		return ""
	}
	return ID(id)
}

// messageIDIn is the id of a message that an entity is, "" for another entity.
func messageIDIn(t kg.Term) MessageID { return idOf[MessageID](t, messagePrefix) }

// scopeIDIn is the scope that an entity is, "" for another entity.
func scopeIDIn(t kg.Term) ScopeID { return idOf[ScopeID](t, scopePrefix) }

// scopeOfGraph is the scope that a graph belongs to, and what it is of it.
func scopeOfGraph(graph kg.Term) (ScopeID, graphPart) {
	if id := idOf[ScopeID](graph, scopeRecordPrefix); id != "" {
		return id, recordPart
	}
	if id := idOf[ScopeID](graph, eventsPrefix); id != "" {
		return id, journalPart
	}
	return "", 0
}

// channelOfGraph is the channel that a graph belongs to, and what it is of it.
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
		if id, _, lane := strings.Cut(rest, "/"); lane && p.part == journalPart {
			return ChannelID(id), partitionPart
		}
		return ChannelID(rest), p.part
	}
	return "", 0
}

// IsRecordGraph tells whether a graph is the record of a channel or of a scope.
func IsRecordGraph(graph kg.Term) bool {
	_, part := channelOfGraph(graph)
	_, of := scopeOfGraph(graph)
	return part == recordPart || of == recordPart
}

// IsJournalGraph tells whether a graph holds messages, or what became of them, or events of
// a scope.
func IsJournalGraph(graph kg.Term) bool {
	_, part := channelOfGraph(graph)
	_, of := scopeOfGraph(graph)
	return part == journalPart || part == partitionPart || part == receiptPart || of == journalPart
}

// graphPart is what of a channel a graph holds; 0 is no channel's.
type graphPart uint8

const (
	recordPart graphPart = iota + 1
	journalPart
	receiptPart
	factsPart
	partitionPart // the content of messages to some of its readers
)

func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("an id for a channel, message or scope: %w", err)
	}
	return id.String(), nil
}

package channel

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"koine/channels/internal/vocab"
	"koine/kg"
)

// ID identifies a channel: a UUID, or the result of DirectID.
type ID string

// MaxIDBytes is the maximum length of an id in a request.
const MaxIDBytes = 256

// Prefixes of entities and graphs.
const (
	ChannelPrefix = "urn:koine:channel:"
	recordPrefix  = kg.OwnGraphPrefix + "channel:"
	JournalPrefix = kg.JournalGraphPrefix + "messages:"
	copyPrefix    = kg.CopyGraphPrefix + "messages:"
	receiptPrefix = kg.JournalGraphPrefix + "receipts:"
	verdictPrefix = kg.OwnGraphPrefix + "verdicts:"
	factsPrefix   = "urn:koine:facts:"
	directPrefix  = "chan:direct:"
)

// Entity returns the channel as an entity of the graph.
func (c ID) Entity() kg.Term { return kg.IRI(ChannelPrefix + string(c)) }

// RecordGraph returns the graph of the channel's record.
func (c ID) RecordGraph() kg.Term { return kg.IRI(recordPrefix + string(c)) }

// MessagesGraph returns the graph of the channel's messages.
func (c ID) MessagesGraph() kg.Term { return kg.IRI(JournalPrefix + string(c)) }

// PartitionGraph returns the graph of the content that only these agents can read.
func (c ID) PartitionGraph(readers []kg.AgentID) kg.Term {
	sum := sha256.New()
	for _, agent := range readers {
		sum.Write([]byte(string(agent) + "\n"))
	}
	return kg.IRI(JournalPrefix + string(c) + "/" + hex.EncodeToString(sum.Sum(nil))[:32])
}

// CopyGraph returns the graph of the audit copies of messages with content in a graph of
// the channel: the one of its messages, or a partition.
func (c ID) CopyGraph(content kg.Term) kg.Term {
	return kg.IRI(copyPrefix + strings.TrimPrefix(content.Value(), JournalPrefix))
}

// CopiedPartition returns the partition of the messages that an audit graph has copies of, or the
// zero term if it has those of messages to all readers of the channel.
func CopiedPartition(copies kg.Term) kg.Term {
	rest := strings.TrimPrefix(copies.Value(), copyPrefix)
	if !strings.Contains(rest, "/") {
		return kg.Term{}
	}
	return kg.IRI(JournalPrefix + rest)
}

// HoldsMessages reports whether a graph holds content of messages.
func HoldsMessages(graph kg.Term) bool {
	return strings.HasPrefix(graph.Value(), JournalPrefix) || strings.HasPrefix(graph.Value(), copyPrefix)
}

// HoldsContent reports whether a graph holds content of messages, also of those that were held
// or refused.
func HoldsContent(graph kg.Term) bool {
	return HoldsMessages(graph) || strings.HasPrefix(graph.Value(), verdictPrefix)
}

// ReceiptsGraph returns the graph of receipts and message counts.
func (c ID) ReceiptsGraph() kg.Term { return kg.IRI(receiptPrefix + string(c)) }

// VerdictsGraph returns the graph of the messages that were held or refused before they
// were published. Nobody reads it through the store.
func (c ID) VerdictsGraph() kg.Term { return kg.IRI(verdictPrefix + string(c)) }

// FactsGraph returns the graph of the facts that messages assert, unless the channel is
// public.
func (c ID) FactsGraph() kg.Term { return kg.IRI(factsPrefix + string(c)) }

// IsDirect reports whether the id is that of a direct channel.
func (c ID) IsDirect() bool { return strings.HasPrefix(string(c), directPrefix) }

// IsValid reports whether a channel may have the id. A channel with an invalid id is
// not found.
func (c ID) IsValid() bool {
	return len(c) > 0 && len(c) <= MaxIDBytes && kg.IsAbsoluteIRI(ChannelPrefix+string(c)) && !strings.ContainsAny(string(c), "/#?")
}

// DirectID returns the id of the direct channel of two agents: the first 24 hexadecimal
// digits of the SHA-256 of their canonical ids, sorted and joined by a line feed
// (channels extension, section 5).
func DirectID(a, b kg.AgentID) ID {
	if b < a {
		a, b = b, a
	}
	sum := sha256.Sum256([]byte(string(a) + "\n" + string(b)))
	return ID(directPrefix + hex.EncodeToString(sum[:])[:24])
}

// OfGraph returns the channel that a graph belongs to and the part of the
// channel that it holds.
func OfGraph(graph kg.Term) (id ID, part Part) {
	name := graph.Value()
	for _, p := range [...]struct {
		prefix string
		part   Part
	}{{recordPrefix, RecordPart}, {JournalPrefix, JournalPart}, {receiptPrefix, ReceiptPart}, {factsPrefix, FactsPart}, {copyPrefix, CopyPart}, {verdictPrefix, VerdictPart}} {
		rest, ok := strings.CutPrefix(name, p.prefix)
		if !ok {
			continue
		}
		if id, _, partition := strings.Cut(rest, "/"); partition && p.part == JournalPart {
			return ID(id), PartitionPart
		} else if p.part == CopyPart {
			return ID(id), CopyPart
		}
		return ID(rest), p.part
	}
	return "", 0
}

// Part is the part of a channel that a graph holds; 0 means none.
type Part uint8

const (
	RecordPart Part = iota + 1
	JournalPart
	ReceiptPart
	FactsPart
	PartitionPart // content addressed to some of the readers
	CopyPart      // audit copies of messages, of a partition or of all others
	VerdictPart   // messages that were held or refused
)

// IDOf returns the id of a channel entity, or "" for another term.
func IDOf(entity kg.Term) ID {
	if entity.IsLiteral() {
		return ""
	}
	return vocab.IDOf[ID](entity, ChannelPrefix)
}

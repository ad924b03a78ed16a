package channels

import (
	"strings"

	"koine/kg"
)

const (
	scopePrefix       = "urn:koine:scope:"
	scopeRecordPrefix = kg.OwnGraphPrefix + "scope:"
	eventsPrefix      = kg.JournalGraphPrefix + "events:"
	eventPrefix       = "urn:koine:event:"
)

// Entity is the scope as an entity of the graph.
func (s ScopeID) Entity() kg.Term { return kg.IRI(scopePrefix + string(s)) }

// RecordGraph holds what is known of the scope itself.
func (s ScopeID) RecordGraph() kg.Term { return kg.IRI(scopeRecordPrefix + string(s)) }

// EventsGraph holds the events of the scope.
func (s ScopeID) EventsGraph() kg.Term { return kg.IRI(eventsPrefix + string(s)) }

// scopeIn is the scope that an entity is, "" for another entity.
func scopeIn(t kg.Term) ScopeID {
	id, ok := strings.CutPrefix(t.Value(), scopePrefix)
	if !ok {
		return ""
	}
	return ScopeID(id)
}

// scopeOf is the scope that a graph belongs to, and what it is of it.
func scopeOf(graph kg.Term) (id ScopeID, part graphPart) {
	if rest, ok := strings.CutPrefix(graph.Value(), scopeRecordPrefix); ok {
		return ScopeID(rest), recordPart
	}
	if rest, ok := strings.CutPrefix(graph.Value(), eventsPrefix); ok {
		return ScopeID(rest), journalPart
	}
	return "", 0
}

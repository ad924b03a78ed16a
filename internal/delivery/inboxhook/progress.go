package inboxhook

import (
	"context"

	"koine/internal/agents"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Graph is the graph of the progress. The subject is the agent's id. It has no policy, so
// only administrators can read it.
var Graph = kg.IRI(kg.JournalGraphPrefix + "inboxhooks")

// propTold is the position up to which messages were delivered.
const propTold = "inboxHookTold"

func subjectOf(agent kg.AgentID) kg.Term { return kg.IRI(string(agent)) }

// progressOf returns the position up to which messages were delivered to the endpoint of an
// agent: at least that of its registration. A position of another log counts as now.
func (s *Service) progressOf(ctx context.Context, agent kg.AgentID) (kg.Position, error) {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return kg.Position{}, err
	}
	defer snapshot.Close()
	head := snapshot.Position()
	pattern := agents.EndpointPatterns()[0]
	pattern.Subject = subjectOf(agent)
	endpoint, found, err := systemgraph.First(snapshot.Match, pattern)
	if err != nil || !found {
		return head, err
	}
	position := head
	if len(endpoint.Assertions) > 0 {
		position = kg.Position{Epoch: head.Epoch, Revision: endpoint.Assertions[0].Revision, Index: kg.EndOfCommit}
	}
	r, err := systemgraph.Read(snapshot.Match, Graph, subjectOf(agent))
	if err != nil || r[propTold] == nil {
		return position, err
	}
	told, err := s.store.ParsePosition(r.Text(propTold))
	if err != nil || told.Epoch != head.Epoch || told.Compare(head) > 0 {
		s.options.Logger.Warn("messages to an endpoint go on from now: the progress is that of another log", "agent", agent)
		return head, nil
	}
	if told.Compare(position) > 0 {
		position = told
	}
	return position, nil
}

// saveProgress stores the progress of the hooks in one commit.
func (s *Service) saveProgress(ctx context.Context) {
	told := map[*hook]kg.Position{}
	s.mu.Lock()
	for _, h := range s.hooks {
		h.mu.Lock()
		if h.dirty {
			h.dirty, told[h] = false, h.position
		}
		h.mu.Unlock()
	}
	s.mu.Unlock()
	if len(told) == 0 {
		return
	}
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "inboxhook/told"}
	err := systemgraph.Update(ctx, s.store, meta, func(tx *kg.Tx) error {
		for h, position := range told {
			registered := kg.Pattern{Subject: subjectOf(h.agent), Predicate: agents.Registered, Graph: agents.Graph}
			if _, found, err := systemgraph.First(tx.MatchOwn, registered); err != nil || !found {
				if err != nil {
					return err
				}
				continue // it has deregistered
			}
			record := systemgraph.Record{propTold: systemgraph.Values(s.store.FormatPosition(position))}
			if err := systemgraph.Write(tx, Graph, subjectOf(h.agent), record); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return
	}
	for h := range told {
		h.mu.Lock()
		h.dirty = true
		h.mu.Unlock()
	}
	if kg.CodeOf(err) != kg.CodeClosed && ctx.Err() == nil {
		s.options.Logger.Error("cannot store how far messages to endpoints are", "error", err)
	}
}

// Forget removes the progress of an agent in the update that deregisters it.
func Forget(tx *kg.Tx, agent kg.AgentID) error {
	return systemgraph.Write(tx, Graph, subjectOf(agent), systemgraph.Record{propTold: nil})
}

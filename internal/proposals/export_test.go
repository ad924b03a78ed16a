package proposals

import (
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Note makes a service believe that the store has a proposal with this status.
func (s *Service) Note(id string, author kg.AgentID, expires time.Time, status Status) {
	g := graphOf(id)
	var facts []systemgraph.Fact
	for property, object := range map[kg.Term]kg.Term{propAuthor: kg.IRI(string(author)), propExpires: kg.DateTime(expires), propStatus: kg.String(string(status))} {
		facts = append(facts, systemgraph.Fact{Quad: kg.Quad{Subject: g, Predicate: property, Object: object, Graph: g}, Exists: true})
	}
	s.table.applyFacts(0, facts)
}

// OpenOf, Expired, All and Unended expose the indexes of the service.
func (s *Service) OpenOf(author kg.AgentID, now time.Time) int {
	return s.table.lists.countOpen(author, now)
}
func (s *Service) Expired(now time.Time) string  { return s.table.lists.firstExpired(now) }
func (s *Service) All(after string) []string     { return s.table.lists.listAll(after) }
func (s *Service) Unended(after string) []string { return s.table.lists.listOpen(after) }

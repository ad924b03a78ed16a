package agents

import (
	"cmp"
	"context"
	"slices"

	"koine/internal/systemgraph"
	"koine/kg"
)

// CapabilityCount is a capability and the number of registered agents that a search for
// it finds.
type CapabilityCount struct {
	Tag    string
	Agents int
}

// Capabilities counts the registered agents by capability, sorted by the tag: the
// capabilities of agents, and the ids and tags of their skills.
func (d *Directory) Capabilities(ctx context.Context) (list []CapabilityCount, err error) {
	snapshot, err := NewService(d.store).openView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	able := map[string]map[kg.AgentID]bool{}
	note := func(tag string, id kg.AgentID) {
		if able[tag] == nil {
			able[tag] = map[kg.AgentID]bool{}
		}
		able[tag][id] = true
	}
	for _, property := range []string{propCapability, propSkillTag} {
		for statement, err := range snapshot.Match(kg.Pattern{Predicate: systemgraph.Property(property), Graph: Graph}) {
			if err != nil {
				return nil, err
			}
			note(statement.Object.Value(), kg.AgentID(statement.Subject.Value()))
		}
	}
	if self := d.options.Self; self != nil {
		for _, tag := range self.Registration.Tags() {
			note(tag, self.ID)
		}
	}
	for tag, ids := range able {
		list = append(list, CapabilityCount{tag, len(ids)})
	}
	slices.SortFunc(list, func(a, b CapabilityCount) int { return cmp.Compare(a.Tag, b.Tag) })
	return list, nil
}

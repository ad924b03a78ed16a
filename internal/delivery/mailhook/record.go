package mailhook

import (
	"encoding/json"
	"strconv"
	"time"

	"koine/internal/delivery"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Graph is the graph of the hooks. The subject is the agent's id. It has no policy, so
// only administrators can read it.
var Graph = kg.IRI(kg.JournalGraphPrefix + "mailhooks")

// Properties of a hook.
const (
	propTarget = "mailHook"     // sealed; a different text for each Set
	propSet    = "mailHookSet"  // time of Set
	propTold   = "mailHookTold" // letters up to this revision were delivered
	sealBound  = "mailhook\x00" // binds the sealed target to one agent
)

func subjectOf(agent kg.AgentID) kg.Term { return kg.IRI(string(agent)) }

func boundOf(agent kg.AgentID) []byte { return []byte(sealBound + string(agent)) }

// storedHook is the stored form of a hook.
type storedHook struct {
	sealed    string
	target    *delivery.Target // nil if another store sealed it
	set       time.Time
	delivered kg.Revision
}

// sealTarget returns the stored form of a target.
func (s *Service) sealTarget(agent kg.AgentID, t *delivery.Target) (string, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	return s.store.Seal(plain, boundOf(agent)), nil
}

// hookIn reads the hook of an agent; nil if there is none.
func (s *Service) hookIn(match systemgraph.Matcher, agent kg.AgentID) (*storedHook, error) {
	r, err := systemgraph.Read(match, Graph, subjectOf(agent))
	if err != nil || r[propTarget] == nil {
		return nil, err
	}
	h := &storedHook{sealed: r.Text(propTarget), set: r.Time(propSet)}
	if delivered, err := strconv.ParseUint(r.Text(propTold), 10, 64); err == nil {
		h.delivered = kg.Revision(delivered)
	}
	if plain, err := s.store.Unseal(h.sealed, boundOf(agent)); err == nil {
		h.target = new(delivery.Target)
		if err := json.Unmarshal(plain, h.target); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Forget removes the hook of an agent in the update that deregisters it.
func Forget(tx *kg.Tx, agent kg.AgentID) error {
	return systemgraph.Write(tx, Graph, subjectOf(agent), systemgraph.Record{propTarget: nil, propSet: nil, propTold: nil})
}

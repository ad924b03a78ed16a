package courier

import (
	"encoding/json"
	"strconv"
	"time"

	"koine/internal/records"
	"koine/internal/webhook"
	"koine/kg"
)

// Graph holds the hooks: the subject is the agent's id. It has no policy, so nobody but
// administrators reads it.
var Graph = kg.IRI(kg.JournalGraphPrefix + "mailhooks")

// The properties of a hook.
const (
	propTarget = "mailHook"     // sealed, and another text each time that it is set
	propSet    = "mailHookSet"  // when
	propTold   = "mailHookTold" // letters of up to this revision were carried
	sealBound  = "mailhook\x00" // what is sealed is good for one agent's hook
)

func subjectOf(agent kg.AgentID) kg.Term { return kg.IRI(string(agent)) }

func boundOf(agent kg.AgentID) []byte { return []byte(sealBound + string(agent)) }

// storedHook is a hook as it is written down.
type storedHook struct {
	sealed    string
	target    *webhook.Target // nil for what another store sealed
	set       time.Time
	delivered kg.Revision
}

// sealTarget is a target as it is written down.
func (s *Service) sealTarget(agent kg.AgentID, t *webhook.Target) (string, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	return s.store.Seal(plain, boundOf(agent)), nil
}

// hookIn reads the hook of an agent; nil for none.
func (s *Service) hookIn(match records.Matcher, agent kg.AgentID) (*storedHook, error) {
	r, err := records.Read(match, Graph, subjectOf(agent))
	if err != nil || r[propTarget] == nil {
		return nil, err
	}
	h := &storedHook{sealed: r.Text(propTarget), set: r.Time(propSet)}
	if told, err := strconv.ParseUint(r.Text(propTold), 10, 64); err == nil {
		h.delivered = kg.Revision(told)
	}
	if plain, err := s.store.Unseal(h.sealed, boundOf(agent)); err == nil {
		h.target = new(webhook.Target)
		if err := json.Unmarshal(plain, h.target); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Forget takes the hook of an agent away, in an update by which it deregisters.
func Forget(tx *kg.Tx, agent kg.AgentID) error {
	return records.Write(tx, Graph, subjectOf(agent), records.Record{propTarget: nil, propSet: nil, propTold: nil})
}

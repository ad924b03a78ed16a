package forward

import (
	"encoding/json"
	"time"

	"koine/internal/delivery"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Graph is the graph of the upstreams and of the tasks that they work on. It has no policy,
// so only administrators can read it.
var Graph = kg.IRI(kg.JournalGraphPrefix + "upstreams")

// Properties of an upstream; the subject is the agent's id.
const (
	propSetting = "upstream"    // sealed; a different text for each Set
	propSet     = "upstreamSet" // time of Set
	sealBound   = "upstream\x00"
)

// Properties of a forwarded task; the subject is the task.
const (
	propTask    = "upstreamTask"    // its id at the upstream
	propContext = "upstreamContext" // its context at the upstream
	propSent    = "upstreamSent"    // number of the last message that the upstream accepted
	propAway    = "upstreamAway"    // time since which calls for the task fail
)

// Setting is an upstream and how it is called. All of it is secret.
type Setting struct {
	delivery.Target
	Dialect
	// Unary means that the upstream does not stream.
	Unary bool `json:"unary,omitempty"`
}

func subjectOf(agent kg.AgentID) kg.Term { return kg.IRI(string(agent)) }

func boundOf(agent kg.AgentID) []byte { return []byte(sealBound + string(agent)) }

// storedSetting is the stored form of a setting.
type storedSetting struct {
	sealed  string
	setting *Setting // nil if another store sealed it
	set     time.Time
}

func (s *Service) sealSetting(agent kg.AgentID, setting *Setting) (string, error) {
	plain, err := json.Marshal(setting)
	if err != nil {
		return "", err
	}
	return s.store.Seal(plain, boundOf(agent)), nil
}

// settingIn reads the setting of an agent; nil if there is none.
func (s *Service) settingIn(match systemgraph.Matcher, agent kg.AgentID) (*storedSetting, error) {
	r, err := systemgraph.Read(match, Graph, subjectOf(agent))
	if err != nil || r[propSetting] == nil {
		return nil, err
	}
	out := &storedSetting{sealed: r.Text(propSetting), set: r.Time(propSet)}
	if plain, err := s.store.Unseal(out.sealed, boundOf(agent)); err == nil {
		out.setting = new(Setting)
		if err := json.Unmarshal(plain, out.setting); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Forget removes the upstream of an agent in the update that deregisters it.
func Forget(tx *kg.Tx, agent kg.AgentID) error {
	return systemgraph.Write(tx, Graph, subjectOf(agent), systemgraph.Record{propSetting: nil, propSet: nil})
}

// link connects a task with that of the upstream.
type link struct {
	task, context string
	sent          int       // the last message that the upstream accepted
	away          time.Time // since when calls fail; zero if they do not
}

func linkOf(r systemgraph.Record) link {
	return link{r.Text(propTask), r.Text(propContext), int(r.Integer(propSent)), r.Time(propAway)}
}

func (l *link) toRecord() systemgraph.Record {
	r := systemgraph.Record{propTask: systemgraph.Text(l.task), propContext: systemgraph.Text(l.context), propSent: {kg.Integer(int64(l.sent))}, propAway: nil}
	if !l.away.IsZero() {
		r[propAway] = []kg.Term{kg.DateTime(l.away)}
	}
	return r
}

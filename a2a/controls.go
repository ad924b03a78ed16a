package a2a

import (
	"math"
	"time"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/kg"
)

// controls are koine's own members of metadata. They are in metadata.koine; the bare
// names are accepted too if metadata.koine does not have them (docs/reference/json-rpc.md). All other
// members of metadata belong to the caller.
type controls struct {
	at          kg.Moment // zero for none
	minRevision kg.Revision
	recordedAt  kg.TimeSpan
	validAt     time.Time
	believedBy  []kg.AgentID // nil for all agents
	budget      operation.Budget

	resume   string
	snapshot bool

	idempotencyKey string
	expected       kg.Revision
	hasExpected    bool
	dryRun         bool

	metadata []byte // the whole object as sent; nil if absent
}

// readControls reads the controls of the method from params' metadata. An unknown one
// is an error in metadata.koine and ignored beside it.
func readControls(params *object, known ...string) controls {
	raw := params.peekMember("metadata")
	metadata, _ := params.readMember("metadata")
	own, _ := metadata.readMember("koine")
	c := controls{metadata: raw}
	for _, name := range known {
		own.addKnown(name)
		from := &own
		if !own.hasMember(name) && name != "budget" { // callers may use this name themselves
			from = &metadata
		}
		c.readControl(name, from)
	}
	own.checkAllRead()
	return c
}

func (c *controls) readControl(name string, from *object) {
	switch name {
	case "at":
		c.at = from.readMoment(name)
	case "recordedAt":
		c.recordedAt = from.readSpan(name)
	case "validAt":
		c.validAt = from.readTime(name)
	case "believedBy":
		c.believedBy = from.readAgents(name)
	case "minRevision":
		n, _ := from.readNatural(name)
		c.minRevision = kg.Revision(n)
	case "budget":
		c.budget = from.readBudget(name)
	case "resume":
		c.resume, _ = from.readText(name)
	case "snapshot":
		c.snapshot = from.readFlag(name)
	case "idempotencyKey":
		c.idempotencyKey, _ = from.readText(name)
	case "expectedRevision":
		n, ok := from.readNatural(name)
		c.expected, c.hasExpected = kg.Revision(n), ok
	case "dryRun":
		c.dryRun = from.readFlag(name)
	}
}

// readBudget reads the limits of an answer.
func (o *object) readBudget(name string) (b operation.Budget) {
	members, _ := o.readMember(name)
	for _, m := range []struct {
		name string
		to   *int
	}{{"maxBytes", &b.MaxBytes}, {"maxTokens", &b.MaxTokens}, {"maxStatements", &b.MaxStatements}} {
		n, ok := members.readNatural(m.name)
		if ok && n == 0 {
			members.failAt(m.name, "must be at least 1")
		}
		*m.to = int(min(n, math.MaxInt32))
	}
	members.checkAllRead()
	return b
}

// readMoment reads a revision, as a number, or a time; the zero Moment if absent.
func (o *object) readMoment(name string) kg.Moment {
	raw := o.takeMember(name)
	if raw == nil {
		return kg.Moment{}
	}
	text := string(raw)
	if raw[0] == '"' {
		text = decodeString(raw)
	}
	m, err := kg.ParseMoment(text)
	if err != nil || m == (kg.Moment{}) {
		o.failAt(name, "must be a revision, of which the first is 1, or an RFC 3339 time")
	}
	return m
}

// readSpan reads a time span with optional ends.
func (o *object) readSpan(name string) (s kg.TimeSpan) {
	ends, ok := o.readMember(name)
	if !ok {
		return s
	}
	s = kg.TimeSpan{From: ends.readTime("from"), Until: ends.readTime("until")}
	ends.checkAllRead()
	if !s.Until.IsZero() && s.Until.Before(s.From) {
		o.failAt(name, "cannot end before it begins")
	}
	return s
}

// readTime reads a time; zero if absent.
func (o *object) readTime(name string) time.Time {
	text, ok := o.readText(name)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		o.failAt(name, "must be an RFC 3339 time")
	}
	return t.UTC()
}

// readAgents reads a list of agents; nil if absent, and not nil if empty.
func (o *object) readAgents(name string) []kg.AgentID {
	elements, ok := o.readArray(name)
	if !ok {
		return nil
	}
	if n := len(elements); n > kg.MaxBelieved {
		o.failAt(name, "%d agents exceed the limit of %d", n, kg.MaxBelieved)
		return nil
	}
	list := make([]kg.AgentID, 0, len(elements))
	for i, raw := range elements {
		if raw[0] != '"' {
			o.failAt(elementPath(name, i), "must be a string, not %s", kindOf(raw))
			return nil
		}
		id, err := caller.ParseAgent(decodeString(raw))
		if err != nil {
			o.failure.setAt(joinPath(o.path, elementPath(name, i)), kg.AsError(err))
		}
		list = append(list, id)
	}
	return list
}

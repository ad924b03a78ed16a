package a2a

import (
	"math"
	"time"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/kg"
)

// controls are koine's own members of metadata. They are in metadata.koine; the bare
// names are accepted too if metadata.koine does not have them (WIRE §2). All other
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
	raw := params.peek("metadata")
	metadata, _ := params.object("metadata")
	own, _ := metadata.object("koine")
	c := controls{metadata: raw}
	for _, name := range known {
		own.know(name)
		from := &own
		if !own.has(name) && name != "budget" { // callers may use this name themselves
			from = &metadata
		}
		c.read(name, from)
	}
	own.done()
	return c
}

func (c *controls) read(name string, from *object) {
	switch name {
	case "at":
		c.at = from.moment(name)
	case "recordedAt":
		c.recordedAt = from.span(name)
	case "validAt":
		c.validAt = from.time(name)
	case "believedBy":
		c.believedBy = from.agents(name)
	case "minRevision":
		n, _ := from.natural(name)
		c.minRevision = kg.Revision(n)
	case "budget":
		c.budget = from.budget(name)
	case "resume":
		c.resume, _ = from.text(name)
	case "snapshot":
		c.snapshot = from.flag(name)
	case "idempotencyKey":
		c.idempotencyKey, _ = from.text(name)
	case "expectedRevision":
		n, ok := from.natural(name)
		c.expected, c.hasExpected = kg.Revision(n), ok
	case "dryRun":
		c.dryRun = from.flag(name)
	}
}

// budget reads the limits of an answer.
func (o *object) budget(name string) (b operation.Budget) {
	members, _ := o.object(name)
	for _, m := range []struct {
		name string
		to   *int
	}{{"maxBytes", &b.MaxBytes}, {"maxTokens", &b.MaxTokens}, {"maxStatements", &b.MaxStatements}} {
		n, ok := members.natural(m.name)
		if ok && n == 0 {
			members.fail(m.name, "must be at least 1")
		}
		*m.to = int(min(n, math.MaxInt32))
	}
	members.done()
	return b
}

// moment reads a revision, as a number, or a time; the zero Moment if absent.
func (o *object) moment(name string) kg.Moment {
	raw := o.take(name)
	if raw == nil {
		return kg.Moment{}
	}
	text := string(raw)
	if raw[0] == '"' {
		text = unquote(raw)
	}
	m, err := kg.ParseMoment(text)
	if err != nil || m == (kg.Moment{}) {
		o.fail(name, "must be a revision, of which the first is 1, or an RFC 3339 time")
	}
	return m
}

// span reads a time span with optional ends.
func (o *object) span(name string) (s kg.TimeSpan) {
	ends, ok := o.object(name)
	if !ok {
		return s
	}
	s = kg.TimeSpan{From: ends.time("from"), Until: ends.time("until")}
	ends.done()
	if !s.Until.IsZero() && s.Until.Before(s.From) {
		o.fail(name, "cannot end before it begins")
	}
	return s
}

// time reads a time; zero if absent.
func (o *object) time(name string) time.Time {
	text, ok := o.text(name)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		o.fail(name, "must be an RFC 3339 time")
	}
	return t.UTC()
}

// agents reads a list of agents; nil if absent, and not nil if empty.
func (o *object) agents(name string) []kg.AgentID {
	elements, ok := o.array(name)
	if !ok {
		return nil
	}
	if n := len(elements); n > kg.MaxBelieved {
		o.fail(name, "%d agents exceed the limit of %d", n, kg.MaxBelieved)
		return nil
	}
	list := make([]kg.AgentID, 0, len(elements))
	for i, raw := range elements {
		if raw[0] != '"' {
			o.fail(index(name, i), "must be a string, not %s", kindOf(raw))
			return nil
		}
		id, err := caller.ParseAgent(unquote(raw))
		if err != nil {
			o.failure.set(join(o.path, index(name, i)), kg.AsError(err))
		}
		list = append(list, id)
	}
	return list
}

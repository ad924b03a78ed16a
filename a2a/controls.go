package a2a

import (
	"math"
	"time"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/kg"
)

// controls are koine's own members of metadata. They live under
// metadata.koine; the bare names are taken as well, where metadata.koine does
// not say them (WIRE §2). Everything else in metadata is the caller's own.
type controls struct {
	at          kg.Moment // zero for none
	minRevision kg.Revision
	recordedAt  kg.TimeSpan
	validAt     time.Time
	believedBy  []kg.AgentID // nil for anybody
	budget      operation.Budget

	resume   string
	snapshot bool

	idempotencyKey string
	expected       kg.Revision
	hasExpected    bool
	dryRun         bool

	metadata []byte // the whole of it, as it was sent; nil if absent
}

// readControls takes the controls that the method knows out of params'
// metadata. One that it does not know is an error under metadata.koine, and
// somebody else's business beside it.
func readControls(params *object, known ...string) controls {
	raw := params.peek("metadata")
	metadata, _ := params.object("metadata")
	own, _ := metadata.object("koine")
	c := controls{metadata: raw}
	for _, name := range known {
		own.know(name)
		from := &own
		if !own.has(name) && name != "budget" { // a word that others use too
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

// budget is a member that bounds an answer.
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

// moment is a member that names a revision, as a number, or a time; the zero
// Moment when it is absent.
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

// span is a member that names a span of time by its ends, either of which may
// be absent.
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

// time is a member that is a time; the zero time when it is absent.
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

// agents is a member that lists agents; nil when it is absent, and not nil when
// it lists nobody.
func (o *object) agents(name string) []kg.AgentID {
	elements, ok := o.array(name)
	if !ok {
		return nil
	}
	if n := len(elements); n > kg.MaxBelieved {
		o.fail(name, "names %d agents; %d at the most", n, kg.MaxBelieved)
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

package a2a

import (
	"strconv"
	"time"

	"koine/kg"
)

// controls are koine's own members of metadata. They live under
// metadata.koine; the bare names are taken as well, where metadata.koine does
// not say them (WIRE §2). Everything else in metadata is the caller's own.
type controls struct {
	at          instant
	minRevision kg.Revision

	resume   string
	snapshot bool

	idempotencyKey string
	expected       kg.Revision
	hasExpected    bool
	dryRun         bool
}

// instant is a point of the history: a revision, or a time.
type instant struct {
	revision kg.Revision
	time     time.Time
}

// readControls takes the controls that the method knows out of params'
// metadata. One that it does not know is an error under metadata.koine, and
// somebody else's business beside it.
func readControls(params *object, known ...string) controls {
	metadata, _ := params.object("metadata")
	own, _ := metadata.object("koine")
	var c controls
	for _, name := range known {
		own.know(name)
		from := &own
		if !own.has(name) {
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
		c.at = from.instant(name)
	case "minRevision":
		n, _ := from.natural(name)
		c.minRevision = kg.Revision(n)
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

// instant is a member that names a revision, as a number, or a time.
func (o *object) instant(name string) instant {
	raw := o.take(name)
	if raw == nil {
		return instant{}
	}
	text := string(raw)
	if raw[0] == '"' {
		text = unquote(raw)
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return instant{time: t}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		o.fail(name, "must be a revision, of which the first is 1, or an RFC 3339 time")
	}
	return instant{revision: kg.Revision(n)}
}

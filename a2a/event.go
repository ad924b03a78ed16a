package a2a

import (
	"encoding/json"
	"time"

	"koine/internal/operation"
	"koine/kg"
)

// wireEvent is KnowledgeGraphChangeEvent (knowledge graph extension, section
// 4.3). What else is known of the change is in its metadata (WIRE §5).
type wireEvent struct {
	Op string `json:"op"`
	// Statement is one of those behind the event where a snapshot shows an entity or rows.
	Statement      wireStatement `json:"statement"`
	ChangeID       string        `json:"changeId"`
	Timestamp      string        `json:"timestamp"`
	ChangeMetadata wireChange    `json:"changeMetadata"`
}

type wireChange struct {
	// Position to resume from after this event; absent inside a snapshot.
	Position string `json:"position,omitempty"`
	// Revision that made the change; in a snapshot, the one that made the
	// statement what it is.
	Revision kg.Revision `json:"revision"`
	CommitID string      `json:"commitId,omitempty"`
	// Actor is the agent that made the change; absent in a snapshot.
	Actor kg.AgentID `json:"actor,omitempty"`
	// Source is the agent whose assertion the statement is shown with: of a
	// remove, the one that went. It is absent where a snapshot shows an entity or rows.
	Source        kg.AgentID `json:"source,omitempty"`
	Justification string     `json:"justification,omitempty"`
	TaskID        string     `json:"taskId,omitempty"`
	SessionID     string     `json:"sessionId,omitempty"`
	// Previous are the statements that a replace took away.
	Previous         []wirePrevious `json:"previous,omitempty"`
	StatementRemains bool           `json:"statementRemains,omitempty"`
	Snapshot         bool           `json:"snapshot,omitempty"`
	SnapshotEnd      bool           `json:"snapshotEnd,omitempty"`
	// Counts of a graph that was replaced; absent where they are not told.
	Counts *wireCounts `json:"counts,omitempty"`
	// Data and Errors are what the subscription selected, with the last change
	// of what it tells together.
	Data   json.RawMessage `json:"data,omitempty"`
	Errors json.RawMessage `json:"errors,omitempty"`
}

// wirePrevious is a statement that went, with the strongest of the assertions
// that went with it and the agent whose that was.
type wirePrevious struct {
	wireStatement
	Source kg.AgentID `json:"source"`
}

func encodePrevious(s kg.Statement) wirePrevious {
	a := strongest(s)
	return wirePrevious{wireStatement: encodeStatement(s.Quad, a), Source: a.Source}
}

// wireReplaced is the event of a graph whose content was exchanged as a whole: koine's
// addition to the extension, which knows statements only. op is "graphReplaced"; graph is
// absent for the default graph.
type wireReplaced struct {
	Op             string     `json:"op"`
	Graph          string     `json:"graph,omitempty"`
	ChangeID       string     `json:"changeId"`
	Timestamp      string     `json:"timestamp"`
	ChangeMetadata wireChange `json:"changeMetadata"`
}

// wireCounts are of the statements of a graph that was replaced.
type wireCounts struct {
	Before  uint64 `json:"statementsBefore"`
	After   uint64 `json:"statementsAfter"`
	Added   uint64 `json:"statementsAdded"`
	Removed uint64 `json:"statementsRemoved"`
}

// opGraphReplaced is the op of a wireReplaced.
const opGraphReplaced = "graphReplaced"

// encoder turns the events of one stream into their wire form. It belongs to
// one goroutine.
type encoder struct {
	store *kg.Store
	types commitTypes
}

// change is the wire form of one of an event's changes, and the position behind
// it as a token ("" inside a snapshot). What was selected goes with the last of
// them: whoever is cut off before is told it again with the rest, and nobody
// twice.
func (e *encoder) change(ev *operation.Event, i int) (wireEvent, string, error) {
	c, last := &ev.Changes[i], i == len(ev.Changes)-1
	out := wireEvent{Op: c.Op.String(), Statement: encodeStatement(c.Statement.Quad, strongest(c.Statement))}
	meta := &out.ChangeMetadata
	meta.Source, meta.StatementRemains = strongest(c.Statement).Source, c.StatementRemains
	for _, previous := range c.Previous {
		meta.Previous = append(meta.Previous, encodePrevious(previous))
	}
	switch {
	case !last:
		meta.Position = e.store.FormatPosition(c.Position)
	default:
		if err := e.selected(meta, ev); err != nil {
			return out, "", err
		}
	}
	if ev.Snapshot {
		meta.Revision = c.Statement.Revision()
		out.ChangeID = e.store.SnapshotChangeID(c.Position.Revision, c.Statement.Quad)
		out.Timestamp = timestamp(c.Statement.RecordedAt())
		return out, meta.Position, nil
	}
	out.ChangeID = e.store.ChangeID(c.Position)
	out.Timestamp = timestamp(c.Commit.Time)
	e.commit(meta, c.Commit)
	e.types.echo(c.Commit, c, &out.Statement)
	return out, meta.Position, nil
}

func (e *encoder) commit(meta *wireChange, commit *kg.Commit) {
	meta.Revision, meta.CommitID, meta.Actor = commit.Revision, e.store.CommitID(commit.Revision), commit.Actor
	meta.Justification, meta.TaskID, meta.SessionID = commit.Justification, commit.TaskID, commit.SessionID
}

// replaced is the wire form of the event of a graph that was replaced, and the position
// behind it.
func (e *encoder) replaced(ev *operation.Event, r *kg.GraphReplacement) (wireReplaced, string, error) {
	c := &ev.Changes[0]
	out := wireReplaced{Op: opGraphReplaced, ChangeID: e.store.ChangeID(c.Position), Timestamp: timestamp(c.Commit.Time)}
	if r.Graph != kg.DefaultGraph {
		out.Graph = r.Graph.ExternalID()
	}
	meta := &out.ChangeMetadata
	e.commit(meta, c.Commit)
	if !r.Uncounted {
		meta.Counts = &wireCounts{r.Before, r.Statements, r.Added, r.Removed}
	}
	err := e.selected(meta, ev)
	return out, meta.Position, err
}

// standing is the wire form of a part of a snapshot that is no statement: the
// part with this number.
func (e *encoder) standing(ev *operation.Event, part int) (wireEvent, string, error) {
	if ev.Standing == nil {
		err := kg.Errorf(kg.CodeInvalid, "the rows hold without a statement, and each event here has one")
		err.Hint = "Follow the pattern over /graphql."
		return wireEvent{}, "", err
	}
	// No source is told: by that the event is known from one of a statement.
	out := wireEvent{Op: kg.Add.String(), Timestamp: timestamp(ev.Taken), Statement: encodeStatement(ev.Standing.Quad, strongest(*ev.Standing))}
	out.ChangeID = e.store.SnapshotChangeID(ev.Revision, kg.Quad{Object: kg.Integer(int64(part))})
	out.ChangeMetadata.Revision = ev.Revision
	err := e.selected(&out.ChangeMetadata, ev)
	return out, out.ChangeMetadata.Position, err
}

// selected writes what the subscription selected of the event, and where it
// stands.
func (e *encoder) selected(meta *wireChange, ev *operation.Event) (err error) {
	meta.Data, meta.Snapshot, meta.SnapshotEnd = ev.Result.Data, ev.Snapshot, ev.SnapshotEnd
	if len(ev.Result.Errors) > 0 {
		if meta.Errors, err = appendJSON(nil, ev.Result.Errors); err != nil {
			return err
		}
	}
	if !ev.Snapshot || ev.SnapshotEnd {
		meta.Position = e.store.FormatPosition(ev.Position)
	}
	return nil
}

// timestamp is RFC 3339 in UTC with milliseconds, as commits have them.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

package a2a

import (
	"encoding/json"
	"time"

	"koine/internal/operation"
	"koine/kg"
)

// wireEvent is KnowledgeGraphChangeEvent (knowledge graph extension, section 4.3). Its
// metadata has all other data about the change (docs/reference/json-rpc.md).
type wireEvent struct {
	Op string `json:"op"`
	// Statement is one of the statements behind the event if a snapshot shows an entity
	// or rows.
	Statement      wireStatement `json:"statement"`
	ChangeID       string        `json:"changeId"`
	Timestamp      string        `json:"timestamp"`
	ChangeMetadata wireChange    `json:"changeMetadata"`
}

type wireChange struct {
	// Position is the position to resume from after this event; absent inside a
	// snapshot.
	Position string `json:"position,omitempty"`
	// Revision is the revision of the change; in a snapshot, that of the statement's
	// last change.
	Revision kg.Revision `json:"revision"`
	CommitID string      `json:"commitId,omitempty"`
	// Actor is the agent that made the change; absent in a snapshot.
	Actor kg.AgentID `json:"actor,omitempty"`
	// Source is the agent of the shown assertion: for a remove, of the removed one. It
	// is absent if a snapshot shows an entity or rows.
	Source        kg.AgentID `json:"source,omitempty"`
	Justification string     `json:"justification,omitempty"`
	TaskID        string     `json:"taskId,omitempty"`
	SessionID     string     `json:"sessionId,omitempty"`
	// Previous are the statements that a replace removed.
	Previous         []wirePrevious `json:"previous,omitempty"`
	StatementRemains bool           `json:"statementRemains,omitempty"`
	Snapshot         bool           `json:"snapshot,omitempty"`
	SnapshotEnd      bool           `json:"snapshotEnd,omitempty"`
	// Counts are the counts of a replaced graph; absent if unknown.
	Counts *wireCounts `json:"counts,omitempty"`
	// Data and Errors are the selection of the subscription, with the last change of an
	// event.
	Data   json.RawMessage `json:"data,omitempty"`
	Errors json.RawMessage `json:"errors,omitempty"`
}

// wirePrevious is a removed statement, with the strongest removed assertion and its
// agent.
type wirePrevious struct {
	wireStatement
	Source kg.AgentID `json:"source"`
}

func encodePrevious(s kg.Statement) wirePrevious {
	a := strongestAssertion(s)
	return wirePrevious{wireStatement: encodeStatement(s.Quad, a), Source: a.Source}
}

// wireReplaced is the event of a graph whose content was replaced as a whole: an
// extension of koine, because the specification knows statements only. op is
// "graphReplaced"; graph is absent for the default graph.
type wireReplaced struct {
	Op             string     `json:"op"`
	Graph          string     `json:"graph,omitempty"`
	ChangeID       string     `json:"changeId"`
	Timestamp      string     `json:"timestamp"`
	ChangeMetadata wireChange `json:"changeMetadata"`
}

// wireCounts counts the statements of a replaced graph.
type wireCounts struct {
	Before  uint64 `json:"statementsBefore"`
	After   uint64 `json:"statementsAfter"`
	Added   uint64 `json:"statementsAdded"`
	Removed uint64 `json:"statementsRemoved"`
}

// opGraphReplaced is the op of a wireReplaced.
const opGraphReplaced = "graphReplaced"

// encoder encodes the events of one stream. It belongs to one goroutine.
type encoder struct {
	store *kg.Store
}

// encodeChange encodes one of an event's changes, with the position after it as a token (""
// inside a snapshot). The selection goes with the last change: a client that is cut off
// before it receives the whole event again.
func (e *encoder) encodeChange(ev *operation.Event, i int) (wireEvent, string, error) {
	c, last := &ev.Changes[i], i == len(ev.Changes)-1
	out := wireEvent{Op: c.Op.String(), Statement: encodeStatement(c.Statement.Quad, strongestAssertion(c.Statement))}
	meta := &out.ChangeMetadata
	meta.Source, meta.StatementRemains = strongestAssertion(c.Statement).Source, c.StatementRemains
	for _, previous := range c.Previous {
		meta.Previous = append(meta.Previous, encodePrevious(previous))
	}
	switch {
	case !last:
		meta.Position = e.store.FormatPosition(c.Position)
	default:
		if err := e.setSelection(meta, ev); err != nil {
			return out, "", err
		}
	}
	if ev.Snapshot {
		meta.Revision = c.Statement.Revision()
		out.ChangeID = e.store.SnapshotChangeID(c.Position.Revision, c.Statement.Quad)
		out.Timestamp = formatTime(c.Statement.RecordedAt())
		return out, meta.Position, nil
	}
	out.ChangeID = e.store.ChangeID(c.Position)
	out.Timestamp = formatTime(c.Commit.Time)
	e.setCommit(meta, c.Commit)
	addTypes(&out.Statement, c)
	return out, meta.Position, nil
}

// addTypes repeats the types that the commit asserted of its resources in the commit's other events
// (docs/reference/knowledge.md).
func addTypes(s *wireStatement, c *kg.Event) {
	if t := c.Types[0]; !t.IsZero() {
		s.Subject.Type = t.ExternalID()
	}
	if t := c.Types[1]; !t.IsZero() {
		s.Object.Type = t.ExternalID()
	}
}

func (e *encoder) setCommit(meta *wireChange, commit *kg.Commit) {
	meta.Revision, meta.CommitID, meta.Actor = commit.Revision, e.store.CommitID(commit.Revision), commit.Actor
	meta.Justification, meta.TaskID, meta.SessionID = commit.Justification, commit.TaskID, commit.SessionID
}

// encodeReplaced encodes the event of a replaced graph, with the position after it.
func (e *encoder) encodeReplaced(ev *operation.Event, r *kg.GraphReplacement) (wireReplaced, string, error) {
	c := &ev.Changes[0]
	out := wireReplaced{Op: opGraphReplaced, ChangeID: e.store.ChangeID(c.Position), Timestamp: formatTime(c.Commit.Time)}
	if r.Graph != kg.DefaultGraph {
		out.Graph = r.Graph.ExternalID()
	}
	meta := &out.ChangeMetadata
	e.setCommit(meta, c.Commit)
	if !r.Uncounted {
		meta.Counts = &wireCounts{r.Before, r.Statements, r.Added, r.Removed}
	}
	err := e.setSelection(meta, ev)
	return out, meta.Position, err
}

// encodeStanding encodes the part of a snapshot with this number that is not a statement.
func (e *encoder) encodeStanding(ev *operation.Event, part int) (wireEvent, string, error) {
	if ev.Statement == nil {
		err := kg.Errorf(kg.CodeInvalid, "the rows have no statement, which every event requires here")
		err.Hint = "Subscribe to the pattern over /graphql."
		return wireEvent{}, "", err
	}
	// The source is omitted to tell the event from one of a statement.
	out := wireEvent{Op: kg.Add.String(), Timestamp: formatTime(ev.Taken), Statement: encodeStatement(ev.Statement.Quad, strongestAssertion(*ev.Statement))}
	out.ChangeID = e.store.SnapshotChangeID(ev.Revision, kg.Quad{Object: kg.Integer(int64(part))})
	out.ChangeMetadata.Revision = ev.Revision
	err := e.setSelection(&out.ChangeMetadata, ev)
	return out, out.ChangeMetadata.Position, err
}

// setSelection sets the selection of the event and its position.
func (e *encoder) setSelection(meta *wireChange, ev *operation.Event) (err error) {
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

// formatTime formats a time as RFC 3339 in UTC with milliseconds, the precision of
// commits.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

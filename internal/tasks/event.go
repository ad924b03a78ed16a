package tasks

import (
	"encoding/json"
	"slices"
	"strings"

	"koine/internal/systemgraph"
	"koine/kg"
)

// eventsIn derives the events of a task from a commit, in order: messages, chunks, then
// the status. An event's position is that of its last part, counting the parts of all
// events of the commit.
func eventsIn(c *kg.Commit, id TaskID, graph kg.Term) ([]Event, error) {
	entities := addedStatements(c, id, graph)
	version := int64(0)
	for _, entity := range entities {
		if entity.subject == id.Entity() {
			version = entity.record.Integer(propVersion)
		}
	}
	var out []Event
	index := uint32(0)
	emit := func(e Event) {
		index += e.width()
		e.Position = kg.Position{Revision: c.Revision, Index: index - 1}
		e.Time, e.By, e.Version = c.Time, c.Actor, version
		out = append(out, e)
	}
	for _, entity := range entities {
		if entity.record[propParts] == nil || Role(entity.record.Text(propRole)) != User {
			continue
		}
		m, err := messageOf(entity.record)
		if err != nil {
			return nil, err
		}
		emit(Event{Message: m})
	}
	for _, entity := range entities {
		for _, object := range entity.record[propChunk] {
			chunk, err := chunkOf(entity.subject, object)
			if err != nil {
				return nil, err
			}
			if !chunk.Append {
				if chunk.Replaced, err = replacedParts(c, entity.subject, graph); err != nil {
					return nil, err
				}
			}
			emit(Event{Chunk: chunk})
		}
	}
	for _, entity := range entities {
		if entity.subject != id.Entity() || entity.record[propStatus] == nil {
			continue
		}
		stored := statusOf(entity.record)
		status := &Status{State: stored.State, Time: stored.At}
		for _, other := range entities {
			if stored.Message > 0 && other.subject == id.messageEntity(stored.Message) {
				m, err := messageOf(other.record)
				if err != nil {
					return nil, err
				}
				status.Message = m
			}
		}
		emit(Event{Status: status, Failure: failureOf(entity.record)})
	}
	return out, nil
}

// width is the number of positions that an event takes in its commit: one for each
// part, so that a stream of single parts can resume after any of them, and one for a
// status.
func (e *Event) width() uint32 {
	switch {
	case e.Chunk != nil:
		return uint32(max(1, len(e.Chunk.Parts)))
	case e.Status != nil && e.Status.Message != nil:
		return uint32(len(e.Status.Message.Parts)) + 1
	}
	return 1
}

// PartPosition is the position after the nth part, from 0, of the event's chunk or of
// the message of its status.
func (e *Event) PartPosition(n int) kg.Position {
	at := e.Position
	at.Index -= e.width() - 1 - uint32(n)
	return at
}

// replacedParts lists the parts of an artifact that a commit removed.
func replacedParts(c *kg.Commit, artifact, graph kg.Term) ([]Part, error) {
	var chunks []storedChunk
	for i := range c.Changes {
		q := &c.Changes[i].Quad
		if c.Changes[i].Op != kg.Remove || q.Subject != artifact || q.Graph != graph || q.Predicate != systemgraph.Property(propChunk) {
			continue
		}
		var chunk storedChunk
		if err := json.Unmarshal([]byte(q.Object.Value()), &chunk); err != nil {
			return nil, err
		}
		chunks = append(chunks, chunk)
	}
	return partsOf(chunks), nil
}

// advancesVersion reports whether a commit gives the task another version. A commit that only
// removes the version deletes the task.
func advancesVersion(c *kg.Commit, id TaskID, graph kg.Term) bool {
	version := systemgraph.Property(propVersion)
	return slices.ContainsFunc(c.Changes, func(ch kg.Change) bool {
		return ch.Op == kg.Add && ch.Quad.Predicate == version && ch.Quad.Subject == id.Entity() && ch.Quad.Graph == graph
	})
}

// entityStatements holds the statements that a commit added about an entity.
type entityStatements struct {
	subject kg.Term
	record  systemgraph.Record
}

// addedStatements groups the statements that a commit added about a task, its messages and its
// artifacts by entity, in the order of their first mention.
func addedStatements(c *kg.Commit, id TaskID, graph kg.Term) []entityStatements {
	var out []entityStatements
	places := map[kg.Term]int{}
	task, artifacts := id.Entity(), artifactPrefix+string(id)+"/"
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Op != kg.Add || ch.Quad.Graph != graph {
			continue
		}
		subject := ch.Quad.Subject
		if subject != task && !strings.HasPrefix(subject.Value(), task.Value()+"/") && !strings.HasPrefix(subject.Value(), artifacts) {
			continue
		}
		name, ours := strings.CutPrefix(ch.Quad.Predicate.Value(), kg.OwnVocabulary)
		if !ours {
			continue
		}
		place, found := places[subject]
		if !found {
			place = len(out)
			places[subject] = place
			out = append(out, entityStatements{subject, systemgraph.Record{}})
		}
		out[place].record[name] = append(out[place].record[name], ch.Quad.Object)
	}
	return out
}

func failureOf(r systemgraph.Record) *Failure {
	raw := r.JSON(propFailure)
	if raw == nil {
		return nil
	}
	f := new(Failure)
	_ = json.Unmarshal(raw, f) // written by setFailure
	return f
}

// ChangesPattern is the pattern for a watcher of all tasks: each commit that changes a task
// changes a matching statement.
func ChangesPattern() kg.Pattern { return kg.Pattern{Predicate: systemgraph.Property(propVersion)} }

// ChangedBy returns the task that an event of ChangesPattern is about, "" if none is. The
// removal of a replaced version is about none; gone reports that the task was deleted.
func ChangedBy(e *kg.Event) (id TaskID, gone bool) {
	st := &e.Statement
	if _, _, ok := pairOf(st.Graph); !ok || st.Predicate != systemgraph.Property(propVersion) {
		return "", false
	}
	id = IDOf(st.Subject)
	if e.Op == kg.Remove {
		if advancesVersion(e.Commit, id, st.Graph) {
			return "", false
		}
		return id, true
	}
	return id, false
}

// EventsIn lists the events of a task in a commit, in order. Their positions have no
// epoch.
func EventsIn(c *kg.Commit, t *Task) ([]Event, error) {
	return eventsIn(c, t.ID, graphOf(t.Creator, t.Handler))
}

package tasks

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"koine/kg"
)

// TaskID names a task: a UUID of version 7.
type TaskID string

const (
	taskPrefix     = "urn:koine:task:"
	artifactPrefix = "urn:koine:artifact:"
	graphPrefix    = kg.JournalGraphPrefix + "tasks:"
)

// Entity is the task as an entity of the graph.
func (t TaskID) Entity() kg.Term { return kg.IRI(taskPrefix + string(t)) }

// idOf is the task that an entity is, "" for another entity.
func idOf(t kg.Term) TaskID {
	id, ok := strings.CutPrefix(t.Value(), taskPrefix)
	if !ok || !TaskID(id).valid() {
		return ""
	}
	return TaskID(id)
}

// message is the entity of the task's message with this number.
func (t TaskID) message(n int) kg.Term {
	return kg.IRI(taskPrefix + string(t) + "/message/" + strconv.Itoa(n))
}

// ArtifactEntity is an artifact of the task as an entity of the graph. Its id is
// unique within the task only.
func (t TaskID) ArtifactEntity(id string) kg.Term {
	return kg.IRI(artifactPrefix + string(t) + "/" + url.PathEscape(id))
}

// messageNumber is the task that a message is of, and its number there; 0 for another
// entity.
func messageNumber(t kg.Term) (TaskID, int) {
	id, number, _ := strings.Cut(strings.TrimPrefix(t.Value(), taskPrefix), "/message/")
	n, err := strconv.Atoi(number)
	if err != nil {
		return "", 0
	}
	return TaskID(id), n
}

// keyOf is the id that an artifact has within its task.
func keyOf(artifact kg.Term) string {
	_, escaped, _ := strings.Cut(strings.TrimPrefix(artifact.Value(), artifactPrefix), "/")
	key, err := url.PathUnescape(escaped)
	if err != nil {
		return escaped
	}
	return key
}

// valid tells whether a task may have the id. What is not valid is not there.
func (t TaskID) valid() bool {
	_, err := uuid.Parse(string(t))
	return err == nil && len(t) == len("00000000-0000-0000-0000-000000000000")
}

// made is when the id was made; the zero time for an id of another kind.
func (t TaskID) made() time.Time {
	id, err := uuid.Parse(string(t))
	if err != nil || id.Version() != 7 {
		return time.Time{}
	}
	return time.Unix(id.Time().UnixTime())
}

func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("an id for a task: %w", err)
	}
	return id.String(), nil
}

// graphOf is the graph of the tasks that the one agent gave the other.
func graphOf(creator, handler kg.AgentID) kg.Term {
	return kg.IRI(graphPrefix + url.QueryEscape(string(creator)) + ":" + url.QueryEscape(string(handler)))
}

// pairOf is whose tasks are in a graph; not ok for a graph without any.
func pairOf(graph kg.Term) (creator, handler kg.AgentID, ok bool) {
	rest, ok := strings.CutPrefix(graph.Value(), graphPrefix)
	if !ok {
		return "", "", false
	}
	first, second, _ := strings.Cut(rest, ":")
	a, errA := url.QueryUnescape(first)
	b, errB := url.QueryUnescape(second)
	if errA != nil || errB != nil {
		return "", "", true // somebody else's name for a graph of ours: nobody's
	}
	return kg.AgentID(a), kg.AgentID(b), true
}

// TaskOf is the task that an entity is, "" for another entity.
func TaskOf(entity kg.Term) TaskID { return idOf(entity) }

// ParseArtifact takes a reference to an artifact apart: its entity, or the id of its
// task with its own, as in <task>/<id>. Not ok for a text that is none.
func ParseArtifact(ref string) (task TaskID, id string, ok bool) {
	rest, entity := strings.CutPrefix(ref, artifactPrefix)
	first, id, ok := strings.Cut(rest, "/")
	if entity && ok {
		id = keyOf(kg.IRI(ref))
	}
	return TaskID(first), id, ok && id != "" && TaskID(first).valid()
}

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

// TaskID identifies a task: a UUID of version 7.
type TaskID string

const (
	taskPrefix     = "urn:koine:task:"
	artifactPrefix = "urn:koine:artifact:"
	graphPrefix    = kg.JournalGraphPrefix + "tasks:"
)

// Entity returns the IRI of the task.
func (t TaskID) Entity() kg.Term { return kg.IRI(taskPrefix + string(t)) }

// idOf returns the id of the task with this IRI, "" for another entity.
func IDOf(t kg.Term) TaskID {
	id, ok := strings.CutPrefix(t.Value(), taskPrefix)
	if !ok || !TaskID(id).valid() {
		return ""
	}
	return TaskID(id)
}

// messageEntity returns the IRI of the task's message with this number.
func (t TaskID) messageEntity(n int) kg.Term {
	return kg.IRI(taskPrefix + string(t) + "/message/" + strconv.Itoa(n))
}

// ArtifactEntity returns the IRI of an artifact of the task. An artifact's id is unique
// within its task only.
func (t TaskID) ArtifactEntity(id string) kg.Term {
	return kg.IRI(artifactPrefix + string(t) + "/" + url.PathEscape(id))
}

// messageNumber returns the task and the number of a message; 0 for another entity.
func messageNumber(t kg.Term) (TaskID, int) {
	id, number, _ := strings.Cut(strings.TrimPrefix(t.Value(), taskPrefix), "/message/")
	n, err := strconv.Atoi(number)
	if err != nil {
		return "", 0
	}
	return TaskID(id), n
}

// keyOf returns the id of an artifact within its task.
func keyOf(artifact kg.Term) string {
	_, escaped, _ := strings.Cut(strings.TrimPrefix(artifact.Value(), artifactPrefix), "/")
	key, err := url.PathUnescape(escaped)
	if err != nil {
		return escaped
	}
	return key
}

// valid reports whether t is a well-formed id. Callers treat other ids as not found.
func (t TaskID) valid() bool {
	_, err := uuid.Parse(string(t))
	return err == nil && len(t) == len("00000000-0000-0000-0000-000000000000")
}

// createdAt returns the creation time that the id contains; zero if it has none.
func (t TaskID) createdAt() time.Time {
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

func graphOf(creator, handler kg.AgentID) kg.Term {
	return kg.IRI(graphPrefix + url.QueryEscape(string(creator)) + ":" + url.QueryEscape(string(handler)))
}

// pairOf returns the agents of a graph of tasks; ok is false for another graph.
func pairOf(graph kg.Term) (creator, handler kg.AgentID, ok bool) {
	rest, ok := strings.CutPrefix(graph.Value(), graphPrefix)
	if !ok {
		return "", "", false
	}
	first, second, _ := strings.Cut(rest, ":")
	a, errA := url.QueryUnescape(first)
	b, errB := url.QueryUnescape(second)
	if errA != nil || errB != nil {
		return "", "", true // malformed name under our prefix: belongs to no agent
	}
	return kg.AgentID(a), kg.AgentID(b), true
}

// ParseArtifact parses a reference to an artifact: its IRI, or <task>/<id>. It reports
// false if the text is neither.
func ParseArtifact(ref string) (task TaskID, id string, ok bool) {
	rest, entity := strings.CutPrefix(ref, artifactPrefix)
	first, id, ok := strings.Cut(rest, "/")
	if entity && ok {
		id = keyOf(kg.IRI(ref))
	}
	return TaskID(first), id, ok && id != "" && TaskID(first).valid()
}

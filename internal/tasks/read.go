package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// ReadOptions selects the parts of a task to read.
type ReadOptions struct {
	// History is the number of newest messages to read; negative for all.
	History   int
	Artifacts bool
}

// ReadAll selects all parts of a task.
var ReadAll = ReadOptions{History: -1, Artifacts: true}

// Get reads a task.
//
// Errors: CodeTaskNotFound.
func (s *Service) Get(ctx context.Context, by caller.Caller, id TaskID, r ReadOptions) (*Task, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return readTask(snapshot, id, r)
}

// Message reads one message of a task by its number, and the task without messages and
// artifacts.
//
// Errors: CodeTaskNotFound, also if the task has no such message.
func (s *Service) Message(ctx context.Context, by caller.Caller, id TaskID, n int) (*Task, *Message, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, nil, err
	}
	defer snapshot.Close()
	t, err := readTask(snapshot, id, ReadOptions{})
	if err != nil {
		return nil, nil, err
	}
	graph := graphOf(t.Creator, t.Handler)
	m, err := readMessage(snapshot, graph, id.messageEntity(n))
	if err == nil && m == nil {
		err = errNoTask()
	}
	return t, m, err
}

// Messages reads up to limit messages of a task, in order, after the one with the given
// number.
//
// Errors: CodeTaskNotFound.
func (s *Service) Messages(ctx context.Context, by caller.Caller, id TaskID, after, limit int) (list []Message, err error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	t, err := readTask(snapshot, id, ReadOptions{})
	if err != nil {
		return nil, err
	}
	graph := graphOf(t.Creator, t.Handler)
	for n := after + 1; n <= min(after+limit, t.Messages); n++ {
		m, err := readMessage(snapshot, graph, id.messageEntity(n))
		if err != nil {
			return nil, err
		}
		if m != nil {
			list = append(list, *m)
		}
	}
	return list, nil
}

// Artifact reads one artifact of a task.
//
// Errors: CodeTaskNotFound, also if the task has no such artifact.
func (s *Service) Artifact(ctx context.Context, by caller.Caller, task TaskID, id string) (*Artifact, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	graph, err := graphIn(snapshot, task)
	if err != nil {
		return nil, err
	}
	a, err := readArtifact(snapshot, graph, task.ArtifactEntity(id))
	if err == nil && a.number == 0 {
		err = errNoTask()
	}
	return a, err
}

// snapshot returns a snapshot with the rights of the agent.
func (s *Service) snapshot(ctx context.Context, by caller.Caller) (*kg.Snapshot, error) {
	return s.snapshotAt(ctx, by, 0)
}

// snapshotAt returns a snapshot at a revision, 0 for the newest.
func (s *Service) snapshotAt(ctx context.Context, by caller.Caller, at kg.Revision) (*kg.Snapshot, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	return s.store.View(ctx, kg.View{Principal: by.Reader(agent), AllGraphs: true, At: at})
}

func readTask(s *kg.Snapshot, id TaskID, reading ReadOptions) (*Task, error) {
	graph, err := graphIn(s, id)
	if err != nil {
		return nil, err
	}
	r, err := systemgraph.Read(s.Match, graph, id.Entity())
	if err != nil {
		return nil, err
	}
	t := taskOf(id, r)
	t.Revision = s.Revision()
	if t.Status.Message, err = readStatusMessage(s, graph, t, r); err != nil {
		return nil, err
	}
	if t.History, err = readHistory(s, graph, t, r, reading.History); err != nil {
		return nil, err
	}
	if reading.Artifacts {
		t.Artifacts, err = readArtifacts(s, graph, id)
	}
	return t, err
}

// graphIn returns the graph of the task. Only koine writes the class, so a statement
// with it identifies the task.
func graphIn(s *kg.Snapshot, id TaskID) (graph kg.Term, err error) {
	if !id.valid() {
		return graph, errNoTask()
	}
	for st, err := range s.Match(kg.Pattern{Subject: id.Entity(), Predicate: rdfType, Object: classOfTask}) {
		if err != nil {
			return graph, err
		}
		if _, _, ok := pairOf(st.Graph); ok {
			return st.Graph, nil
		}
	}
	return graph, errNoTask()
}

// taskOf decodes a task without its messages and artifacts.
func taskOf(id TaskID, r systemgraph.Record) *Task {
	t := &Task{
		ID: id, Context: r.Text(propContext), Creator: kg.AgentID(r.Text(propCreator)), Handler: kg.AgentID(r.Text(propHandler)),
		Metadata: r.JSON(propMetadata), Parent: TaskID(r.Text(propParent)), User: r.Text(propUser), Created: r.Time(propCreated),
		Messages: int(r.Integer(propMessages)), Version: r.Integer(propVersion),
	}
	stored := statusOf(r)
	t.Status = Status{State: stored.State, Time: stored.At}
	t.Updated = changedAt(r)
	t.Failure = failureOf(r)
	return t
}

func statusOf(r systemgraph.Record) (stored storedStatus) {
	_ = json.Unmarshal(r.JSON(propStatus), &stored) // written by setStatus
	return stored
}

func readStatusMessage(s *kg.Snapshot, graph kg.Term, t *Task, r systemgraph.Record) (*Message, error) {
	n := statusOf(r).Message
	if n == 0 {
		return nil, nil
	}
	return readMessage(s, graph, t.ID.messageEntity(n))
}

func readMessage(s *kg.Snapshot, graph, subject kg.Term) (*Message, error) {
	r, err := systemgraph.Read(s.Match, graph, subject)
	if err != nil {
		return nil, err
	}
	return messageOf(r)
}

// readHistory reads the newest messages without that of the status, oldest first.
func readHistory(s *kg.Snapshot, graph kg.Term, t *Task, r systemgraph.Record, limit int) ([]Message, error) {
	var out []Message
	current := statusOf(r).Message
	for n := t.Messages; n > 0 && (limit < 0 || len(out) < limit); n-- {
		if n == current {
			continue
		}
		m, err := readMessage(s, graph, t.ID.messageEntity(n))
		if err != nil {
			return nil, err
		}
		if m != nil {
			out = append(out, *m)
		}
	}
	slices.Reverse(out)
	return out, nil
}

func readArtifacts(s *kg.Snapshot, graph kg.Term, id TaskID) (out []Artifact, err error) {
	for st, err := range s.Match(kg.Pattern{Predicate: systemgraph.Property(propTask), Object: id.Entity(), Graph: graph}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(st.Subject.Value(), artifactPrefix) {
			continue
		}
		a, err := readArtifact(s, graph, st.Subject)
		if err != nil {
			return nil, err
		}
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b Artifact) int { return cmp.Compare(a.number, b.number) })
	return out, nil
}

func readArtifact(s *kg.Snapshot, graph, subject kg.Term) (*Artifact, error) {
	r, err := systemgraph.Read(s.Match, graph, subject)
	if err != nil {
		return nil, err
	}
	return artifactOf(r)
}

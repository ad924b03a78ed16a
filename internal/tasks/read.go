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
	// Partial leaves out messages and artifacts if the task has more than
	// Options.MaxReadBytes with them (Task.Partial). Without it, that is an error.
	Partial bool
}

// ReadAll selects all parts of a task. ReadFitting leaves them out if they are too large: it is
// for the answer to a change that is made, and for notifications.
var (
	ReadAll     = ReadOptions{History: -1, Artifacts: true}
	ReadFitting = ReadOptions{History: -1, Artifacts: true, Partial: true}
)

// Get reads a task.
//
// Errors: CodeTaskNotFound; CodeLimitExceeded above Options.MaxReadBytes, without r.Partial.
func (s *Service) Get(ctx context.Context, by caller.Caller, id TaskID, r ReadOptions) (*Task, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return s.readBounded(snapshot, id, r)
}

// readBounded reads a task within Options.MaxReadBytes.
func (s *Service) readBounded(snapshot *kg.Snapshot, id TaskID, r ReadOptions) (*Task, error) {
	m := &meter{limit: s.options.MaxReadBytes}
	t, err := readTask(snapshot, id, r, m)
	if m.refused && r.Partial {
		return readPartial(snapshot, id, new(meter))
	}
	return t, err
}

// readPartial reads a task without its messages and artifacts, which are too large.
func readPartial(s *kg.Snapshot, id TaskID, m *meter) (*Task, error) {
	t, err := readTask(s, id, ReadOptions{}, m)
	if err == nil {
		t.Partial = true
	}
	return t, err
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
	t, err := readHead(snapshot, id)
	if err != nil {
		return nil, nil, err
	}
	graph := graphOf(t.Creator, t.Handler)
	m, err := readMessage(snapshot, graph, id.messageEntity(n), new(meter))
	if err == nil && m == nil {
		err = errNoTask()
	}
	return t, m, err
}

// Messages reads up to limit messages of a task, in order, after the one with the given
// number.
//
// Errors: CodeTaskNotFound; CodeLimitExceeded above Options.MaxReadBytes.
func (s *Service) Messages(ctx context.Context, by caller.Caller, id TaskID, after, limit int) (list []Message, err error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	t, err := readHead(snapshot, id)
	if err != nil {
		return nil, err
	}
	graph, spent := graphOf(t.Creator, t.Handler), &meter{limit: s.options.MaxReadBytes}
	for n := after + 1; n <= min(after+limit, t.Messages); n++ {
		m, err := readMessage(snapshot, graph, id.messageEntity(n), spent)
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
// Errors: CodeTaskNotFound, also if the task has no such artifact; CodeLimitExceeded above
// Options.MaxReadBytes.
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
	a, err := readArtifact(snapshot, graph, task.ArtifactEntity(id), &meter{limit: s.options.MaxReadBytes})
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

// readHead reads a task without its messages and artifacts.
func readHead(s *kg.Snapshot, id TaskID) (*Task, error) {
	return readTask(s, id, ReadOptions{}, new(meter))
}

// readTask reads a task. m refuses messages and artifacts only: the rest of a task is counted,
// and small.
func readTask(s *kg.Snapshot, id TaskID, reading ReadOptions, m *meter) (*Task, error) {
	graph, err := graphIn(s, id)
	if err != nil {
		return nil, err
	}
	var head meter
	r, err := systemgraph.Read(head.counting(s.Match), graph, id.Entity())
	if err != nil {
		return nil, err
	}
	t := taskOf(id, r)
	t.Revision = s.Revision()
	if t.Status.Message, err = readStatusMessage(s, graph, t, r, &head); err != nil {
		return nil, err
	}
	m.used += head.used
	if t.History, err = readHistory(s, graph, t, r, reading.History, m); err != nil {
		return nil, err
	}
	if reading.Artifacts {
		t.Artifacts, err = readArtifacts(s, graph, id, m)
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

func readStatusMessage(s *kg.Snapshot, graph kg.Term, t *Task, r systemgraph.Record, m *meter) (*Message, error) {
	n := statusOf(r).Message
	if n == 0 {
		return nil, nil
	}
	return readMessage(s, graph, t.ID.messageEntity(n), m)
}

func readMessage(s *kg.Snapshot, graph, subject kg.Term, m *meter) (*Message, error) {
	r, err := systemgraph.Read(m.counting(s.Match), graph, subject)
	if err != nil {
		return nil, err
	}
	out, err := messageOf(r)
	if err != nil || out == nil {
		return nil, err
	}
	return out, m.countParts(1 + len(out.Parts))
}

// readHistory reads the newest messages without that of the status, oldest first.
func readHistory(s *kg.Snapshot, graph kg.Term, t *Task, r systemgraph.Record, limit int, spent *meter) ([]Message, error) {
	var out []Message
	current := statusOf(r).Message
	for n := t.Messages; n > 0 && (limit < 0 || len(out) < limit); n-- {
		if n == current {
			continue
		}
		m, err := readMessage(s, graph, t.ID.messageEntity(n), spent)
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

func readArtifacts(s *kg.Snapshot, graph kg.Term, id TaskID, m *meter) (out []Artifact, err error) {
	for st, err := range s.Match(kg.Pattern{Predicate: systemgraph.Property(propTask), Object: id.Entity(), Graph: graph}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(st.Subject.Value(), artifactPrefix) {
			continue
		}
		a, err := readArtifact(s, graph, st.Subject, m)
		if err != nil {
			return nil, err
		}
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b Artifact) int { return cmp.Compare(a.number, b.number) })
	return out, nil
}

func readArtifact(s *kg.Snapshot, graph, subject kg.Term, m *meter) (*Artifact, error) {
	r, err := systemgraph.Read(m.counting(s.Match), graph, subject)
	if err != nil {
		return nil, err
	}
	return artifactOf(r, m)
}

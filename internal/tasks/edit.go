package tasks

import (
	"context"
	"maps"
	"slices"
	"time"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// edit is a task during an update that changes it.
type edit struct {
	tx     *kg.Tx
	agent  kg.AgentID // the agent that changes it
	task   *Task      // the new state, without history and artifacts
	graph  kg.Term
	was    systemgraph.Record // the stored record; empty for a new task
	record systemgraph.Record // the properties to write
}

// editTask starts an edit of a task that the principal takes part in.
func editTask(tx *kg.Tx, p kg.Principal, id TaskID) (*edit, error) {
	if !id.valid() {
		return nil, errNoTask()
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: id.Entity(), Predicate: rdfType, Object: classOfTask}) {
		if err != nil {
			return nil, err
		}
		creator, handler, ok := pairOf(st.Graph)
		if !ok || !takesPart(p, creator, handler) {
			continue
		}
		r, err := systemgraph.Read(tx.MatchOwn, st.Graph, id.Entity())
		if err != nil {
			return nil, err
		}
		task := taskOf(id, r)
		return &edit{tx: tx, agent: p.ID, task: task, graph: st.Graph, was: r, record: systemgraph.Record{}}, nil
	}
	return nil, errNoTask()
}

// write ends the edit and increments the version of the task.
func (e *edit) write() error {
	e.task.Version++
	e.task.Updated = e.tx.Time()
	e.record[propVersion] = []kg.Term{kg.Integer(e.task.Version)}
	byChange.setOrder(e.record, e.was, e.task.Status.State, momentOf(e.tx.Time(), e.tx.Revision()))
	return systemgraph.WriteOver(e.tx, e.graph, e.task.ID.Entity(), e.was, e.record)
}

// writeQuietly ends an edit that does not change the task: no stream or feed is
// notified.
func (e *edit) writeQuietly() error {
	return systemgraph.WriteOver(e.tx, e.graph, e.task.ID.Entity(), e.was, e.record)
}

// addEntity states the properties of a new entity.
func (e *edit) addEntity(subject kg.Term, r systemgraph.Record) error {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		for _, object := range r[name] {
			if err := e.applyStatement(kg.Add, subject, systemgraph.Property(name), object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *edit) applyStatement(op kg.Op, subject, predicate, object kg.Term) error {
	return e.tx.ApplyOwn(kg.Patch{Op: op, Quad: kg.Quad{Subject: subject, Predicate: predicate, Object: object, Graph: e.graph}})
}

func (e *edit) appendMessage(m *Message) (int, error) {
	if e.task.Messages == MaxMessages {
		return 0, errTooMuch("message", "the task has %d messages already", MaxMessages)
	}
	e.task.Messages++
	n := e.task.Messages
	e.record[propMessages] = []kg.Term{kg.Integer(int64(n))}
	subject := e.task.ID.messageEntity(n)
	if err := e.applyStatement(kg.Add, subject, rdfType, systemgraph.Property(messageClass)); err != nil {
		return 0, err
	}
	m.Time = e.tx.Time()
	r, err := m.toRecord()
	if err != nil {
		return 0, err
	}
	r[propTask], r[propNumber] = []kg.Term{e.task.ID.Entity()}, []kg.Term{kg.Integer(int64(n))}
	return n, e.addEntity(subject, r)
}

type storedStatus struct {
	State   State     `json:"state"`
	At      time.Time `json:"at"`
	Message int       `json:"message,omitempty"` // number of the message
	// Version is the version of the task. It makes equal statuses distinct statements.
	Version int64 `json:"version"`
}

func (e *edit) setStatus(state State, message *Message) error {
	status := storedStatus{State: state, At: e.tx.Time(), Version: e.task.Version + 1}
	if message != nil {
		n, err := e.appendMessage(message)
		if err != nil {
			return err
		}
		status.Message = n
	}
	e.task.Status = Status{State: state, Message: message, Time: status.At}
	e.record[propState], e.record[propStatus] = systemgraph.Values(string(state)), systemgraph.JSON(plainjson.MustEncode(status))
	byStatus.setOrder(e.record, e.was, state, momentOf(e.tx.Time(), e.tx.Revision()))
	if state.Ended() {
		e.record[propOpen] = nil
	}
	return nil
}

// Delete removes a task with its messages and artifacts, and stops the work on it. Only
// its creator and administrators may delete it. Older revisions keep it.
//
// Errors: CodeTaskNotFound; CodePermissionDenied.
func (s *Service) Delete(ctx context.Context, by caller.Caller, id TaskID) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	_, err = s.runUpdate(ctx, by, "tasks/delete", func(tx *kg.Tx) error {
		e, err := editTask(tx, by.Reader(agent), id)
		if err != nil {
			return err
		}
		if e.task.Creator != agent && !isAdmin(by.Principal) {
			return kg.Errorf(kg.CodePermissionDenied, "only the creator may delete a task").At("id")
		}
		if err := e.removeTask(); err != nil {
			return err
		}
		return s.options.DeleteTx(tx, e.task)
	})
	if err == nil {
		s.pool.cancelJobs(id)
	}
	return err
}

// removeTask removes all statements about the task, its messages and its artifacts.
func (e *edit) removeTask() error {
	parts, err := systemgraph.Subjects(e.tx.MatchOwn, kg.Pattern{Predicate: systemgraph.Property(propTask), Object: e.task.ID.Entity(), Graph: e.graph})
	if err != nil {
		return err
	}
	for _, subject := range append(parts, e.task.ID.Entity()) {
		if err := systemgraph.Remove(e.tx, kg.Pattern{Subject: subject, Graph: e.graph}); err != nil {
			return err
		}
	}
	return nil
}

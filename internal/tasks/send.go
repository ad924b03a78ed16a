package tasks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// SendRequest is a message to be sent to an agent.
type SendRequest struct {
	To      kg.AgentID // may be empty if Task is set
	Message Message
	// Task is the task that the message continues; "" creates a new one.
	Task TaskID
	// Context is the context of a new task; "" creates a new one.
	Context string
	Parent  TaskID
	User    string
	// AlwaysTask creates a task even if the handler could answer at once, for protocols
	// without direct answers.
	AlwaysTask bool
	// Attended means that the sender does the work and reports it, in place of the
	// agent's worker in this process.
	Attended bool
	// Metadata is the metadata of a new task, a JSON object.
	Metadata json.RawMessage
	// WriteAlso, if set, writes related statements in the same commit (kg.Tx.ApplyOwn). It
	// is not called for a message that was sent before.
	WriteAlso func(tx *kg.Tx, t *Task) error
}

// SendResult is the result of sending a message: a task, or a direct answer.
type SendResult struct {
	Task   *Task
	Answer *Message
	// Number is the number of the message in the task.
	Number int
	// Replayed reports that the same message was sent before: Task is the task of that
	// time.
	Replayed bool
}

// Send sends a message to its handler and creates a task or continues an open one.
//
// Errors: CodeAgentNotFound; CodeTaskNotFound; CodeTaskEnded; CodeInvalid, also for a
// context that is not the task's; CodeContentType; CodeLimitExceeded; CodeOverloaded
// and CodeRateLimited, also for the agent's own limits (Options.Limits).
func (s *Service) Send(ctx context.Context, by caller.Caller, p SendRequest) (*SendResult, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	if p.To, err = s.recipientOf(ctx, by, &p); err != nil {
		return nil, err
	}
	m := &p.Message
	m.Role, m.Author = User, agent
	if err := p.validate(); err != nil {
		return nil, err
	}
	worker := s.Worker(p.To)
	if worker != nil {
		if err := worker.CheckMessage(m); err != nil {
			return nil, err
		}
	}
	if worker != nil && p.Task == "" && !p.AlwaysTask {
		if answer, err := worker.Answer(ctx, by, m); answer != nil || err != nil {
			return &SendResult{Answer: answer}, err
		}
	}
	var place *reservation
	if worker != nil && !p.Attended {
		if place, err = s.pool.reservePlace(by); err != nil {
			return nil, err
		}
		defer place.releaseUnused()
	}
	sent, err := s.writeMessage(ctx, by, agent, p)
	if err == nil && place != nil && !sent.Replayed {
		place.startJob(s, worker, by, sent.Task, *m)
	}
	return sent, err
}

// recipientOf returns the handler of the message.
func (s *Service) recipientOf(ctx context.Context, by caller.Caller, p *SendRequest) (kg.AgentID, error) {
	if p.Task != "" {
		t, err := s.Get(ctx, by, p.Task, ReadOptions{})
		if err != nil {
			return "", err
		}
		if p.To != "" && kg.CanonicalAgent(string(p.To)) != t.Handler {
			return "", errNoTask() // no such task of that agent
		}
		return t.Handler, nil
	}
	to := kg.CanonicalAgent(string(p.To))
	if s.Worker(to) == nil && (to.Valid() != nil || !s.options.Known(to)) {
		return "", errNoAgent()
	}
	return to, nil
}

func (p *SendRequest) validate() error {
	for _, f := range []struct{ field, text string }{{"contextId", p.Context}, {"parentId", string(p.Parent)}, {"userId", p.User}} {
		if err := checkKey(f.field, f.text); err != nil {
			return err
		}
	}
	if err := checkMetadata("metadata", p.Metadata); err != nil {
		return err
	}
	return p.Message.validate()
}

// contentHash is a hash that identifies the message of the agent.
func (p *SendRequest) contentHash(agent kg.AgentID) (kg.Term, error) {
	m := p.Message
	raw, err := plainjson.Encode([]any{agent, p.To, p.Task, p.Context, p.Parent, p.User, p.Metadata, m.ID, m.Parts, m.Metadata, m.Extensions, m.References})
	sum := sha256.Sum256(raw)
	return kg.String(hex.EncodeToString(sum[:])), err
}

func (s *Service) writeMessage(ctx context.Context, by caller.Caller, agent kg.AgentID, p SendRequest) (*SendResult, error) {
	var once kg.Term
	var err error
	if p.Message.ID != "" && !s.options.Repeats {
		if once, err = p.contentHash(agent); err != nil {
			return nil, err
		}
	}
	fresh, err := newID()
	if err == nil && p.Message.ID == "" {
		p.Message.ID, err = newID() // every protocol requires one
	}
	if err != nil {
		return nil, err
	}
	var id TaskID
	var created *Task // nil if the message continues a task
	replayed, counted, number := false, false, 0
	at, err := s.runUpdate(ctx, by, "message/send", func(tx *kg.Tx) error {
		id, created, replayed, number = cmp.Or(p.Task, TaskID(fresh)), nil, false, 0
		if !once.IsZero() {
			first, n, err := sentBefore(tx, once)
			if err != nil || first != "" {
				id, number, replayed = first, n, true
				return err
			}
		}
		m := p.Message
		e, err := p.editTask(tx, by.Reader(agent), TaskID(fresh))
		if err != nil {
			return err
		}
		if p.Task == "" && s.Worker(p.To) == nil && !s.options.Known(p.To) { // deregistered meanwhile
			return errNoAgent()
		}
		if err := s.checkLimits(e, &m, p.Task == "", &counted); err != nil {
			return err
		}
		if err := e.receiveMessage(&m, once, s.Worker(p.To) == nil); err != nil {
			return err
		}
		number = e.task.Messages
		if p.WriteAlso != nil {
			if err := p.WriteAlso(tx, e.task); err != nil {
				return err
			}
		}
		if p.Task == "" {
			created = e.task
			created.History = []Message{m}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if created != nil {
		// Return the task as created. Later reports of the handler may be committed
		// already; a stream from made.Revision delivers them.
		created.Revision = at
		return &SendResult{Task: created, Number: number}, nil
	}
	t, err := s.Get(ctx, by, id, ReadFitting)
	return &SendResult{Task: t, Number: number, Replayed: replayed}, err
}

// sentBefore returns the task and number of an identical earlier message; "" if there
// is none.
func sentBefore(tx *kg.Tx, once kg.Term) (TaskID, int, error) {
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: systemgraph.Property(propOnce), Object: once}) {
		if err != nil {
			return "", 0, err
		}
		if id, n := messageNumber(st.Subject); id.valid() {
			return id, n, nil
		}
	}
	return "", 0, nil
}

// editTask starts an edit of the task that the message is for.
func (p *SendRequest) editTask(tx *kg.Tx, reader kg.Principal, fresh TaskID) (*edit, error) {
	if p.Task == "" {
		return p.createTask(tx, reader.ID, fresh)
	}
	e, err := editTask(tx, reader, p.Task)
	switch {
	case err != nil:
		return nil, err
	case e.task.Creator != reader.ID:
		return nil, kg.Errorf(kg.CodePermissionDenied, "only the creator may send messages to a task").At("taskId")
	case e.task.Status.State.Ended():
		return nil, errEnded(e.task.Status.State)
	case p.Context != "" && p.Context != e.task.Context:
		return nil, kg.Errorf(kg.CodeInvalid, "the task belongs to another context").At("contextId")
	}
	return e, nil
}

func (p *SendRequest) createTask(tx *kg.Tx, agent kg.AgentID, id TaskID) (*edit, error) {
	t := &Task{ID: id, Context: cmp.Or(p.Context, string(id)), Creator: agent, Handler: p.To, Metadata: p.Metadata, Parent: p.Parent, User: p.User, Created: tx.Time()}
	e := &edit{tx: tx, agent: agent, task: t, graph: graphOf(agent, p.To)}
	e.record = systemgraph.Record{
		systemgraph.Type: systemgraph.Class(taskClass), propContext: systemgraph.Values(t.Context), propCreator: {kg.IRI(string(agent))}, propHandler: {kg.IRI(string(p.To))}, propOpen: {kg.IRI(string(p.To))},
		propCreated: {kg.DateTime(t.Created)}, propMetadata: systemgraph.JSON(p.Metadata), propParent: systemgraph.Text(string(p.Parent)), propUser: systemgraph.Text(p.User),
	}
	if err := e.writeJournalAgents(); err != nil {
		return nil, err
	}
	return e, e.setStatus(Submitted, nil)
}

// writeJournalAgents records the agents of a journal, in its first task.
func (e *edit) writeJournalAgents() error {
	n, err := e.tx.CountOwn(e.graph, systemgraph.Property(propCreator))
	if err != nil || n > 0 {
		return err
	}
	return e.addEntity(e.graph, systemgraph.Record{propListCreator: {kg.IRI(string(e.task.Creator))}, propListHandler: {kg.IRI(string(e.task.Handler))}})
}

// receiveMessage adds a message of the creator to the task, and to the mailbox of the handler if
// it has one.
func (e *edit) receiveMessage(m *Message, once kg.Term, mailbox bool) error {
	n, err := e.appendMessage(m)
	if err != nil {
		return err
	}
	if mailbox {
		if err := e.addLetter(n); err != nil {
			return err
		}
	}
	if !once.IsZero() {
		if err := e.applyStatement(kg.Add, e.task.ID.messageEntity(n), systemgraph.Property(propOnce), once); err != nil {
			return err
		}
	}
	if e.task.Status.State.AwaitsCreator() {
		if err := e.setStatus(Submitted, nil); err != nil {
			return err
		}
	}
	return e.write()
}

// runUpdate runs an update and returns its revision.
func (s *Service) runUpdate(ctx context.Context, by caller.Caller, method string, do func(*kg.Tx) error) (kg.Revision, error) {
	receipt, err := systemgraph.UpdateWithReceipt(ctx, s.store, metaFor(by, method), do)
	return receipt.Revision, err
}

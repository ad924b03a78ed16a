package tasks

import (
	"context"
	"encoding/json"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/kg"
)

// Report is what a handler says of a task, in one commit: artifacts first, then the
// status.
type Report struct {
	Artifacts []Chunk
	// State is what the task comes to; "" leaves its status as it is.
	State State
	// Message is said with the status.
	Message *Message
	// Failure says why, where State is Failed, Rejected or Canceled.
	Failure *Failure
	// Metadata is put into that of the task, member by member; null takes one away.
	Metadata json.RawMessage
}

// Report changes a task as its handler says. Handlers and administrators may; creators
// change the metadata only.
//
// Errors: CodeTaskNotFound; CodePermissionDenied for its creator, but for metadata; CodeTaskEnded;
// CodeInvalid, also for a failure with a code of koine's own; CodeLimitExceeded.
func (s *Service) Report(ctx context.Context, by caller.Caller, id TaskID, r Report) (*Task, error) {
	if err := s.report(ctx, by, id, r); err != nil {
		return nil, err
	}
	return s.Get(ctx, by, id, Whole)
}

// report is Report for who does not want to know what became of the task.
func (s *Service) report(ctx context.Context, by caller.Caller, id TaskID, r Report) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	if err := r.check(agent); err != nil {
		return err
	}
	if err := r.Failure.sayable(by); err != nil {
		return err
	}
	err = s.change(ctx, by, "tasks/report", id, func(e *edit) error {
		if e.task.Handler != agent && !administers(by.Principal) && !(e.task.Creator == agent && r.onlyMetadata()) {
			return kg.Errorf(kg.CodePermissionDenied, "what becomes of a task is its handler's to say").At("id")
		}
		return r.write(e)
	})
	if err == nil && r.State.Ended() {
		s.desk.stop(id)
	}
	return err
}

// onlyMetadata tells whether nothing is said of what becomes of the task.
func (r *Report) onlyMetadata() bool {
	return r.State == "" && r.Message == nil && r.Failure == nil && len(r.Artifacts) == 0 && len(r.Metadata) > 0
}

func administers(p kg.Principal) bool {
	return p.Trusted() || p.HasRole(kg.RoleAdmin) && p.Method != openMethod
}

func (r *Report) check(agent kg.AgentID) error {
	if r.State != "" && !r.State.Known() {
		return kg.Errorf(kg.CodeInvalid, "there is no state %q", r.State).At("state")
	}
	if r.Message != nil {
		if r.State == "" {
			return kg.Errorf(kg.CodeInvalid, "what a handler says comes with a status").At("message")
		}
		if r.Message.ID == "" {
			id, err := newID()
			if err != nil {
				return err
			}
			r.Message.ID = id
		}
		r.Message.Role, r.Message.Author = Agent, agent
		if err := r.Message.check(); err != nil {
			return err
		}
	}
	if r.Failure != nil && !r.State.Fails() {
		return kg.Errorf(kg.CodeInvalid, "only what has failed has a reason to").At("error")
	}
	if len(r.Artifacts) > MaxReportChunks {
		return errTooMuch("artifacts", "at most %d at a time", MaxReportChunks)
	}
	for i := range r.Artifacts {
		if err := r.Artifacts[i].check(); err != nil {
			return err
		}
	}
	return checkMetadata("metadata", r.Metadata)
}

func (r *Report) write(e *edit) error {
	if e.task.Status.State.Ended() {
		return errEnded(e.task.Status.State)
	}
	for i := range r.Artifacts {
		if err := e.hand(&r.Artifacts[i]); err != nil {
			return err
		}
	}
	if len(r.Metadata) > 0 {
		merged, err := merge(e.task.Metadata, r.Metadata)
		if err != nil {
			return err
		}
		e.record[propMetadata] = someJSON(merged)
	}
	if r.Failure != nil {
		if err := e.fail(r.Failure); err != nil {
			return err
		}
	}
	if r.State == "" {
		return nil
	}
	if err := e.clearMail(); err != nil {
		return err
	}
	var said *Message
	if r.Message != nil {
		m := *r.Message
		said = &m
	}
	return e.become(r.State, said)
}

// merge puts the members of one object into another.
func merge(into, more json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(into) > 0 {
		if err := json.Unmarshal(into, &members); err != nil {
			return nil, err
		}
	}
	changes := map[string]json.RawMessage{}
	if err := json.Unmarshal(more, &changes); err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "metadata is an object").At("metadata")
	}
	for name, value := range changes {
		if string(value) == "null" {
			delete(members, name)
		} else {
			members[name] = value
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	raw, err := plainjson.Encode(members)
	if err == nil && len(raw) > MaxMetadataBytes {
		err = errTooMuch("metadata", "at most %d bytes of metadata", MaxMetadataBytes)
	}
	return raw, err
}

// change changes a task that the caller takes part in.
func (s *Service) change(ctx context.Context, by caller.Caller, method string, id TaskID, do func(*edit) error) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	_, err = s.update(ctx, by, method, func(tx *kg.Tx) error {
		e, err := find(tx, by.Reader(agent), id)
		if err != nil {
			return err
		}
		if err := do(e); err != nil {
			return err
		}
		return e.write()
	})
	return err
}

// Cancel ends a task before its time. Its creator, its handler and administrators
// may.
//
// Errors: CodeTaskNotFound; CodeTaskEnded.
func (s *Service) Cancel(ctx context.Context, by caller.Caller, id TaskID) (*Task, error) {
	return s.CancelFor(ctx, by, id, nil)
}

// CancelFor is Cancel with a reason, which may be nil.
//
// Errors: those of Cancel; CodeInvalid for a code of koine's own; CodeLimitExceeded.
func (s *Service) CancelFor(ctx context.Context, by caller.Caller, id TaskID, why *Failure) (*Task, error) {
	if err := why.sayable(by); err != nil {
		return nil, err
	}
	err := s.change(ctx, by, "tasks/cancel", id, func(e *edit) error {
		if e.task.Status.State.Ended() {
			return errEnded(e.task.Status.State)
		}
		if why != nil {
			if err := e.fail(why); err != nil {
				return err
			}
		}
		return e.become(Canceled, nil)
	})
	if err != nil {
		return nil, err
	}
	s.desk.stop(id)
	return s.Get(ctx, by, id, Whole)
}

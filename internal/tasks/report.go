package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Report is a change of a task by its handler, applied in one commit: artifacts first,
// then the status.
type Report struct {
	Artifacts []Chunk
	// State is the new state of the task; "" leaves the status unchanged.
	State State
	// Message is the message of the status.
	Message *Message
	// Failure is the reason, if State is Failed, Rejected or Canceled.
	Failure *Failure
	// Metadata is merged into the metadata of the task, member by member; null removes
	// a member.
	Metadata json.RawMessage
	// Letters are the ids of the letters that the report acknowledges: exactly these
	// leave the mailbox, also if the task has ended. If nil and State is set, they are
	// the letters of the task that were delivered to the handler; an empty list
	// acknowledges none.
	Letters []string
	// Key makes a report idempotent: the same key with the same report returns the
	// first result. "" is none. A report with a Version, an Offset of a chunk or a
	// message id is idempotent without a key.
	Key string
	// Version is the expected Task.Version before the report; 0 for any.
	Version int64
}

// ReportReceipt is the result of a report.
type ReportReceipt struct {
	// Task is the task as the report left it.
	Task *Task
	// Artifacts are the sizes of the artifacts in the report, each once.
	Artifacts []ArtifactSize
	// Replayed reports that the same report was applied before.
	Replayed bool
}

// ArtifactSize is the number of chunks of an artifact.
type ArtifactSize struct {
	ID     string
	Chunks int
}

// Report applies a report to a task. Handlers and administrators may report; creators
// may change the metadata only.
//
// Errors: CodeTaskNotFound; CodePermissionDenied for the creator, except for metadata;
// CodeTaskEnded; CodeInvalid, also for a failure with a reserved code;
// CodeLimitExceeded; CodeVersionConflict for another version or offset;
// CodeIdempotencyConflict.
func (s *Service) Report(ctx context.Context, by caller.Caller, id TaskID, r Report) (*Task, error) {
	out, err := s.SubmitReport(ctx, by, id, r, ReadAll)
	if err != nil {
		return nil, err
	}
	return out.Task, nil
}

// SubmitReport is Report with a choice of the parts of the task to return. Those that are too
// large to read are left out (Task.Partial), because the report is applied.
func (s *Service) SubmitReport(ctx context.Context, by caller.Caller, id TaskID, r Report, reading ReadOptions) (*ReportReceipt, error) {
	receipt, err := s.applyReport(ctx, by, id, r)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.snapshotAt(ctx, by, receipt.Revision)
	if kg.CodeOf(err) == kg.CodeRevisionGone { // a replay of an old report
		snapshot, err = s.snapshot(ctx, by)
	}
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	out := &ReportReceipt{Replayed: receipt.Replayed}
	reading.Partial = true
	if out.Task, err = s.readBounded(snapshot, id, reading); err != nil {
		return nil, err
	}
	for i := range r.Artifacts {
		key := r.Artifacts[i].ID
		if slices.ContainsFunc(out.Artifacts, func(a ArtifactSize) bool { return a.ID == key }) {
			continue
		}
		size, err := readSize(snapshot.Match, out.Task.Graph(), id.ArtifactEntity(key))
		if err != nil {
			return nil, err
		}
		out.Artifacts = append(out.Artifacts, ArtifactSize{key, size.chunks})
	}
	return out, nil
}

// applyReport is Report without reading the task afterwards.
func (s *Service) applyReport(ctx context.Context, by caller.Caller, id TaskID, r Report) (kg.Receipt, error) {
	agent, err := by.Agent()
	if err != nil {
		return kg.Receipt{}, err
	}
	if r.Message != nil {
		message := *r.Message // check fills in fields
		r.Message = &message
	}
	m := metaFor(by, "tasks/report")
	if m.IdempotencyKey, m.ContentHash, err = r.idempotencyKey(agent, id); err != nil {
		return kg.Receipt{}, err
	}
	if err := r.validate(agent); err != nil {
		return kg.Receipt{}, err
	}
	if err := r.Failure.checkCode(by); err != nil {
		return kg.Receipt{}, err
	}
	var calls []*Delivery
	receipt, err := systemgraph.UpdateWithReceipt(ctx, s.store, m, func(tx *kg.Tx) error {
		calls = nil
		e, err := editTask(tx, by.Reader(agent), id)
		if err != nil {
			return err
		}
		if e.task.Handler != agent && !isAdmin(by.Principal) && !(e.task.Creator == agent && r.onlyMetadata()) {
			return kg.Errorf(kg.CodePermissionDenied, "only the handler may report on a task").At("id")
		}
		if err := r.removeLetters(s, e, &calls); err != nil {
			return err
		}
		if r.onlyLetters() {
			return e.writeQuietly()
		}
		letters := e.record
		e.record = systemgraph.Record{}
		if err := r.applyTo(e, s.options.MaxArtifactBytes); err != nil {
			return err
		}
		changes := len(r.Artifacts) > 0 || systemgraph.WouldChange(e.was, e.record)
		maps.Copy(e.record, letters)
		if !changes { // the version counts visible changes only
			return e.writeQuietly()
		}
		return e.write()
	})
	switch {
	case err == nil:
		s.noteReported(ctx, calls)
		if r.State.Ended() {
			s.pool.cancelJobs(id)
		}
	case kg.CodeOf(err) == kg.CodeTaskEnded && !r.onlyLetters():
		s.acknowledgeEnded(ctx, by, agent, id, &r)
	}
	return receipt, err
}

// acknowledgeEnded acknowledges the letters of a report that came after the task ended,
// because the handler has dealt with them. If it fails, the letters are delivered
// again.
func (s *Service) acknowledgeEnded(ctx context.Context, by caller.Caller, agent kg.AgentID, id TaskID, r *Report) {
	var calls []*Delivery
	_, err := s.runUpdate(ctx, by, "tasks/acknowledge", func(tx *kg.Tx) error {
		calls = nil
		e, err := editTask(tx, by.Reader(agent), id)
		if err != nil {
			return err
		}
		if err := r.removeLetters(s, e, &calls); err != nil {
			return err
		}
		return e.writeQuietly()
	})
	if err != nil {
		s.options.Logger.Debug("cannot acknowledge the letters of an ended task", "task", id, "error", err)
		return
	}
	s.noteReported(ctx, calls)
}

// idempotencyKey returns the idempotency key of a report, "" if it is not idempotent, and the
// hash of its content.
func (r *Report) idempotencyKey(agent kg.AgentID, id TaskID) (key string, content [sha256.Size]byte, err error) {
	repeatable := r.Key != "" || r.Version > 0 || r.Message != nil && r.Message.ID != "" ||
		slices.ContainsFunc(r.Artifacts, func(c Chunk) bool { return c.Offset != nil })
	if !repeatable {
		return "", content, nil
	}
	if len(r.Key) > kg.MaxIdempotencyKeyBytes {
		return "", content, errTooMuch("idempotencyKey", "at most %d bytes", kg.MaxIdempotencyKeyBytes)
	}
	raw, err := plainjson.Encode(r)
	if err != nil {
		return "", content, kg.Errorf(kg.CodeInvalid, "the report cannot be encoded as JSON: %s", err)
	}
	content = sha256.Sum256(raw)
	parts := []any{"tasks/report", agent, id, r.Key}
	if r.Key == "" {
		parts = append(parts, content[:]) // the content is the key
	}
	if raw, err = plainjson.Encode(parts); err != nil {
		return "", content, err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), content, nil
}

// onlyLetters reports whether the report only acknowledges letters.
func (r *Report) onlyLetters() bool {
	return r.Letters != nil && r.State == "" && r.Message == nil && r.Failure == nil && len(r.Artifacts) == 0 && len(r.Metadata) == 0
}

// onlyMetadata reports whether the report only changes metadata.
func (r *Report) onlyMetadata() bool {
	return r.State == "" && r.Message == nil && r.Failure == nil && len(r.Artifacts) == 0 && len(r.Metadata) > 0
}

func isAdmin(p kg.Principal) bool {
	return p.Trusted() || p.HasRole(kg.RoleAdmin) && p.Method != openMethod
}

func (r *Report) validate(agent kg.AgentID) error {
	if r.State != "" && !r.State.Known() {
		return kg.Errorf(kg.CodeInvalid, "unknown state %q", r.State).At("state")
	}
	if r.Message != nil {
		if r.State == "" {
			return kg.Errorf(kg.CodeInvalid, "a message requires a state").At("message")
		}
		if r.Message.ID == "" {
			id, err := newID()
			if err != nil {
				return err
			}
			r.Message.ID = id
		}
		r.Message.Role, r.Message.Author = Agent, agent
		if err := r.Message.validate(); err != nil {
			return err
		}
	}
	if r.Failure != nil && !r.State.Unsuccessful() {
		return kg.Errorf(kg.CodeInvalid, "error requires a state of failure: FAILED, REJECTED or CANCELED").At("error")
	}
	if len(r.Letters) > MaxReportLetters {
		return errTooMuch("letters", "at most %d at a time", MaxReportLetters)
	}
	if len(r.Artifacts) > MaxReportChunks {
		return errTooMuch("artifacts", "at most %d at a time", MaxReportChunks)
	}
	for i := range r.Artifacts {
		if err := r.Artifacts[i].validate(); err != nil {
			return err
		}
	}
	return checkMetadata("metadata", r.Metadata)
}

// applyTo applies the report to the task; limit bounds the bytes of each artifact.
func (r *Report) applyTo(e *edit, limit int) error {
	if e.task.Status.State.Ended() {
		return errEnded(e.task.Status.State)
	}
	if r.Version > 0 && r.Version != e.task.Version {
		return kg.Errorf(kg.CodeVersionConflict, "the task has version %d, not %d", e.task.Version, r.Version).At("version")
	}
	for i := range r.Artifacts {
		if err := e.addChunk(&r.Artifacts[i], limit); err != nil {
			if e := kg.AsError(err); e.Field != "" {
				return e.At("artifacts[" + strconv.Itoa(i) + "]")
			}
			return err
		}
	}
	if len(r.Metadata) > 0 {
		merged, err := mergeMetadata(e.task.Metadata, r.Metadata)
		if err != nil {
			return err
		}
		e.record[propMetadata] = systemgraph.JSON(merged)
	}
	if r.Failure != nil {
		if err := e.setFailure(r.Failure); err != nil {
			return err
		}
	}
	if r.State == "" || len(r.Artifacts) == 0 && !systemgraph.WouldChange(e.was, e.record) && r.repeatsStatus(e) {
		return nil
	}
	if r.Message == nil {
		return e.setStatus(r.State, nil)
	}
	message := *r.Message
	return e.setStatus(r.State, &message)
}

// repeatsStatus reports whether the report repeats the current state without a message.
func (r *Report) repeatsStatus(e *edit) bool {
	return r.State == e.task.Status.State && r.Message == nil && statusOf(e.was).Message == 0
}

// mergeMetadata applies the members of one JSON object to another.
func mergeMetadata(into, more json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(into) > 0 {
		if err := json.Unmarshal(into, &members); err != nil {
			return nil, err
		}
	}
	changes := map[string]json.RawMessage{}
	if err := json.Unmarshal(more, &changes); err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "metadata must be a JSON object").At("metadata")
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

// editTask edits a task that the caller takes part in.
func (s *Service) editTask(ctx context.Context, by caller.Caller, method string, id TaskID, do func(*edit) error) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	_, err = s.runUpdate(ctx, by, method, func(tx *kg.Tx) error {
		e, err := editTask(tx, by.Reader(agent), id)
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

// Cancel cancels a task. Its creator, its handler and administrators may cancel it.
//
// Errors: CodeTaskNotFound; CodeTaskEnded.
func (s *Service) Cancel(ctx context.Context, by caller.Caller, id TaskID) (*Task, error) {
	return s.CancelFor(ctx, by, id, nil)
}

// CancelFor is Cancel with a reason, which may be nil.
//
// Errors: those of Cancel; CodeInvalid for a reserved code; CodeLimitExceeded.
func (s *Service) CancelFor(ctx context.Context, by caller.Caller, id TaskID, why *Failure) (*Task, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	if err := why.checkCode(by); err != nil {
		return nil, err
	}
	err = s.editTask(ctx, by, "tasks/cancel", id, func(e *edit) error {
		if e.task.Status.State.Ended() {
			return errEnded(e.task.Status.State)
		}
		if why != nil {
			if err := e.setFailure(why); err != nil {
				return err
			}
		}
		if err := e.removeAllLetters(); err != nil {
			return err
		}
		// The cancellation replaces the task's other letters, because the creator wants
		// no answer to them.
		if agent != e.task.Handler && s.Worker(e.task.Handler) == nil {
			if err := e.addLetter(cancelNumber); err != nil {
				return err
			}
		}
		return e.setStatus(Canceled, nil)
	})
	if err != nil {
		return nil, err
	}
	s.pool.cancelJobs(id)
	return s.Get(ctx, by, id, ReadFitting)
}

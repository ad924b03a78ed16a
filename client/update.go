package client

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
)

// Update is a request to apply patches to the graph, all of them or none.
type Update struct {
	Patches []Patch
	// Justification is the reason for the update, recorded in the commit.
	Justification string
	// Source is the source of patches without one of their own. "" is the caller.
	Source string
	// IdempotencyKey makes a retry return the result of the first request. Without a key
	// the client generates one that covers its own retries. Set a key to retry safely
	// after a restart of the program.
	IdempotencyKey string
	// Once disables retries and the generated key, so that an update without effect makes
	// no commit. The outcome of a failed request may then be unknown.
	Once bool
	// ExpectedRevision makes the update fail with RevisionConflict if a subject changed
	// after this revision. 0 disables the check.
	ExpectedRevision uint64
	// DryRun validates the update and counts its effect, and changes nothing.
	DryRun    bool
	TaskID    string
	SessionID string
}

// UpdateResult is the result of an update.
type UpdateResult struct {
	Success            bool     `json:"success"`
	StatementsAffected int      `json:"statementsAffected"`
	AffectedIDs        []string `json:"affectedIds"`
	VerificationStatus string   `json:"verificationStatus"` // "Verified", "Pending Review", "Rejected - …"
	// VerificationDetails are the findings of shapes and rules.
	VerificationDetails string `json:"verificationDetails"`
	ProposalID          string `json:"proposalId"` // of an update that is held
	Revision            uint64 `json:"revision"`
	Position            string `json:"position"`
	CommitID            string `json:"commitId"`
	Replayed            bool   `json:"replayed"` // the result of an earlier update with the same key
	DryRun              bool   `json:"dryRun"`
	// Raw is the result as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// Held reports whether the update is held for review, as the proposal ProposalID.
func (r *UpdateResult) Held() bool { return r.ProposalID != "" }

// Update changes the graph. It retries with the same idempotency key while the outcome is
// unknown.
//
// An update that fails validation returns the result and an error with the reason
// Rejected. An update that is held for review returns no error; check Held.
func (c *Client) Update(ctx context.Context, u Update) (*UpdateResult, error) {
	if err := c.requireCapability(KnowledgeGraph); err != nil {
		return nil, err
	}
	call := c.callWithRetry
	if u.IdempotencyKey == "" {
		if u.Once || u.DryRun || c.retry.FailFast {
			call = c.callOnce
		} else {
			u.IdempotencyKey = uuid.NewString()
		}
	}
	result := new(UpdateResult)
	if err := call(ctx, "knowledge/update", u.requestParams(), &result.Raw); err != nil {
		return nil, err
	}
	if err := decodeAnswer(result.Raw, result); err != nil {
		return nil, err
	}
	if !result.Success && !result.Held() {
		return result, &Error{Reason: Rejected, Message: result.VerificationStatus, Detail: result.VerificationDetails}
	}
	return result, nil
}

func (u *Update) requestParams() map[string]any {
	patches := u.Patches
	if patches == nil {
		patches = []Patch{} // the server reports the error
	}
	p := map[string]any{"mutations": patches}
	setNonZero(p, "justification", u.Justification)
	setNonZero(p, "sourceAgentId", u.Source)
	setNonZero(p, "taskId", u.TaskID)
	setNonZero(p, "sessionId", u.SessionID)
	own := map[string]any{}
	setNonZero(own, "idempotencyKey", u.IdempotencyKey)
	setNonZero(own, "expectedRevision", u.ExpectedRevision)
	setNonZero(own, "dryRun", u.DryRun)
	setControls(p, own)
	return p
}

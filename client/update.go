package client

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
)

// Update is a change of the graph: all of its patches, or none.
type Update struct {
	Patches []Patch
	// Justification is the reason, kept in the history.
	Justification string
	// Source is whose assertions they are, where a patch does not say. "" is the
	// caller.
	Source string
	// IdempotencyKey makes the same update be made once, however often it is sent.
	// Without one the client makes one up, for its own attempts. Whoever wants to
	// be safe across its own restarts says one.
	IdempotencyKey string
	// Once sends it a single time and without a key, if it has none: it may then be
	// unknown whether it was made. An update that changes nothing makes no commit.
	Once bool
	// ExpectedRevision refuses (RevisionConflict) if a subject changed after it.
	ExpectedRevision uint64
	// DryRun judges and counts, and changes nothing.
	DryRun    bool
	TaskID    string
	SessionID string
}

// UpdateResult says what became of an update.
type UpdateResult struct {
	Success            bool     `json:"success"`
	StatementsAffected int      `json:"statementsAffected"`
	AffectedIDs        []string `json:"affectedIds"`
	VerificationStatus string   `json:"verificationStatus"` // "Verified", "Pending Review", "Rejected - …"
	// VerificationDetails are the findings of shapes and rules.
	VerificationDetails string `json:"verificationDetails"`
	ProposalID          string `json:"proposalId"` // of one that is held
	Revision            uint64 `json:"revision"`
	Position            string `json:"position"`
	CommitID            string `json:"commitId"`
	Replayed            bool   `json:"replayed"` // the answer to an earlier one with the same key
	DryRun              bool   `json:"dryRun"`
	// Raw is all that the server sent.
	Raw json.RawMessage `json:"-"`
}

// Held tells whether the update waits for a review, under ProposalID.
func (r *UpdateResult) Held() bool { return r.ProposalID != "" }

// Update changes the graph. It is sent again, with the same key, while it is not
// known whether it arrived.
//
// An update that is judged and refused is an error with the reason Rejected, beside
// the result that tells why. One that is held for review is none: see Held.
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
		patches = []Patch{} // the server says what is wrong with that
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

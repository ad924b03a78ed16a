package client

import (
	"context"
	"encoding/json"
	"fmt"
)

// Bounds of one update of a Writer: the patches that knowledge/update takes, and their
// bytes, below the server's default limit of a body (8 MiB). A larger patch has an update of
// its own.
const (
	MaxPatches    = 10_000
	MaxPatchBytes = 3 << 20
)

// Writer sends patches in updates that are as large as the server takes. It is for
// more patches than one update may have: each update is made whole or not at all, the
// writer's patches together are not. It is not safe for concurrent use.
type Writer struct {
	client  *Client
	update  Update
	pending []Patch
	bytes   int
	updates int // sent so far

	// Affected is how many statements have changed. Held are the proposals that wait
	// for a review. Position is behind the last update.
	Affected int
	Held     []string
	Position string
}

// NewWriter returns a writer whose updates are like u, which has no patches yet. With
// an IdempotencyKey the updates have the keys KEY-1, KEY-2 and so on, so that a program
// that writes the same patches again, in the same order, repeats nothing.
// ExpectedRevision is for one update, and refused.
func (c *Client) NewWriter(u Update) (*Writer, error) {
	switch {
	case u.ExpectedRevision != 0:
		return nil, &Error{Reason: Invalid, Message: "a Writer takes no ExpectedRevision: its own updates change the revision"}
	case len(u.Patches) > 0:
		return nil, &Error{Reason: Invalid, Message: "a Writer takes patches by Write"}
	}
	return &Writer{client: c, update: u}, nil
}

// Write adds patches, and sends an update whenever one is full. An error is that of
// Update; the patches that are not sent then stay pending.
func (w *Writer) Write(ctx context.Context, patches ...Patch) error {
	for _, p := range patches {
		raw, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if len(w.pending) > 0 && w.bytes+len(raw) > MaxPatchBytes {
			if err := w.Flush(ctx); err != nil {
				return err
			}
		}
		w.pending, w.bytes = append(w.pending, RawPatch(raw)), w.bytes+len(raw)
		if len(w.pending) >= MaxPatches {
			if err := w.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flush sends the pending patches. It must be called after the last Write.
func (w *Writer) Flush(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	u := w.update
	u.Patches = w.pending
	if u.IdempotencyKey != "" {
		u.IdempotencyKey = fmt.Sprintf("%s-%d", u.IdempotencyKey, w.updates+1)
	}
	result, err := w.client.Update(ctx, u)
	if err != nil {
		return fmt.Errorf("update %d: %w", w.updates+1, err)
	}
	w.updates++
	w.Affected += result.StatementsAffected
	if result.Held() {
		w.Held = append(w.Held, result.ProposalID)
	}
	w.Position = result.Position
	w.pending, w.bytes = nil, 0
	return nil
}

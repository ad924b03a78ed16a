package client

import (
	"context"
	"encoding/json"
	"fmt"
)

// Bounds of one update of a Writer: the limit of knowledge/update on patches, and a number
// of bytes below the server's default limit of a body (8 MiB). A larger patch is sent in
// an update of its own.
const (
	MaxPatches    = 10_000
	MaxPatchBytes = 3 << 20
)

// Writer sends any number of patches in updates of up to MaxPatches. Each update is atomic;
// the patches of a Writer together are not. A Writer is not safe for concurrent use.
type Writer struct {
	client  *Client
	update  Update
	pending []Patch
	bytes   int
	updates int // number of updates sent

	// Affected is the number of changed statements. Held lists the proposals of updates
	// that are held for review. Position is the position after the last update.
	Affected int
	Held     []string
	Position string
}

// NewWriter returns a Writer that copies all fields but the patches from u to its updates.
// With an IdempotencyKey, the updates have the keys KEY-1, KEY-2 and so on, so that writing
// the same patches again in the same order has no further effect. u must have neither
// patches nor an ExpectedRevision.
func (c *Client) NewWriter(u Update) (*Writer, error) {
	switch {
	case u.ExpectedRevision != 0:
		return nil, &Error{Reason: Invalid, Message: "ExpectedRevision is not supported by a Writer: its own updates change the revision"}
	case len(u.Patches) > 0:
		return nil, &Error{Reason: Invalid, Message: "Patches must be empty: pass patches to Writer.Write"}
	}
	return &Writer{client: c, update: u}, nil
}

// Write adds patches, and sends an update whenever one is full. It returns the error of
// Update; patches that were not sent stay pending.
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

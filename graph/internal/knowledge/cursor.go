package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/internal/scalar"
	"koine/kg"
)

// A cursor is sealed by the store, so that clients can neither read nor forge
// it. It is bound to everything that determines its list: epoch, field,
// arguments except first and after, view, caller, and the entity for lists of
// an entity. It contains
//
//	layout     1 byte
//	revision   8 bytes, big endian: the revision of the walk's first page
//	now        8 bytes: the walk's evaluation time, in ns since 1970
//	key        the last element: 9 bytes for an entity's id, 36 for a statement's,
//	           the place given by pattern.Evaluation for a row; empty at the
//	           beginning of a list, from which a budget may cut everything
//
// Ids depend on the layout of the data directory, which the store's seal
// covers.
const cursorLayout = 1

const (
	entityKeyBytes    = len(kg.ID{})
	statementKeyBytes = 4 * entityKeyBytes
)

// CursorBound is a hash of everything that a connection's cursors are bound
// to.
type CursorBound [sha256.Size]byte

func (p *Planner) bindCursor(f graphql.CollectedField) (bound CursorBound, err error) {
	args := f.ArgumentMap(p.op.Variables)
	delete(args, "first")
	delete(args, "after")
	delete(args, "last")
	delete(args, "before")
	delete(args, "view") // p.view has it
	delete(args, "budget")
	for name, v := range args {
		if v == nil {
			delete(args, name)
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return bound, err
	}
	epoch := p.run.Reader.Store.Head().Epoch
	h := sha256.New()
	h.Write([]byte("koine cursor 1\n"))
	h.Write(epoch[:])
	h.Write([]byte(ViewKey(p.View)))
	h.Write([]byte(f.ObjectDefinition.Name + "." + f.Name + "\n"))
	h.Write(text)
	if args["orderBy"] != nil {
		h.Write([]byte("order 2\n")) // values were ordered otherwise before: those cursors are foreign
	}
	return CursorBound(h.Sum(nil)), nil
}

// ViewKey encodes the content of a view: equal keys mean equal views.
func ViewKey(v kg.View) string {
	b := fmt.Appendf(nil, "%q %d %t %v %d %d", v.Principal.ID, v.At, v.AllGraphs, v.MinCertainty, v.MaxAge, v.Now.UnixNano())
	if len(v.Principal.Roles) > 0 {
		b = fmt.Appendf(b, " roles %q", v.Principal.Roles)
	}
	if v.Graphs != nil { // an empty list differs from none
		b = append(b, " graphs"...)
		for _, g := range v.Graphs {
			b = append(append(b, ' '), g.String()...)
		}
	}
	if r := v.Recorded; !r.IsZero() {
		b = append(r.From.AppendFormat(append(b, " recorded "...), time.RFC3339Nano), ' ')
		b = r.Until.AppendFormat(b, time.RFC3339Nano)
	}
	if v.Doubted {
		b = append(b, " doubted"...)
	}
	if !v.ValidAt.IsZero() {
		b = v.ValidAt.AppendFormat(append(b, " valid "...), time.RFC3339Nano)
	}
	if v.IncludePending {
		b = append(b, " pending"...)
	}
	if v.Believed != nil {
		b = fmt.Appendf(b, " believed %q", v.Believed)
	}
	return string(b)
}

// ForEntity returns the bound of the same list of one entity.
func (c CursorBound) ForEntity(entity kg.Term) CursorBound {
	return sha256.Sum256(append(c[:], entity.String()...))
}

// cursorContent is the content of a cursor.
type cursorContent struct {
	revision kg.Revision
	now      time.Time
	Key      []byte // empty: before the first element
}

// SealCursor returns the cursor of a place in a list that is read from a snapshot.
func (r *Reader) SealCursor(s *kg.Snapshot, bound CursorBound, key []byte) string {
	b := make([]byte, 0, 17+statementKeyBytes)
	b = append(b, cursorLayout)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Revision()))
	b = binary.BigEndian.AppendUint64(b, uint64(s.View().Now.UnixNano()))
	return r.Store.Seal(append(b, key...), bound[:])
}

func (r *Reader) unsealCursor(c scalar.Cursor, bound CursorBound, keyBytes int) (cursorContent, error) {
	at, err := r.UnsealAnyCursor(c, bound)
	if err == nil && len(at.Key) != keyBytes && len(at.Key) != 0 {
		return cursorContent{}, ForeignCursor()
	}
	return at, err
}

// ForeignCursor is the error of a cursor that belongs to another list.
func ForeignCursor() error {
	return kg.Errorf(kg.CodeCursorForeign, "the cursor belongs to another list").At("after")
}

// UnsealAnyCursor opens a cursor with a key of any length.
func (r *Reader) UnsealAnyCursor(c scalar.Cursor, bound CursorBound) (cursorContent, error) {
	b, err := r.Store.Unseal(string(c), bound[:])
	if err != nil {
		return cursorContent{}, kg.AsError(err).At("after")
	}
	if len(b) < 17 || b[0] != cursorLayout {
		return cursorContent{}, ForeignCursor()
	}
	return cursorContent{
		revision: kg.Revision(binary.BigEndian.Uint64(b[1:])),
		now:      time.Unix(0, int64(binary.BigEndian.Uint64(b[9:]))).UTC(),
		Key:      b[17:],
	}, nil
}

// OpenAt opens the snapshot of the page that a cursor continues.
func (r *Run) OpenAt(ctx context.Context, view kg.View, at cursorContent) (*kg.Snapshot, error) {
	view.At, view.Now = at.revision, at.now
	s, err := r.OpenSnapshot(ctx, view)
	switch kg.CodeOf(err) {
	case kg.CodeRevisionGone, kg.CodeRevisionAhead:
		e := kg.Errorf(kg.CodeCursorGone, "revision %d of the cursor is no longer available", at.revision)
		e.Hint = "Start again from the first page."
		return nil, e.At("after")
	}
	return s, err
}

func quadKey(q kg.IDQuad) []byte {
	b := make([]byte, 0, statementKeyBytes)
	for _, id := range [...]kg.ID{q.Subject, q.Predicate, q.Object, q.Graph} {
		b = append(b, id[:]...)
	}
	return b
}

func parseQuadKey(b []byte) (q kg.IDQuad) {
	for i, id := range [...]*kg.ID{&q.Subject, &q.Predicate, &q.Object, &q.Graph} {
		copy(id[:], b[i*entityKeyBytes:])
	}
	return q
}

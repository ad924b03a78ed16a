package knowledge

import (
	"context"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/internal/scalar"
	"koine/kg"
)

// resolveMoment returns the revision of a moment, 0 before the first commit. A time
// has the same revision throughout an operation, and never a newer one than
// the operation reads.
func (r *Run) resolveMoment(m kg.Moment) (kg.Revision, error) {
	if m.Time.IsZero() {
		return m.Revision, nil
	}
	if !r.pinned {
		r.pinned, r.revision = true, r.Reader.Store.Head().Revision
	}
	at := m.Time.UTC()
	if known, ok := r.moments[at]; ok {
		return known, nil
	}
	revision, err := r.Reader.Store.Resolve(r.ctx, m)
	if err != nil {
		return 0, err
	}
	if r.moments == nil {
		r.moments = make(map[time.Time]kg.Revision)
	}
	revision = min(revision, r.revision)
	r.moments[at] = revision
	return revision, nil
}

// resolveReadable is resolve for a moment to read at, which must not be before the
// first commit.
func (r *Run) resolveReadable(m kg.Moment) (kg.Revision, error) {
	revision, err := r.resolveMoment(m)
	if err == nil && revision == 0 {
		err = kg.Errorf(kg.CodeRevisionGone, "%s is before the first commit", m)
	}
	return revision, err
}

// resolveArgument is resolve for an argument. The moment must not be later than the
// loader's snapshot.
func (l *loader) resolveArgument(m kg.Moment, argument string) (kg.Revision, error) {
	revision, err := l.run.resolveMoment(m)
	if err != nil {
		return 0, kg.AsError(err).At(argument)
	}
	newest := l.snapshot.Revision()
	switch {
	case revision <= newest:
		return revision, nil
	case !m.Time.IsZero():
		return newest, nil
	}
	return 0, kg.Errorf(kg.CodeRevisionAhead, "revision %d does not exist yet: the newest is %d", revision, newest).At(argument)
}

// AwaitRevision waits until the store has the newest minimal revision that a view of
// the operation requires. It must run before anything is read, because the
// operation reads one revision.
func (r *Run) AwaitRevision(ctx context.Context, implementors []string) error {
	op := graphql.GetOperationContext(ctx)
	if !strings.Contains(op.RawQuery, "view") {
		return nil
	}
	var least kg.Revision
	for _, f := range graphql.CollectFields(op, op.Operation.SelectionSet, implementors) {
		if f.Arguments.ForName("view") == nil {
			continue
		}
		view, _ := f.ArgumentMap(op.Variables)["view"].(map[string]any)
		wanted, ok := view["minRevision"]
		if !ok || wanted == nil {
			continue
		}
		revision, err := scalar.UnmarshalRevision(wanted)
		if err != nil {
			return kg.AsError(err).At("view.minRevision")
		}
		least = max(least, revision)
	}
	store := r.Reader.Store
	if store.Head().Revision >= least {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, r.Reader.Limits.Wait)
	defer cancel()
	err := store.WaitFor(waiting, least)
	if waiting.Err() != nil && ctx.Err() == nil && kg.CodeOf(err) == kg.CodeTimeout {
		late := kg.Errorf(kg.CodeTimeout, "revision %d was not reached within %v; the newest is %d", least, r.Reader.Limits.Wait, store.Head().Revision)
		return late.At("view.minRevision")
	}
	return err
}

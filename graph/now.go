package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"koine/kg"
)

// nowFields are the fields of Query that show the present state of channels,
// scopes and messages, regardless of the revision read.
var nowFields = map[string]bool{
	"channel": true, "channels": true, "message": true, "scope": true, "scopes": true, "inbox": true, "globalRestrictions": true,
}

// asOfNow refuses such fields in a request with a view of a revision: the
// answer would seem to belong to that revision.
func (r *run) asOfNow(opCtx *graphql.OperationContext) error {
	if r.request.View.At == 0 {
		return nil
	}
	for _, f := range graphql.CollectFields(opCtx, opCtx.Operation.SelectionSet, queryImplementors) {
		if nowFields[f.Name] {
			return r.notAsOf(f.Name)
		}
	}
	return nil
}

// notAsOf refuses a field with the present state in a request with a view of a
// revision.
func (r *run) notAsOf(field string) error {
	if r.request.View.At == 0 {
		return nil
	}
	e := kg.Errorf(kg.CodeInvalid, "%s shows the present state and cannot be read in a view of revision %d", field, r.request.View.At).At("view.at")
	e.Hint = "Leave the revision out, or read the channel and its messages as entities: entity, statements and match take a view."
	return e
}

// withMeter makes reads of package channels count against the budget of a query.
func (r *run) withMeter(ctx context.Context) context.Context {
	if !r.budgeted {
		return ctx
	}
	return kg.WithMeter(ctx, &r.meter)
}

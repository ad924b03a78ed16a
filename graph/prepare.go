package graph

import (
	"context"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"koine/graph/documents"
	"koine/graph/internal/fault"
	"koine/graph/internal/hint"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// prepareOperation turns a request into an executable operation: parsed, validated,
// within the limits, with coerced variables. It reads nothing from the store.
func (e *Engine) prepareOperation(ctx context.Context, r *run) (opCtx *graphql.OperationContext, errs gqlerror.List) {
	defer func() {
		if p := recover(); p != nil {
			errs = e.faults.PresentAlone(fault.Recover(ctx, p))
		}
	}()
	req := r.request
	if !utf8.ValidString(req.Query) {
		return nil, e.faults.PresentAlone(kg.Errorf(kg.CodeInvalid, "the query is not valid UTF-8"))
	}
	if err := e.limits.CheckVariables(req.Variables); err != nil {
		return nil, e.faults.PresentAlone(err)
	}
	doc, text, errs := r.schema.documents.DocumentOf(req)
	if len(errs) > 0 {
		return nil, e.faults.PresentAll(errs)
	}
	op, err := chooseOperation(doc.QueryDocument, req.OperationName)
	if err != nil {
		return nil, e.faults.PresentAlone(err)
	}
	given, err := r.schema.documents.ExpandVariables(op, req.Variables)
	if err != nil {
		return nil, e.faults.PresentAlone(err)
	}
	variables, err := validator.VariableValues(r.schema.Schema(), op, given)
	if err != nil {
		return nil, e.faults.PresentAlone(hint.VariableError(r.schema.Schema(), op, err))
	}
	if op.Operation == ast.Mutation {
		if err := e.refuseMutation(req.Principal, req.QueriesOnly); err != nil {
			return nil, e.faults.PresentAlone(err)
		}
	}
	if r.Allowed, r.Budgeted, err = e.limits.ReadBudgets(req, op, variables); err != nil {
		return nil, e.faults.PresentAlone(err)
	}
	var budget *limit.Allowance
	if r.Budgeted {
		budget = &r.Allowed
	}
	if err := e.limits.CheckCost(op, variables, budget); err != nil {
		return nil, e.faults.PresentAlone(err)
	}
	set, broken := documents.WithoutNulls(op, variables)
	r.broken = broken
	if len(broken) > 0 {
		if op.Operation == ast.Subscription {
			for _, err := range broken {
				return nil, e.faults.PresentAlone(err)
			}
		}
		copied := *op
		op, copied.SelectionSet = &copied, set
	}
	if broken == nil && !r.Budgeted {
		r.Derived = &doc.Derived
	}
	opCtx = &graphql.OperationContext{
		RawQuery:      text,
		OperationName: req.OperationName,
		Variables:     variables,
		Extensions:    req.Extensions,
		Doc:           doc.QueryDocument,
		Operation:     op,
		RecoverFunc:   fault.Recover,
	}
	return opCtx, nil
}

func chooseOperation(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, error) {
	if op := doc.Operations.ForName(name); op != nil {
		return op, nil
	}
	err := gqlerror.Errorf("the document has no operation %q", name)
	if name == "" {
		err = gqlerror.Errorf("the document has %d operations: pass operationName", len(doc.Operations))
	}
	errcode.Set(err, errcode.ValidationFailed)
	return nil, err
}

// Kind returns the type of the operation, "" if the request is invalid.
func (e *Engine) Kind(req *operation.Request) ast.Operation {
	if !utf8.ValidString(req.Query) {
		return ""
	}
	doc, _, errs := e.schema.Load().documents.DocumentOf(req)
	if len(errs) > 0 {
		return ""
	}
	if op := doc.Operations.ForName(req.OperationName); op != nil {
		return op.Operation
	}
	return ""
}

func (e *Engine) refuseMutation(p kg.Principal, queriesOnly bool) error {
	if err := p.CheckWrite(); err != nil {
		return err
	}
	switch {
	case queriesOnly:
		return kg.Errorf(kg.CodePermissionDenied, "mutations are not allowed on this route")
	case e.options.NoMutations:
		return kg.Errorf(kg.CodePermissionDenied, "mutations are disabled on this server")
	}
	return nil
}

// OperationInfo describes an operation to the operator's rules.
type OperationInfo struct {
	Request      *operation.Request
	Subscription bool
	Text         string   // of the document
	Fields       []string // of the root, without aliases
}

// Rules may refuse a query or a subscription, with CodeAlignmentViolation.
type Rules interface {
	CheckOperation(ctx context.Context, a OperationInfo) error
}

// checkRules evaluates the rules for a query or a subscription, and marks the
// context as checked. Mutations are judged by the update that they make.
func (e *Engine) checkRules(ctx context.Context, r *run, op *graphql.OperationContext) (context.Context, error) {
	if e.deps.Rules == nil {
		return ctx, nil
	}
	if op.Operation.Operation == ast.Mutation {
		return operation.WithJudged(ctx), nil
	}
	of := queryImplementors
	if op.Operation.Operation == ast.Subscription {
		of = subscriptionImplementors
	}
	a := OperationInfo{Request: r.request, Subscription: op.Operation.Operation == ast.Subscription, Text: op.RawQuery, Fields: []string{}}
	for _, f := range graphql.CollectFields(op, op.Operation.SelectionSet, of) {
		a.Fields = append(a.Fields, f.Name)
	}
	return operation.WithJudged(ctx), e.deps.Rules.CheckOperation(ctx, a)
}

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
	if !r.Budgeted {
		return ctx
	}
	return kg.WithMeter(ctx, &r.Meter)
}

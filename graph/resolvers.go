package graph

import (
	"context"
	"strings"

	"github.com/99designs/gqlgen/graphql/introspection"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/internal/tasks"
	"koine/kg"
	"koine/kg/base"
)

// The functions of the root fields are methods of these types: those of
// mutations, and of fields that plan their selection, stand beside what they
// call, the others here.
type (
	queryRoot        struct{ knowledge.Query }
	mutationRoot     struct{}
	subscriptionRoot struct{ knowledge.Subscription }
)

// idOf returns the id that a text is, or that it is the entity of. prefix is the
// entity of the empty id.
func idOf(text string, prefix kg.Term) string { return strings.TrimPrefix(text, prefix.Value()) }

// Why answers Query.why.
func (*queryRoot) Why(ctx context.Context, statement StatementRef, first *int, view *views.ViewInput) (*StatementExplanation, error) {
	return explainStatement(ctx, statement, first, view)
}

// Proposal answers Query.proposal.
func (*queryRoot) Proposal(ctx context.Context, id string) (*Proposal, error) {
	return readProposal(ctx, idOf(id, kg.IRI(kg.ProposalGraphPrefix)))
}

// Vocabulary answers Query.vocabulary.
func (*queryRoot) Vocabulary(ctx context.Context, view *views.ViewInput) (*Vocabulary, error) {
	return readVocabulary(ctx, view)
}

// Me answers Query.me.
func (*queryRoot) Me(ctx context.Context) (*Principal, error) {
	return readMe(ctx)
}

// Agent answers Query.agent.
func (*queryRoot) Agent(ctx context.Context, id string) (*Agent, error) {
	return readAgent(ctx, id)
}

// Stats answers Query.stats.
func (*queryRoot) Stats(ctx context.Context, view *views.ViewInput) (*Stats, error) {
	return readStats(ctx, view)
}

// Revision answers Query.revision.
func (*queryRoot) Revision(ctx context.Context) (*base.Revision, error) {
	return readRevision(ctx)
}

// Channel answers Query.channel.
func (*queryRoot) Channel(ctx context.Context, id string) (*Channel, error) {
	return readChannel(ctx, idOf(id, channel.ID("").Entity()))
}

// Scope answers Query.scope.
func (*queryRoot) Scope(ctx context.Context, id string) (*Scope, error) {
	return readScope(ctx, idOf(id, scope.ID("").Entity()))
}

// Message answers Query.message.
func (*queryRoot) Message(ctx context.Context, id string) (*Message, error) {
	return readMessage(ctx, idOf(id, message.ID("").Entity()))
}

// Graph answers Query.graph.
func (*queryRoot) Graph(ctx context.Context, iri *base.Term) (*Graph, error) {
	return readGraph(ctx, iri)
}

// Shapes answers Query.shapes.
func (*queryRoot) Shapes(ctx context.Context) ([]Shape, error) {
	return readShapes(ctx), nil
}

// UnsupportedShapeParts answers Query.unsupportedShapeParts.
func (*queryRoot) UnsupportedShapeParts(ctx context.Context) ([]UnsupportedShapePart, error) {
	return leftOut(runOf(ctx).engine.shapeSet().LeftOut()), nil
}

// Violations answers Query.violations.
func (*queryRoot) Violations(ctx context.Context, first *int, shape *base.Term, view *views.ViewInput) (*ValidationReport, error) {
	return readViolations(ctx, first, shape, view)
}

// Task answers Query.task.
func (*queryRoot) Task(ctx context.Context, id string) (*Task, error) {
	return readTask(ctx, idOf(id, tasks.TaskID("").Entity()))
}

// Schema answers Query.__schema.
func (*queryRoot) Schema(ctx context.Context) *introspection.Schema {
	return introspection.WrapSchema(runOf(ctx).schema.Schema())
}

// Type answers Query.__type, nil for an unknown name.
func (*queryRoot) Type(ctx context.Context, name string) *introspection.Type {
	schema := runOf(ctx).schema.Schema()
	def := schema.Types[name]
	if def == nil {
		return nil
	}
	return introspection.WrapTypeFromDef(schema, def)
}

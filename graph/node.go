package graph

import (
	"context"
	"strconv"
	"strings"

	"koine/channels/channel"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/internal/tasks"
	"koine/kg"
)

// Node answers Query.node.
func (*queryRoot) Node(ctx context.Context, f *executor.Selected, args *queryNodeArgs) (Node, error) {
	id := args.ID
	if len(id) > views.MaxNodeIDBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "id has %d bytes; at most %d are allowed", len(id), views.MaxNodeIDBytes).At("id")
	}
	if view, name, ours, err := views.ParseNodeID(id, views.EntityIDPrefix); ours {
		if err != nil {
			return nil, err
		}
		return asNodeValue(knowledge.ReadEntityNode(ctx, f, view, name))
	}
	if view, key, ours, err := views.ParseNodeID(id, views.StatementIDPrefix); ours {
		if err != nil {
			return nil, err
		}
		return asNodeValue(knowledge.ReadStatementNode(ctx, f, view, key))
	}
	if node, err := namedNode(ctx, id); node != nil || err != nil {
		return node, err
	}
	return asNodeValue(knowledge.ReadEntityNode(ctx, f, nil, id))
}

// asNodeValue returns a value as a node, nil for nil.
func asNodeValue(v executor.Value, err error) (Node, error) {
	if v == nil || err != nil {
		return nil, err
	}
	return v, nil
}

// namedNode finds the object with an id of its own, nil if the caller can see
// none. Most kinds are distinguished by the form of their ids. The others have
// UUIDs and are tried in turn.
func namedNode(ctx context.Context, id string) (Node, error) {
	r := runOf(ctx)
	number, isCommit := strings.CutPrefix(id, views.CommitIDPrefix)
	switch {
	case isCommit:
		return commitNode(ctx, r, number)
	case isArtifactID(id):
		return asNode(artifactIfAny(ctx, id))
	case channel.ID(id).IsDirect():
		return channelNode(ctx, id)
	case strings.Contains(id, ":"):
		return agentNode(ctx, id)
	}
	for _, find := range []func(context.Context, string) (Node, error){
		channelNode,
		func(ctx context.Context, id string) (Node, error) { return r.nodeOfNow(asNode(readMessage(ctx, id))) },
		func(ctx context.Context, id string) (Node, error) { return r.nodeOfNow(asNode(readScope(ctx, id))) },
		func(ctx context.Context, id string) (Node, error) { return asNode(taskIfAny(ctx, tasks.TaskID(id))) },
		func(ctx context.Context, id string) (Node, error) { return asNode(readProposal(ctx, id)) },
		keyNode,
	} {
		if node, err := find(ctx, id); node != nil || err != nil {
			return node, err
		}
	}
	return nil, nil
}

// asNode returns nil for an object that the caller cannot see.
func asNode[T any](v *T, err error) (Node, error) {
	v, err = unlessGone(v, err)
	if v == nil || err != nil {
		return nil, err
	}
	return v, nil
}

// nodeOfNow refuses channels and their contents in a view of a past revision,
// which they would seem to belong to.
func (r *run) nodeOfNow(node Node, err error) (Node, error) {
	if node == nil || err != nil {
		return nil, err
	}
	return node, r.notAsOf("what has this id")
}

func channelNode(ctx context.Context, id string) (Node, error) {
	return runOf(ctx).nodeOfNow(asNode(readChannel(ctx, id)))
}

func isArtifactID(id string) bool {
	task, name, ok := tasks.ParseArtifact(id)
	return ok && task.ArtifactEntity(name).Value() == id
}

func commitNode(ctx context.Context, r *run, number string) (Node, error) {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || views.CommitNodeID(kg.Revision(n)) != views.CommitIDPrefix+number {
		return nil, nil
	}
	c, err := r.commitSeen(ctx, kg.Revision(n))
	return asNode(r.commitOf(c), err)
}

func agentNode(ctx context.Context, id string) (Node, error) {
	a, err := readAgent(ctx, id)
	switch agent := kg.AgentID(id); {
	case err != nil || a != nil && a.id != agent:
		return nil, err
	case a == nil && isBareAgent(id) && agent.Valid() == nil: // it need not have a record
		return agentOf(agent), nil
	}
	return asNode(a, nil)
}

// isBareAgent reports whether an id can be that of an agent only.
func isBareAgent(id string) bool {
	name, ok := strings.CutPrefix(id, "agent://")
	return ok && name != ""
}

// keyNode returns nil to callers that do not administer keys, as for a missing
// key.
func keyNode(ctx context.Context, id string) (Node, error) {
	r := runOf(ctx)
	if !r.request.Principal.IsAdmin() {
		return nil, nil
	}
	key, err := r.keyService().Get(ctx, r.request.Principal, id)
	return asNode(apiKey(&key), err)
}

// Node is an object that Query.node returns: of a Go type with a table, or a
// Value.
type Node any

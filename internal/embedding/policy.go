package embedding

import (
	"slices"
	"strings"

	"koine/kg"
)

// Graphs is a policy which graphs have texts that may be sent.
type Graphs struct {
	list []string
}

// The names of graphs in a policy that have no IRI of their own.
const (
	defaultGraph = "default"
	allMessages  = "messages"
)

// ParseGraphs returns the policy of a list: "default" for the default graph, "messages" for the
// messages of all channels, an IRI, or the beginning of IRIs with "*".
func ParseGraphs(list []string) (Graphs, error) {
	if len(list) == 0 {
		return Graphs{}, kg.Errorf(kg.CodeInvalid, "no graph may be sent to the embeddings endpoint: name some")
	}
	for _, g := range list {
		name := strings.TrimSuffix(g, "*")
		if g == "" || strings.ContainsAny(name, "* \t\n") {
			return Graphs{}, kg.Errorf(kg.CodeInvalid, "%.100q names no graphs: default, messages, an IRI, or the beginning of IRIs with * at the end", g)
		}
	}
	return Graphs{slices.Clone(list)}, nil
}

// String returns the policy in one form for equal policies.
func (g Graphs) String() string {
	list := slices.Clone(g.list)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// Allow reports whether texts of a graph may be sent. Of koine's own graphs these are only
// messages.
func (g Graphs) Allow(graph kg.Term) bool {
	switch {
	case graph == kg.DefaultGraph:
		return slices.Contains(g.list, defaultGraph)
	case kg.IsOwnGraph(graph):
		return strings.HasPrefix(graph.Value(), kg.JournalGraphPrefix) && slices.Contains(g.list, allMessages)
	}
	return slices.ContainsFunc(g.list, func(name string) bool {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			return strings.HasPrefix(graph.Value(), prefix)
		}
		return graph.Value() == name
	})
}

package limit

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/query/path"
)

// The weights of the parts of an operation, relative to a scalar in the
// answer, which costs 1. They follow measurements. docs/reference/graphql.md has
// the same table.
const (
	costField          = 1    // a scalar, or an object that holds others
	costEntity         = 2    // an entity or a term, which the dictionary resolves
	costScan           = 5    // a list that is read from an index
	costStep           = 10   // each step of a path
	costRepeat         = 50   // each repetition in a path: * + {m,n}
	costUnindexed      = 20   // each condition that no index answers
	costRegex          = 200  // each regular expression, which has to be compiled
	costOrder          = 20   // each order key: the whole list is read
	costTotal          = 20   // totalCount
	costGroups         = 50   // groups
	costTriple         = 20   // each triple of a pattern
	costAround         = 20   // each step of a neighborhood's depth
	costContradictions = 1000 // contradictions: compares all statements of many properties
	costReceipts       = 1000 // receipts, unread, messageCounts: read many members, messages or days
	costTasks          = 1000 // tasks, subtasks: read all tasks of the caller
	costRoute          = 100  // each step of the maximal path length
	costFacets         = 200  // facets, and a search in the order of time: read many hits
	costVerify         = 1000 // verifyEvents: reads and hashes thousands of events
)

// termTypes are the types that the dictionary has to resolve.
var termTypes = map[string]bool{"Entity": true, "Term": true, "Node": true}

// recordTypes are the types that are read from a graph of their own.
var recordTypes = map[string]bool{"Channel": true, "Message": true, "Scope": true, "Task": true}

// scanFields are the fields that read an index without being a connection.
var scanFields = map[string]bool{
	"Entity.values": true, "Entity.degree": true, "Entity.predicates": true, "Entity.history": true,
	"Query.stats": true, "Query.why": true, "Query.violations": true, "Message.artifacts": true, "Task.artifacts": true, "Message.receiptStatus": true, "Message.embedding": true,
	"Channel.readMarker": true, "TaskCommit.message": true,
}

// shortLists are the lists with pages of DefaultListSize elements.
var shortLists = map[string]bool{
	"graphs": true, "members": true, "invitations": true, "restrictions": true, "globalRestrictions": true, "receipts": true, "quarantines": true,
}

// unindexed are the filter operators that have to test each value.
var unindexed = map[string]bool{
	"contains": true, "endsWith": true, "ne": true, "nin": true, "not": true,
	"neVar": true, "ltVar": true, "lteVar": true, "gtVar": true, "gteVar": true,
}

// costlyArguments are the arguments with conditions, orders, paths and patterns.
var costlyArguments = map[string]bool{"where": true, "orderBy": true, "pattern": true, "path": true, "by": true, "compute": true, "filter": true}

// fieldWeight is the cost of a field without its selection set.
func (c *costEstimator) fieldWeight(f *ast.Field) int {
	n := costField
	if f.Definition == nil || f.ObjectDefinition == nil {
		return n // __typename
	}
	kind := f.Definition.Type.Name()
	switch {
	case termTypes[kind] && f.Definition.Type.Elem == nil:
		n = costEntity
	case isConnection(kind) || recordTypes[kind] && f.Definition.Type.Elem == nil || scanFields[f.ObjectDefinition.Name+"."+f.Name]:
		n = costScan
	case kind == "Agent" && readsRecord(f.SelectionSet):
		n = costScan
	}
	switch f.Name {
	case "totalCount":
		n = costTotal
	case "groups":
		n = costGroups
	case "neighborhood":
		n = costAround * c.intArgument(f, "depth", 1, path.MaxRadius)
	case "contradictions":
		n = costContradictions
	case "subtasks":
		n = costTasks
	case "tasks":
		if f.ObjectDefinition.Name == "Query" { // the tasks of a scope are a plain list
			n = costTasks
		}
	case "receipts", "unread", "messageCounts":
		n = costReceipts
	case "facets":
		n = costFacets
	case "search":
		if order := f.Arguments.ForName("order"); order != nil {
			if v, err := order.Value.Value(c.variables); err == nil && v == "TIME" {
				n += costFacets
			}
		}
	case "verifyEvents":
		n = costVerify
	case "shortestPaths":
		n = costRoute * c.intArgument(f, "maxDepth", 6, path.MaxRouteLength)
	}
	for _, arg := range f.Arguments {
		if arg.Name == "last" && (f.Name == "entities" || f.Name == "statements") {
			n += costOrder // the whole list is read
		}
		if !costlyArguments[arg.Name] || arg.Name == "orderBy" && f.Name == "groups" { // groups are ordered in memory
			continue
		}
		if v, err := arg.Value.Value(c.variables); err == nil && v != nil {
			n += inputCost(arg.Name, v)
		}
	}
	return min(n, tooMuch)
}

// readsRecord reports whether a selection on an agent shows more than is known
// without its record.
func readsRecord(set ast.SelectionSet) bool {
	return slices.ContainsFunc(set, func(sel ast.Selection) bool {
		switch sel := sel.(type) {
		case *ast.Field:
			return sel.Name != "id" && sel.Name != "__typename"
		case *ast.InlineFragment:
			return readsRecord(sel.SelectionSet)
		case *ast.FragmentSpread:
			return readsRecord(sel.Definition.SelectionSet)
		}
		return false
	})
}

func isConnection(kind string) bool { return strings.HasSuffix(kind, "Connection") }

// inputCost is the cost of the conditions, paths and patterns in an argument,
// at any depth.
func inputCost(name string, value any) (n int) {
	switch v := value.(type) {
	case string:
		if name == "path" || name == "p" {
			return pathCost(v)
		}
	case []any:
		switch name {
		case "orderBy":
			n = costOrder * len(v)
		case "triples":
			n = costTriple * len(v)
		}
		for _, e := range v {
			n += inputCost("", e)
		}
	case map[string]any:
		switch name { // a single value stands for a list of one
		case "orderBy":
			n = costOrder
		case "triples":
			n = costTriple
		}
		for name, e := range v {
			if e == nil {
				continue
			}
			switch {
			case name == "regex":
				n += costRegex
			case unindexed[name]:
				n += costUnindexed
			}
			n += inputCost(name, e)
		}
	}
	return min(n, tooMuch)
}

// pathCost estimates from the text of a path, which may be invalid. A single
// predicate or a variable costs nothing.
func pathCost(text string) (n int) {
	if strings.HasPrefix(text, "?") || !strings.Contains(text, "<") && strings.Contains(text, "://") {
		return 0
	}
	steps, inside := 1, false
	for _, r := range text {
		switch {
		case r == '<':
			inside = true
		case r == '>':
			inside = false
		case inside:
		case r == '/' || r == '|':
			steps++
		case r == '*' || r == '+' || r == '{':
			n += costRepeat
		}
	}
	if steps > 1 || n > 0 {
		n += steps * costStep
	}
	return n
}

package main

import (
	"fmt"
	"time"

	"koine/graph"
)

// limitFlags are the limits of a GraphQL operation that operators tune. The others have the
// defaults of package graph.
type limitFlags struct {
	QueryTime       time.Duration `help:"Maximum duration of a GraphQL query or mutation." default:"10s"`
	QueryComplexity int           `help:"Maximum cost of a GraphQL operation, by the weights in docs/reference/graphql.md." default:"1000000" placeholder:"N"`
	PageSize        int           `help:"Maximum number of elements in a page of a GraphQL list." default:"1000" placeholder:"N"`
	ResultMiB       int           `help:"Maximum size of a GraphQL response." default:"16" name:"result-mib" placeholder:"MIB"`
}

// maxResultMiB bounds --result-mib: an answer is built in memory.
const maxResultMiB = 1 << 10

func (f limitFlags) graphLimits() (graph.Limits, error) {
	for _, flag := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"query-time", int64(f.QueryTime), int64(24 * time.Hour)},
		{"query-complexity", int64(f.QueryComplexity), 1 << 30},
		{"page-size", int64(f.PageSize), 1 << 20},
		{"result-mib", int64(f.ResultMiB), maxResultMiB},
	} {
		if flag.value < 1 {
			return graph.Limits{}, usageError{fmt.Errorf("--%s must be positive", flag.name)}
		}
		if flag.value > flag.most {
			most := any(flag.most)
			if flag.name == "query-time" {
				most = time.Duration(flag.most)
			}
			return graph.Limits{}, usageError{fmt.Errorf("--%s must be at most %v", flag.name, most)}
		}
	}
	return graph.Limits{
		Duration: f.QueryTime, Complexity: f.QueryComplexity, PageSize: f.PageSize, ResultBytes: f.ResultMiB << 20,
	}, nil
}

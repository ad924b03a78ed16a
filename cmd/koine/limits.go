package main

import (
	"cmp"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/graph/limit"
	"koine/internal/httpd"
	"koine/internal/memory"
	"koine/internal/rdf"
	"koine/internal/throttle"
)

// limitFlags are the limits of a GraphQL operation that operators tune. The others have the
// defaults of package graph.
type limitFlags struct {
	QueryTime       time.Duration `help:"Maximum duration of a GraphQL query or mutation." default:"10s"`
	QueryComplexity int           `help:"Maximum cost of a GraphQL operation, by the weights in docs/reference/graphql.md." default:"1000000" placeholder:"N"`
	PageSize        int           `help:"Maximum number of elements in a page of a GraphQL list." default:"1000" placeholder:"N"`
	ResultMiB       *int          `help:"Maximum size of a GraphQL response (default: a share of --memory, at most 16)." name:"result-mib" placeholder:"MIB"`
}

// maxResultMiB bounds --result-mib: an answer is built in memory.
const maxResultMiB = 1 << 10

func (f limitFlags) graphLimits(s memory.Shares) (limit.Limits, error) {
	result := mebibytes(f.ResultMiB, s.Result)
	err := cmp.Or(
		cli.CheckRange("query-time", f.QueryTime, 1, 24*time.Hour),
		cli.CheckRange("query-complexity", f.QueryComplexity, 1, 1<<30),
		cli.CheckRange("page-size", f.PageSize, 1, 1<<20),
		cli.CheckRange("result-mib", result, 1, maxResultMiB),
	)
	return limit.Limits{
		Duration: f.QueryTime, Complexity: f.QueryComplexity, PageSize: f.PageSize, ResultBytes: result << 20,
	}, err
}

// mebibytes returns the value of a flag, and without one a share of the memory.
func mebibytes(flag *int, share int64) int {
	if flag == nil {
		return int(share >> 20)
	}
	return *flag
}

// serveJSONLDFlags adds the flag of a server, which reads several documents at a time.
type serveJSONLDFlags struct {
	cli.JSONLDFlags
	JSONLDHolders int `help:"Maximum number of JSON-LD documents read at a time that need more than 1 MiB of memory. Others wait." name:"jsonld-holders" default:"1" placeholder:"N"`
}

// JSONLDOptions adds the bound on documents that are held in memory at a time.
func (f *serveJSONLDFlags) JSONLDOptions() (rdf.JSONLDOptions, error) {
	if err := cli.CheckRange("jsonld-holders", f.JSONLDHolders, 1, maxJSONLDHolders); err != nil {
		return rdf.JSONLDOptions{}, err
	}
	o, err := f.JSONLDFlags.JSONLDOptions()
	o.Holders = rdf.NewJSONLDHolders(f.JSONLDHolders)
	return o, err
}

const maxJSONLDHolders = 64

// capacityFlags bound the server resources that all callers share. One caller may use half
// of the amount that the others leave (throttle.Pool).
type capacityFlags struct {
	MaxStreams     int  `help:"Maximum number of open event streams, WebSockets and subscriptions. One caller may use half of what the others leave." default:"10000" placeholder:"N"`
	MaxConnections *int `help:"Maximum number of open connections. One caller may use half of what the others leave (default: derived from the limit of open files, at most 16384)." placeholder:"N"`
	ReceivedMiB    *int `help:"Maximum memory for received requests and messages that are not answered yet, or whose stream is open. One caller may use half of what the others leave (default: half of --memory, at most 256)." name:"received-mib" placeholder:"MIB"`
}

// Bounds of the flags.
const (
	maxCapacity    = 1_000_000 // streams, and connections
	minReceivedMiB = 32        // one message is 8 MiB at the most
	maxReceivedMiB = 64 << 10
)

func (f capacityFlags) validateRanges() error {
	connections := httpd.MinConnections
	if f.MaxConnections != nil {
		connections = *f.MaxConnections
	}
	return cmp.Or(
		cli.CheckRange("max-streams", f.MaxStreams, 1, maxCapacity),
		cli.CheckRange("max-connections", connections, httpd.MinConnections, maxCapacity),
		cli.CheckRange("received-mib", mebibytes(f.ReceivedMiB, minReceivedMiB<<20), minReceivedMiB, maxReceivedMiB),
	)
}

// maxConnections returns the limit of connections, 0 to derive it from the limit of open
// files.
func (f capacityFlags) maxConnections() int {
	if f.MaxConnections == nil {
		return 0
	}
	return *f.MaxConnections
}

// newIntake returns the pool that bounds the memory of received requests and messages.
func (f capacityFlags) newIntake(s memory.Shares) throttle.Intake {
	return throttle.Intake{Pool: throttle.NewPool(int64(mebibytes(f.ReceivedMiB, s.Received)) << 20)}
}

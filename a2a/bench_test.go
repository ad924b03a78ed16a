package a2a

import (
	"fmt"
	"strings"
	"testing"

	"koine/internal/update"
)

// BenchmarkReadMutations measures the cost of reading an update before the store: the scan
// of the body, the envelope, and the patches.
func BenchmarkReadMutations(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var patches []string
			for i := range n {
				patches = append(patches, fmt.Sprintf(`{"op":"add","statement":{"subject":{"id":"https://example.org/person/%d"},"predicate":{"id":"foaf:name"},"object":{"value":"Ada %d"},"certainty":0.9}}`, i/5, i))
			}
			body := []byte(`{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[` + strings.Join(patches, ",") + `]}}`)
			h := &Handler{prefixes: testPrefixes(b)}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var mutations []update.Mutation
				f := new(failure)
				requests, _, refusal := decodeBody(body, DefaultMaxDepth, DefaultMaxBatch)
				if refusal == nil {
					params := readParams(f, requests[0].params)
					list, _ := params.readArray("mutations")
					mutations = h.readMutations(f, "mutations", list)
				}
				if refusal != nil || f.err != nil || len(mutations) != n {
					b.Fatal(refusal, f.err, len(mutations))
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "patches/s")
		})
	}
}

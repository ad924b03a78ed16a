module github.com/dgraph-io/badger/v4

go 1.24.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/dgraph-io/ristretto/v2 v2.2.0
	github.com/dustin/go-humanize v1.0.1
	github.com/google/flatbuffers v25.2.10+incompatible
	github.com/klauspost/compress v1.18.0
	go.opentelemetry.io/otel v1.41.0
	golang.org/x/sys v0.41.0
	google.golang.org/protobuf v1.36.7
)

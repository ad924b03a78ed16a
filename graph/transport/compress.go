package transport

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// newCompressor returns a middleware that compresses answers of at least size bytes
// for clients that accept gzip.
func newCompressor(size int) func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(size), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
		gzhttp.ContentTypeFilter(gzhttp.CompressAllContentTypeFilter), // all answers here are text
	)
	if err != nil {
		panic(err) // negative size
	}
	return wrap
}

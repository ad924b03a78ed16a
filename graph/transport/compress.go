package transport

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// compress makes the middleware that sends answers of this size and above as
// gzip to who takes that.
func compress(size int) func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(size), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
		gzhttp.ContentTypeFilter(gzhttp.CompressAllContentTypeFilter), // all that comes here is text
	)
	if err != nil {
		panic(err) // a size below zero
	}
	return wrap
}

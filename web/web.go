// Package web serves koine's GraphQL playground: GraphiQL, bundled with everything
// that it needs, so that it works without the internet.
//
// The build in dist is committed, gzipped, and embedded as it is: building koine
// needs no npm. It is what `npm run build` makes of the sources beside it, byte for
// byte (`npm run check-build`). The tabs of a first visit are the documents in examples.
package web

import (
	"embed"
	"net/http"
	"strings"
)

//go:embed dist
var dist embed.FS

// contentSecurityPolicy lets the page load and call its own origin only. Monaco
// writes style elements, and its style sheets hold fonts and images as data: URLs.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; worker-src 'self'; " +
	"style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page is the page's file in dist.
const page = "index.html"

// Handler serves the page at /playground and at /, and the files it loads below
// /playground/. All its addresses are relative: it may stand behind a prefix that
// is stripped before (http.StripPrefix). It sends GraphQL to the page's sibling
// "graphql". Other paths are 404, methods other than GET and HEAD 405.
func Handler() http.Handler {
	files, err := readFiles(dist)
	if err != nil {
		panic("web: embedded files: " + err.Error())
	}
	return handler(files)
}

// handler maps names in dist, without .gz, to files.
type handler map[string]*file

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")

	name := strings.TrimPrefix(r.URL.Path, "/")
	switch name {
	case "", "playground":
		name = page
	case page:
		name = "" // the page goes by the two names above only
	case "playground/":
		// The page's relative addresses would miss by one level here. http.Redirect
		// would make the address absolute, without the prefix that it does not know.
		header.Set("Location", "../playground")
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	f, ok := h[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	f.serve(w, r)
}

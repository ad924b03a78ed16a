// Package rdfdata serves /data: RDF out of the graph and into it, by content
// negotiation, in the manner of the SPARQL 1.1 Graph Store HTTP Protocol.
//
//	GET  /data[?graph=…]  exports what the caller's default view shows, or one graph
//	POST /data[?graph=…]  adds the statements of a document
//	PUT  /data?graph=…    makes a graph hold exactly those of a document, in one commit
//
// A document is read through once before anything is written, so that a fault
// in its last line leaves nothing behind, and so that its blank nodes get the
// same names when it is sent again.
package rdfdata

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strings"

	"koine/internal/names"
	"koine/internal/throttle"
	"koine/kg"
)

// Store is what the handler needs of kg.Store.
type Store interface {
	View(context.Context, kg.View) (*kg.Snapshot, error)
	ReplaceGraph(context.Context, kg.Meta, kg.Term, iter.Seq2[kg.Quad, error], kg.ReplaceOptions) (kg.ReplaceReport, error)
	Load(context.Context, kg.Meta, iter.Seq2[kg.Quad, error], kg.LoadOptions) (kg.LoadReport, error)
	ReadableAt(context.Context, kg.Moment) (kg.Revision, error)
	Head() kg.Position
	FormatPosition(kg.Position) string
	CommitID(kg.Revision) string
	names.Known
}

// Deps are the parts that the handler works with.
type Deps struct {
	Store Store
	// Prefixes shorten IRIs in Turtle and TriG, and are understood in ?graph=.
	Prefixes *kg.Prefixes
	Logger   *slog.Logger // may be nil
	// Refused, if set, is told of each error: so that what somebody may not do is
	// noted.
	Refused func(context.Context, kg.Code)
}

// Bounds of an import, and their defaults.
const (
	// DefaultMaxBytes bounds a document of POST, both as it is sent and
	// decompressed.
	DefaultMaxBytes = 2 << 30
	// DefaultMaxReplaceBytes bounds one of PUT.
	DefaultMaxReplaceBytes = 32 << 20
	// DefaultMaxImports bounds the imports at one time, of which one caller may have
	// half of what the others leave.
	DefaultMaxImports = 4
)

// Options of the handler. The zero Options work.
type Options struct {
	MaxBytes        int64
	MaxReplaceBytes int64
	MaxImports      int
	// TempDir is where documents wait while they are checked; "" means the
	// system's.
	TempDir string
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxReplaceBytes == 0 {
		o.MaxReplaceBytes = DefaultMaxReplaceBytes
	}
	if o.MaxImports == 0 {
		o.MaxImports = DefaultMaxImports
	}
	return o
}

type handler struct {
	Deps
	options Options
	imports *throttle.Pool // a place for each import that goes on
}

// NewHandler serves /data. It finds the caller in the request's context.
func NewHandler(d Deps, o Options) http.Handler {
	h := &handler{Deps: d, options: o.withDefaults()}
	h.imports = throttle.NewPool(int64(h.options.MaxImports))
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil {
		h.fail(w, r, err)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) error {
	if _, ok := parameters[r.Method]; !ok {
		w.Header().Set("Allow", "GET, HEAD, POST, PUT")
		return refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "%s is none of GET, POST and PUT", r.Method)
	}
	if err := known(r); err != nil {
		return err
	}
	switch r.Method {
	case http.MethodPost:
		return h.importing(w, r, h.load)
	case http.MethodPut:
		return h.importing(w, r, h.replace)
	}
	return h.export(w, r)
}

// graph is the graph that ?graph= names: an IRI, a registered prefix:name, a
// blank node as _:label, or "default". named is false when the parameter is absent.
func (h *handler) graph(r *http.Request) (graph kg.Term, named bool, err error) {
	values, ok := r.URL.Query()["graph"]
	switch {
	case !ok:
		return kg.Term{}, false, nil
	case len(values) > 1:
		return kg.Term{}, true, kg.Errorf(kg.CodeInvalid, "one graph at a time").At("graph")
	case strings.EqualFold(values[0], "default"):
		return kg.DefaultGraph, true, nil
	}
	graph, err = h.Prefixes.Resource(values[0])
	if err != nil {
		return kg.Term{}, true, kg.AsError(err).At("graph")
	}
	return graph, true, nil
}

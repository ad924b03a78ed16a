// Package rdfdata serves /data: import and export of RDF with content negotiation. It
// implements the SPARQL 1.1 Graph Store HTTP Protocol with indirect graph identification:
// ?graph=IRI selects a named graph, ?default the default graph, and without either the
// request is about the store.
//
//	GET     exports a graph, or all statements in the caller's default view
//	POST    adds the statements of a document
//	PUT     makes a graph hold exactly the statements of a document
//	DELETE  deletes a graph
//
// A document is read completely before anything is written, so that an error in its last
// line leaves nothing behind, and so that its blank nodes get the same names when it is
// sent again.
package rdfdata

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"koine/internal/names"
	"koine/internal/policy"
	"koine/internal/rdf"
	"koine/internal/throttle"
	"koine/kg"
)

// Store is the part of kg.Store that the handler uses.
type Store interface {
	View(context.Context, kg.View) (*kg.Snapshot, error)
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
	ReplaceGraph(context.Context, kg.Meta, kg.Term, iter.Seq2[kg.Quad, error], kg.ReplaceOptions) (kg.ReplaceReport, error)
	Load(context.Context, kg.Meta, iter.Seq2[kg.Quad, error], kg.LoadOptions) (kg.LoadReport, error)
	ReadableAt(context.Context, kg.Moment) (kg.Revision, error)
	Head() kg.Position
	LiteralBytes() int
	NewLastChanges() *kg.LastChanges
	FormatPosition(kg.Position) string
	CommitID(kg.Revision) string
	names.Known
}

// Graphs is the part of policy.Graphs that the handler uses.
type Graphs interface {
	Create(context.Context, kg.Meta, policy.Creation) (policy.Policy, kg.Receipt, error)
	Delete(context.Context, kg.Meta, kg.Term) (policy.Deletion, error)
	CanRecreate(kg.Principal, kg.Term) bool
	Exists(kg.Principal, kg.Term) bool
	NewName(kg.Principal) (kg.Term, bool)
}

// Deps are the dependencies of the handler.
type Deps struct {
	Store Store
	// Prefixes abbreviate IRIs in Turtle and TriG, and are accepted in ?graph=.
	Prefixes *kg.Prefixes
	// Graphs deletes graphs and generates names.
	Graphs Graphs
	Logger *slog.Logger // may be nil
	// Charge, if set, is called for each further kg.LoadUpdateQuads assertions that a document
	// with descriptions brought in, as kg.Governor.Charge is for loads.
	Charge func(context.Context, kg.Meta)
	// Refused, if set, is called for each error, to audit denied requests.
	Refused func(context.Context, kg.Code)
}

// Limits of an import, and their defaults.
const (
	// DefaultMaxBytes bounds a document, both as sent and decompressed.
	DefaultMaxBytes = 2 << 30
	// DefaultMaxImports bounds the concurrent imports and deletions. One caller may use
	// half of those that others leave free.
	DefaultMaxImports = 4
)

// Options configures the handler. The zero value has the defaults.
type Options struct {
	MaxBytes   int64
	MaxImports int
	// TempDir is the directory for documents that are being checked; "" means the system's.
	TempDir string
	// PublicURL is the address of the server as clients know it, the base of relative
	// IRIs in documents without a graph; "" means the address of the request.
	PublicURL string
	// JSONLD configures the reading of JSON-LD.
	JSONLD rdf.JSONLDOptions
	// Ending ends when the server shuts down, and with it imports of JSON-LD; nil never ends.
	Ending context.Context
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxImports == 0 {
		o.MaxImports = DefaultMaxImports
	}
	return o
}

type handler struct {
	Deps
	options Options
	imports *throttle.Pool // semaphore of concurrent imports
	changes *kg.LastChanges
}

// NewHandler returns the handler of /data. It expects the caller in the request's context.
func NewHandler(d Deps, o Options) http.Handler {
	h := &handler{Deps: d, options: o.withDefaults(), changes: d.Store.NewLastChanges()}
	h.imports = throttle.NewPool(int64(h.options.MaxImports))
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serveRequest(w, r); err != nil {
		h.writeError(w, r, err)
	}
}

func (h *handler) serveRequest(w http.ResponseWriter, r *http.Request) error {
	if err := h.checkSupported(w, r); err != nil {
		return err
	}
	if r.Method == http.MethodOptions {
		h.describeMethods(w)
		return nil
	}
	if err := checkParameters(r); err != nil {
		return err
	}
	t, err := h.parseTarget(r)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		return h.importDocument(w, r, t)
	case http.MethodDelete:
		return h.deleteGraph(w, r, t)
	}
	return h.exportGraph(w, r, t)
}

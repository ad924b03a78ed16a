// Package rdfdata serves /data: RDF out of the graph and into it, by content
// negotiation. It is the SPARQL 1.1 Graph Store HTTP Protocol with indirect graph
// identification: ?graph=IRI names a graph, ?default is the one without a name, and
// without either the request is about the store.
//
//	GET     exports a graph, or all that the caller's default view shows
//	POST    adds the statements of a document
//	PUT     makes a graph hold exactly those of a document
//	DELETE  deletes a graph
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

	"koine/internal/names"
	"koine/internal/policy"
	"koine/internal/rdf"
	"koine/internal/throttle"
	"koine/kg"
)

// Store is what the handler needs of kg.Store.
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

// Graphs is what the handler needs of policy.Graphs.
type Graphs interface {
	Create(context.Context, kg.Meta, policy.Creation) (policy.Policy, kg.Receipt, error)
	Delete(context.Context, kg.Meta, kg.Term) (policy.Deletion, error)
	CanRecreate(kg.Principal, kg.Term) bool
	Exists(kg.Principal, kg.Term) bool
	NewName(kg.Principal) (kg.Term, bool)
}

// Deps are the parts that the handler works with.
type Deps struct {
	Store Store
	// Prefixes shorten IRIs in Turtle and TriG, and are understood in ?graph=.
	Prefixes *kg.Prefixes
	// Graphs deletes graphs and makes up their names.
	Graphs Graphs
	Logger *slog.Logger // may be nil
	// Charge, if set, is told for each further kg.LoadUpdateQuads assertions that a document
	// with descriptions of them brought in, as kg.Options.Charge is of loads.
	Charge func(context.Context, kg.Meta)
	// Refused, if set, is told of each error: so that what somebody may not do is
	// noted.
	Refused func(context.Context, kg.Code)
}

// Bounds of an import, and their defaults.
const (
	// DefaultMaxBytes bounds a document, both as it is sent and decompressed.
	DefaultMaxBytes = 2 << 30
	// DefaultMaxImports bounds the imports and deletions at one time, of which one caller may have
	// half of what the others leave.
	DefaultMaxImports = 4
)

// Options of the handler. The zero Options work.
type Options struct {
	MaxBytes   int64
	MaxImports int
	// TempDir is where documents wait while they are checked; "" means the
	// system's.
	TempDir string
	// PublicURL is the address under which clients know the server. It is the base of
	// relative IRIs where no graph is; "" means the address that was asked.
	PublicURL string
	// JSONLD says how JSON-LD is read.
	JSONLD rdf.JSONLDOptions
	// Ending ends when the server does, and with it imports of JSON-LD; nil never does.
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
	imports *throttle.Pool // a place for each import that goes on
	changes *kg.LastChanges
}

// NewHandler serves /data. It finds the caller in the request's context.
func NewHandler(d Deps, o Options) http.Handler {
	h := &handler{Deps: d, options: o.withDefaults(), changes: d.Store.NewLastChanges()}
	h.imports = throttle.NewPool(int64(h.options.MaxImports))
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil {
		h.fail(w, r, err)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) error {
	if err := h.supported(w, r); err != nil {
		return err
	}
	if r.Method == http.MethodOptions {
		h.describe(w)
		return nil
	}
	if err := known(r); err != nil {
		return err
	}
	t, err := h.target(r)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		return h.importing(w, r, t)
	case http.MethodDelete:
		return h.delete(w, r, t)
	}
	return h.export(w, r, t)
}

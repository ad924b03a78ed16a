package rdfdata

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"time"

	"koine/internal/caller"
	"koine/internal/names"
	"koine/internal/policy"
	"koine/internal/rdf"
	"koine/internal/throttle"
	"koine/kg"
)

// unknownNamesHeader is the response header with the number of unknown names in the document.
const unknownNamesHeader = "Koine-Unknown-Names"

func unknownNames(list []names.Unknown) (n uint64) {
	for i := range list {
		n += list[i].Count
	}
	return n
}

// maxRejectedTold is the largest number of rejected lines in a response.
const maxRejectedTold = 20

// report is the response to an import.
type report struct {
	// Quads in the document; Statements are those that changed something.
	Quads      uint64      `json:"quads"`
	Statements uint64      `json:"statements"`
	Removed    uint64      `json:"removed,omitempty"`
	Commits    uint64      `json:"commits"`
	Revision   kg.Revision `json:"revision"`
	Position   string      `json:"position"`
	CommitID   *string     `json:"commitId"`
	Rejected   uint64      `json:"rejected,omitempty"`
	Errors     []string    `json:"errors,omitempty"`
	// Restored is set for a document with descriptions of assertions; Statements then counts the
	// assertions that changed something.
	Restored *restored `json:"restored,omitempty"`
	// Dropped counts the JSON-LD entries without a meaning; Remarks name the first.
	Dropped uint64   `json:"dropped,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
	// ProposalID is the proposal if the import awaits review.
	ProposalID string `json:"proposalId,omitempty"`
	// UnknownNames are the prefixes of IRIs in the document that are neither registered
	// nor URI schemes that the store knows. They were loaded unchanged.
	UnknownNames []names.Unknown `json:"unknownNames,omitempty"`
	// Graph is the graph that was created.
	Graph   string `json:"graph,omitempty"`
	created bool
}

// document is a received and checked body.
type document struct {
	spool   *spool
	format  rdf.Format
	options rdf.Options
	why     string
	summary rdf.Summary
	errors  []string
	remarks []string
	unknown []names.Unknown
}

// importDocument handles POST and PUT: it acquires the semaphore, checks the
// preconditions, receives and checks the document, and writes it.
func (h *handler) importDocument(w http.ResponseWriter, r *http.Request, t target) error {
	format, err := bodyFormat(r)
	if err != nil {
		return err
	}
	write, why := h.loadDocument, "Import over HTTP"
	described, err := describesAssertions(r)
	if err == nil && described {
		write, err = h.restoreDocument, mayRestore(r)
	}
	if err != nil {
		return err
	}
	switch {
	case r.Method == http.MethodPut && !t.named:
		return kg.Errorf(kg.CodeInvalid, "PUT replaces one graph and needs ?graph= or ?default").At("graph")
	case r.Method == http.MethodPut:
		write, why = h.replaceGraph, "Replace a graph over HTTP"
	case !t.named && !format.HasGraphs() && !described:
		if t, err = h.newGraph(r); err != nil {
			return err
		}
	}
	if why, err = justificationOf(r, why); err != nil {
		return err
	}
	if err := caller.From(r.Context()).Principal.CheckWrite(); err != nil {
		return err
	}
	owner := throttle.OwnerOf(caller.From(r.Context()))
	if !h.imports.Acquire(owner, 1) {
		return tooMany()
	}
	defer h.imports.Release(owner, 1)
	r, done := h.endsWithServer(w, r, format)
	defer done()
	found, err := h.findTarget(r, t)
	if err != nil {
		return err
	}
	doc, err := h.receiveDocument(w, r, format, t)
	if err != nil {
		return err
	}
	defer doc.spool.close()
	if r.Method == http.MethodPost && doc.spool.isEmpty() {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	doc.why = why
	undo, err := h.makeAgain(r, doc, t, found)
	if err != nil {
		return err
	}
	out, err := write(r, doc, t, found)
	if err != nil {
		undo()
		return found.asPrecondition(err)
	}
	out.Quads, out.Rejected, out.Errors, out.UnknownNames = doc.summary.Quads, doc.summary.Rejected, doc.errors, doc.unknown
	out.Dropped, out.Remarks = doc.summary.Dropped, doc.remarks
	if n := unknownNames(doc.unknown); n > 0 {
		w.Header().Set(unknownNamesHeader, strconv.FormatUint(n, 10))
	}
	status := http.StatusOK
	if out.created {
		status = http.StatusCreated
		if !t.isDefault() {
			out.Graph = t.graph.Name()
			w.Header().Set("Location", headerIRI(t.graph))
		}
	}
	return writeReport(w, status, out)
}

// errEnding is the error of an import that the server's shutdown ends.
var errEnding = kg.Errorf(kg.CodeClosed, "the server is shutting down: the import was cancelled and nothing of this document was imported")

// endsWithServer returns the request with a context that ends at the server's shutdown if
// the document is JSON-LD: it may take long to read, and nothing is acknowledged before
// it is complete. A body that is being received is cut off, too.
func (h *handler) endsWithServer(w http.ResponseWriter, r *http.Request, f rdf.Format) (*http.Request, func()) {
	if h.options.Ending == nil || f != rdf.JSONLD {
		return r, func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(h.options.Ending, func() {
		cancel(errEnding)
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // without support, the server waits for the client
	})
	return r.WithContext(ctx), func() {
		stop()
		cancel(nil)
	}
}

// makeAgain recreates a deleted graph, if the caller may, so that it can be written to.
// undo deletes it again unless anything was written to it since.
func (h *handler) makeAgain(r *http.Request, d *document, t target, found writeTarget) (undo func(), err error) {
	if found.exists || d.summary.Quads == 0 || !h.Graphs.CanRecreate(caller.From(r.Context()).Principal, t.graph) {
		return func() {}, nil
	}
	m := commitMeta(r, d.why)
	_, made, err := h.Graphs.Create(r.Context(), m, policy.Creation{Graph: t.graph})
	if err != nil {
		return nil, err
	}
	return func() {
		m.ExpectedRevision, m.HasExpected = made.Revision, true
		_, err := h.Graphs.Delete(context.WithoutCancel(r.Context()), m, t.graph)
		if err != nil && kg.CodeOf(err) != kg.CodeRevisionConflict && h.Logger != nil {
			h.Logger.ErrorContext(r.Context(), "deleting a graph that was created for a document failed", "error", err)
		}
	}, nil
}

// tooMany rejects an import or a deletion beyond Options.MaxImports.
func tooMany() error {
	return &kg.Error{Code: kg.CodeOverloaded, Message: "too many concurrent imports", RetryAfter: 2 * time.Second}
}

func (h *handler) receiveDocument(w http.ResponseWriter, r *http.Request, f rdf.Format, t target) (*document, error) {
	base, err := h.baseIRI(r, t)
	if err != nil {
		return nil, err
	}
	d := &document{format: f, options: rdf.Options{Graph: t.graph, Base: base, LiteralBytes: h.Store.LiteralBytes()}}
	if d.options.JSONLD, err = h.jsonldOptions(r, base); err != nil {
		return nil, err
	}
	if text := r.URL.Query().Get("continueOnError"); text != "" {
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return nil, kg.Errorf(kg.CodeInvalid, "continueOnError must be true or false").At("continueOnError")
		}
		d.options.ContinueOnError = yes
	}
	if d.spool, err = h.receiveBody(w, r, h.options.MaxBytes); err != nil {
		return nil, err
	}
	checking := d.options
	checking.Rejected = func(e *rdf.SyntaxError) {
		if len(d.errors) < maxRejectedTold {
			d.errors = append(d.errors, e.Error())
		}
	}
	checking.JSONLD.Dropped = func(e *rdf.SyntaxError) {
		if len(d.remarks) < maxRejectedTold {
			d.remarks = append(d.remarks, e.Error())
		}
	}
	in, err := d.spool.open()
	census := names.NewCensus(h.Store)
	if err == nil {
		d.summary, err = rdf.SurveyContext(r.Context(), in, f, checking, census.Add)
	}
	if err != nil {
		d.spool.close()
		return nil, err
	}
	d.options.Tag, d.unknown = d.summary.Tag, census.Unknown()
	return d, nil
}

// commitMeta returns the commit metadata of an import.
func commitMeta(r *http.Request, why string) kg.Meta {
	c := caller.From(r.Context())
	return kg.Meta{Principal: c.Principal, Actor: c.Actor, Justification: why, Method: r.Method + " /data"}
}

// loadDocument adds the document's statements, in as many commits as necessary.
func (h *handler) loadDocument(r *http.Request, d *document, t target, found writeTarget) (report, error) {
	in, err := d.spool.open()
	if err != nil {
		return report{}, err
	}
	loaded, err := h.Store.Load(r.Context(), commitMeta(r, d.why), rdf.ReadContext(r.Context(), in, d.format, d.options), kg.LoadOptions{})
	if err != nil {
		return report{}, err
	}
	behind := h.Store.Head()
	behind.Revision, behind.Index = loaded.Revision, kg.EndOfCommit
	out := h.newReport(loaded.Revision, behind, loaded.Commits, loaded.Statements)
	if !found.exists && loaded.Statements > 0 {
		// The document may have named other graphs. An error here does not undo the write.
		if out.created, err = h.graphExists(r, t.graph); err != nil && h.Logger != nil {
			h.Logger.WarnContext(r.Context(), "finding out whether a document created its graph failed", "error", err)
		}
	}
	return out, nil
}

// replaceGraph makes the graph hold exactly the document's statements.
func (h *handler) replaceGraph(r *http.Request, d *document, t target, found writeTarget) (report, error) {
	in, err := d.spool.open()
	if err != nil {
		return report{}, err
	}
	return h.replaceWith(r, rdf.ReadContext(r.Context(), in, d.format, d.options), d.why, t, found)
}

// replaceWith makes the graph hold exactly the quads.
func (h *handler) replaceWith(r *http.Request, quads iter.Seq2[kg.Quad, error], why string, t target, found writeTarget) (report, error) {
	replaced, err := h.Store.ReplaceGraph(r.Context(), found.withExpected(commitMeta(r, why)), t.graph, quads, kg.ReplaceOptions{})
	if err != nil {
		return report{}, err
	}
	out := h.newReport(replaced.Revision, replaced.Position, replaced.Commits, replaced.Added)
	out.Removed, out.ProposalID = replaced.Removed, replaced.ProposalID
	out.created = replaced.Created && replaced.Added > 0 && (t.isDefault() || !found.exists)
	return out, nil
}

func (h *handler) newReport(rev kg.Revision, p kg.Position, commits, statements uint64) report {
	out := report{Statements: statements, Commits: commits, Revision: rev, Position: h.Store.FormatPosition(p)}
	if commits > 0 {
		id := h.Store.CommitID(rev)
		out.CommitID = &id
	}
	return out
}

func writeReport(w http.ResponseWriter, status int, out report) error {
	body, err := json.Marshal(out)
	if err != nil {
		return errors.Join(kg.Errorf(kg.CodeInternal, "internal error"), err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
	return nil
}

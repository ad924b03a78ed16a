package rdfdata

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"koine/internal/caller"
	"koine/internal/names"
	"koine/internal/rdf"
	"koine/internal/throttle"
	"koine/kg"
)

// unknownNamesHeader counts the names of a document that the store does not know.
const unknownNamesHeader = "Koine-Unknown-Names"

func unknownNames(list []names.Unknown) (n uint64) {
	for i := range list {
		n += list[i].Count
	}
	return n
}

// maxRejectedTold bounds the rejected lines that an answer names.
const maxRejectedTold = 20

// report is the answer to an import.
type report struct {
	// Quads in the document; Statements of them that changed something.
	Quads      uint64      `json:"quads"`
	Statements uint64      `json:"statements"`
	Removed    uint64      `json:"removed,omitempty"`
	Commits    uint64      `json:"commits"`
	Revision   kg.Revision `json:"revision"`
	Position   string      `json:"position"`
	CommitID   *string     `json:"commitId"`
	Rejected   uint64      `json:"rejected,omitempty"`
	Errors     []string    `json:"errors,omitempty"`
	// ProposalID names what the import became where it waits for review.
	ProposalID string `json:"proposalId,omitempty"`
	// UnknownNames are the prefixes of IRIs in the document that are neither registered
	// nor URI schemes that the store knows; they were loaded as they are.
	UnknownNames []names.Unknown `json:"unknownNames,omitempty"`
}

// document is a body that has been received and found to be one.
type document struct {
	spool   *spool
	format  rdf.Format
	options rdf.Options
	why     string
	summary rdf.Summary
	errors  []string
	unknown []names.Unknown
}

// importing answers POST and PUT: it takes a place, receives and checks the
// document, and has write do the rest.
func (h *handler) importing(w http.ResponseWriter, r *http.Request, write func(*http.Request, *document, kg.Term) (report, error)) error {
	format, err := bodyFormat(r)
	if err != nil {
		return err
	}
	graph, named, err := h.graph(r)
	if err != nil {
		return err
	}
	limit, why := h.options.MaxBytes, "Import over HTTP"
	if r.Method == http.MethodPut {
		limit, why = h.options.MaxReplaceBytes, "Replace a graph over HTTP"
		if !named {
			return kg.Errorf(kg.CodeInvalid, "PUT replaces one graph and needs ?graph=").At("graph")
		}
	}
	if why, err = justification(r, why); err != nil {
		return err
	}
	owner := throttle.OwnerOf(caller.From(r.Context()))
	if !h.imports.Take(owner, 1) {
		return &kg.Error{Code: kg.CodeOverloaded, Message: "too many imports at one time", RetryAfter: 2 * time.Second}
	}
	defer h.imports.Give(owner, 1)
	doc, err := h.document(w, r, format, graph, limit)
	if err != nil {
		return err
	}
	defer doc.spool.close()
	doc.why = why
	out, err := write(r, doc, graph)
	if err != nil {
		return err
	}
	out.Quads, out.Rejected, out.Errors, out.UnknownNames = doc.summary.Quads, doc.summary.Rejected, doc.errors, doc.unknown
	if n := unknownNames(doc.unknown); n > 0 {
		w.Header().Set(unknownNamesHeader, strconv.FormatUint(n, 10))
	}
	return writeReport(w, out)
}

func (h *handler) document(w http.ResponseWriter, r *http.Request, f rdf.Format, graph kg.Term, limit int64) (*document, error) {
	d := &document{format: f, options: rdf.Options{Graph: graph}}
	if text := r.URL.Query().Get("continueOnError"); text != "" {
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return nil, kg.Errorf(kg.CodeInvalid, "true or false").At("continueOnError")
		}
		d.options.ContinueOnError = yes
	}
	var err error
	if d.spool, err = h.receive(w, r, limit); err != nil {
		return nil, err
	}
	checking := d.options
	checking.Rejected = func(e *rdf.SyntaxError) {
		if len(d.errors) < maxRejectedTold {
			d.errors = append(d.errors, e.Error())
		}
	}
	in, err := d.spool.open()
	census := names.NewCensus(h.Store)
	if err == nil {
		d.summary, err = rdf.Survey(in, f, checking, census.Add)
	}
	if err != nil {
		d.spool.close()
		return nil, err
	}
	d.options.Tag, d.unknown = d.summary.Tag, census.Unknown()
	return d, nil
}

// meta says who imports.
func meta(r *http.Request, why string) kg.Meta {
	c := caller.From(r.Context())
	return kg.Meta{Principal: c.Principal, Actor: c.Actor, Justification: why, Method: r.Method + " /data"}
}

// load adds the document's statements, in as many commits as it takes.
func (h *handler) load(r *http.Request, d *document, _ kg.Term) (report, error) {
	in, err := d.spool.open()
	if err != nil {
		return report{}, err
	}
	loaded, err := h.Store.Load(r.Context(), meta(r, d.why), rdf.Read(in, d.format, d.options), kg.LoadOptions{})
	if err != nil {
		return report{}, err
	}
	behind := h.Store.Head()
	behind.Revision, behind.Index = loaded.Revision, kg.EndOfCommit
	return h.report(loaded.Revision, behind, loaded.Commits, loaded.Statements), nil
}

// replace makes the graph hold the document's statements and no others.
func (h *handler) replace(r *http.Request, d *document, graph kg.Term) (report, error) {
	in, err := d.spool.open()
	if err != nil {
		return report{}, err
	}
	replaced, err := h.Store.ReplaceGraph(r.Context(), meta(r, d.why), graph, rdf.Read(in, d.format, d.options), kg.ReplaceOptions{})
	if err != nil {
		return report{}, err
	}
	out := h.report(replaced.Revision, replaced.Position, replaced.Commits, replaced.Added)
	out.Removed, out.ProposalID = replaced.Removed, replaced.ProposalID
	return out, nil
}

func (h *handler) report(rev kg.Revision, p kg.Position, commits, statements uint64) report {
	out := report{Statements: statements, Commits: commits, Revision: rev, Position: h.Store.FormatPosition(p)}
	if commits > 0 {
		id := h.Store.CommitID(rev)
		out.CommitID = &id
	}
	return out
}

func writeReport(w http.ResponseWriter, out report) error {
	body, err := json.Marshal(out)
	if err != nil {
		return errors.Join(kg.Errorf(kg.CodeInternal, "internal error"), err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(body, '\n'))
	return nil
}

package rdfdata

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"koine/internal/assertions"
	"koine/internal/caller"
	"koine/internal/rdf"
	"koine/kg"
)

// exportGraph handles GET and HEAD.
func (h *handler) exportGraph(w http.ResponseWriter, r *http.Request, t target) error {
	format, err := answerFormat(r, t)
	if err != nil {
		return err
	}
	described, err := describesAssertions(r)
	if err != nil {
		return err
	}
	view, err := h.exportView(r, t)
	if err != nil {
		return err
	}
	snapshot, err := h.Store.View(r.Context(), view)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	// Read the first statement before the response begins, so that an error with it can still be
	// returned as one.
	quads, prefixes := rdf.Export(snapshot), h.Prefixes.Fixed()
	if described {
		quads, prefixes = assertions.Export(snapshot), assertions.WithPrefixes(prefixes)
	}
	next, stop := iter.Pull2(quads)
	defer stop()
	first, err, some := next()
	if err != nil {
		return err
	}
	if !some && t.named && !t.isDefault() && !h.Graphs.Exists(snapshot.View().Principal, t.graph) {
		return kg.Errorf(kg.CodeGraphNotFound, "there is no graph %s", t.graph.Name())
	}
	state, err := h.stateOf(snapshot, t, r.URL.Query().Has("at"), some)
	if err != nil {
		return err
	}
	if described { // access to reasons can change without a change of the graphs
		state = ""
	}
	tag := formatETag(state, format, prefixes, takesGzip(r))
	match, noneMatch := failedConditions(r, true, func(other string) bool { return state != "" && other == tag })
	if match {
		return preconditionFailed()
	}
	if state != "" {
		w.Header().Set("ETag", tag)
	}
	if noneMatch {
		h.describeState(w, snapshot)
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.writeHead(w, r, format, snapshot)
	if r.Method == http.MethodHead {
		return nil
	}
	body := h.bodyWriter(w, r)
	out := rdf.NewWriter(body, format, rdf.WriteOptions{Prefixes: prefixes})
	for q := first; some; q, err, some = next() {
		if err == nil {
			err = out.Write(q)
		}
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, r.Context().Err()); err == nil {
		err = errors.Join(out.Close(), body.Close())
	}
	if err != nil {
		// A partial document must not look complete.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// exportView returns the view of an export by ?graph=, ?at= (a revision or a time) and
// ?minCertainty=.
func (h *handler) exportView(r *http.Request, t target) (kg.View, error) {
	c := caller.From(r.Context())
	v := kg.View{Principal: c.Principal}
	if t.named {
		v.Graphs = []kg.Term{t.graph}
	}
	query := r.URL.Query()
	if at := query.Get("at"); at != "" {
		var err error
		if v.At, err = h.parseRevision(r, at); err != nil {
			return v, err
		}
	}
	if text := query.Get("minCertainty"); text != "" {
		var err error
		if v.MinCertainty, err = strconv.ParseFloat(text, 64); err != nil {
			return v, kg.Errorf(kg.CodeInvalid, "minCertainty must be a number between 0 and 1").At("minCertainty")
		}
	}
	return v, v.Valid()
}

func (h *handler) parseRevision(r *http.Request, text string) (kg.Revision, error) {
	m, err := kg.ParseMoment(text)
	if err != nil {
		return 0, kg.AsError(err).At("at")
	}
	n, err := h.Store.ReadableAt(r.Context(), m)
	if err != nil {
		return 0, kg.AsError(err).At("at")
	}
	return n, nil
}

func (h *handler) writeHead(w http.ResponseWriter, r *http.Request, f rdf.Format, s *kg.Snapshot) {
	header := w.Header()
	contentType := f.MediaType()
	if f == rdf.Turtle {
		contentType += "; charset=utf-8" // the default charset of text/* is not UTF-8
	}
	header.Set("Content-Type", contentType)
	h.describeState(w, s)
	header.Set("Content-Disposition", `inline; filename="koine.`+f.Extension()+`"`)
	if takesGzip(r) {
		header.Set("Content-Encoding", "gzip")
	}
}

// describeState sets the headers that describe the content.
func (h *handler) describeState(w http.ResponseWriter, s *kg.Snapshot) {
	header := w.Header()
	header.Add("Vary", "Accept, Accept-Encoding")
	header.Set("Cache-Control", "private, no-cache") // revalidate with the ETag
	header.Set("Koine-Revision", strconv.FormatUint(uint64(s.Revision()), 10))
	header.Set("Koine-Position", h.Store.FormatPosition(s.Position()))
}

// bodyWriter returns the writer of the document, compressed if the client accepts that.
// The server limits the time for which a client may stall.
func (h *handler) bodyWriter(w http.ResponseWriter, r *http.Request) io.WriteCloser {
	if !takesGzip(r) {
		return plainBody{w}
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}

type plainBody struct{ io.Writer }

func (plainBody) Close() error { return nil }

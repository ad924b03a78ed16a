package rdfdata

import (
	"net/http"
	"net/url"
	"strings"

	"koine/internal/caller"
	"koine/kg"
)

// target is the resource of a request.
type target struct {
	graph kg.Term
	// named reports that the request names the graph; otherwise the target is the store.
	named bool
	// made reports that the graph's name was generated for this request.
	made bool
}

// isDefault reports whether the target is the default graph, which always exists.
func (t target) isDefault() bool { return t.named && t.graph == kg.DefaultGraph }

// parseTarget parses ?graph=, which is an IRI, a registered prefix:name, a blank node as
// _:label, or "default", and ?default.
func (h *handler) parseTarget(r *http.Request) (target, error) {
	query := r.URL.Query()
	graphs, defaults := query["graph"], query["default"]
	switch {
	case len(graphs)+len(defaults) > 1:
		return target{}, kg.Errorf(kg.CodeInvalid, "graph must be given once").At("graph")
	case len(defaults) == 1:
		if defaults[0] != "" {
			return target{}, kg.Errorf(kg.CodeInvalid, "default must not have a value: ?default selects the default graph").At("default")
		}
		return target{graph: kg.DefaultGraph, named: true}, nil
	case len(graphs) == 0:
		return target{graph: kg.DefaultGraph}, nil
	case strings.EqualFold(graphs[0], "default"):
		return target{graph: kg.DefaultGraph, named: true}, nil
	}
	graph, err := h.Prefixes.Resource(graphs[0])
	if err != nil {
		return target{}, kg.AsError(err).At("graph")
	}
	return target{graph: graph, named: true}, nil
}

// newGraph returns a graph with a generated name that the caller may write to, for a
// document that is sent to the store and cannot name graphs itself (Graph Store Protocol,
// section 5.5).
func (h *handler) newGraph(r *http.Request) (target, error) {
	name, ok := h.Graphs.NewName(caller.From(r.Context()).Principal)
	if !ok {
		e := kg.Errorf(kg.CodePermissionDenied, "permission to create a graph by sending a document to the store is missing").At("graph")
		e.Hint = "Select the graph with ?graph=IRI, or ?default for the default graph."
		return target{}, e
	}
	return target{graph: name, named: true, made: true}, nil
}

// baseIRI returns the base IRI for the relative IRIs of a document (RFC 3986, section
// 5.1): Content-Location, else the graph that the request names, else the request's own
// IRI.
func (h *handler) baseIRI(r *http.Request, t target) (string, error) {
	own := h.requestIRI(r)
	if text := r.Header.Get("Content-Location"); text != "" {
		location, err := url.Parse(text)
		if err != nil {
			return "", kg.Errorf(kg.CodeInvalid, "the Content-Location is invalid: %v", err)
		}
		if location.IsAbs() {
			return text, nil
		}
		return own.ResolveReference(location).String(), nil
	}
	if t.named && t.graph.Kind() == kg.KindIRI {
		return t.graph.Value(), nil
	}
	return own.String(), nil
}

// requestIRI returns the request's IRI as clients know it.
func (h *handler) requestIRI(r *http.Request) *url.URL {
	own := &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	if r.TLS != nil {
		own.Scheme = "https"
	}
	if public, err := url.Parse(h.options.PublicURL); err == nil && public.Host != "" {
		own.Scheme, own.Host, own.Path = public.Scheme, public.Host, strings.TrimSuffix(public.Path, "/")+own.Path
	}
	return own
}

// headerIRI returns a graph's IRI in the form for a header (RFC 3987, section 3.1).
func headerIRI(graph kg.Term) string {
	var b strings.Builder
	for _, c := range []byte(graph.Name()) {
		if c > ' ' && c < 0x7f {
			b.WriteByte(c)
			continue
		}
		const digits = "0123456789ABCDEF"
		b.WriteString(string([]byte{'%', digits[c>>4], digits[c&15]}))
	}
	return b.String()
}

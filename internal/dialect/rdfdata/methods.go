package rdfdata

import (
	"mime"
	"net/http"
	"strings"

	"koine/internal/rdf"
)

// Path is the URL path of the store.
const Path = "/data"

// methods are the methods of the store and of its graphs.
const methods = "GET, HEAD, POST, PUT, DELETE, OPTIONS"

// describeMethods handles OPTIONS.
func (h *handler) describeMethods(w http.ResponseWriter) {
	w.Header().Set("Allow", methods)
	w.Header().Set("Accept-Post", mediaTypes(rdf.ReadFormats))
	w.WriteHeader(http.StatusNoContent)
}

// checkSupported rejects features of the protocol that koine lacks, by name, and unknown methods.
func (h *handler) checkSupported(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != Path {
		return notImplemented("direct graph identification is not supported").
			withHint("Select the graph with ?graph=IRI, or ?default for the default graph.")
	}
	switch r.Method {
	case http.MethodOptions, http.MethodGet, http.MethodHead, http.MethodDelete:
		return nil
	case http.MethodPost, http.MethodPut:
		if mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mediaType == "multipart/form-data" {
			return notImplemented("multipart/form-data is not supported").
				withHint("Send each document in a separate request with its own Content-Type.")
		}
		return nil
	case http.MethodPatch:
		return notImplemented("PATCH is not supported").
			withHint("Change single statements with the mutation applyPatches or the method knowledge/update, or replace the graph with PUT.")
	}
	w.Header().Set("Allow", methods)
	return refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "method %s is not allowed; use %s", clipText(r.Method), methods)
}

func notImplemented(text string) *refusal {
	return refuse(http.StatusNotImplemented, "NOT_IMPLEMENTED", "%s", text)
}

func mediaTypes(formats []rdf.Format) string {
	var types []string
	for _, f := range formats {
		types = append(types, f.MediaType())
	}
	return strings.Join(types, ", ")
}

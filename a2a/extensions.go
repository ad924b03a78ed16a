package a2a

import (
	"net/http"
	"slices"
	"strings"
)

// The headers for requested and active extensions: A2A 1.0's, and that of 0.3.
const (
	extensionsHeader   = "A2A-Extensions"
	extensionsHeader03 = "X-A2A-Extensions"
)

// setActiveExtensions sets the header of active extensions (docs/reference/a2a.md): those that the client
// requested and the handler supports, and those of the called methods. Unknown ones are
// ignored.
func (h *Handler) setActiveExtensions(w http.ResponseWriter, r *http.Request, requests ...request) {
	name := extensionsHeader
	asked := r.Header.Values(extensionsHeader)
	if len(asked) == 0 {
		if asked = r.Header.Values(extensionsHeader03); len(asked) > 0 {
			name = extensionsHeader03
		}
	}
	if len(asked) == 0 && len(requests) == 0 {
		return
	}
	var active []string
	add := func(uri string) {
		if h.hasExtension(uri) && !slices.Contains(active, uri) {
			active = append(active, uri)
		}
	}
	for _, list := range asked {
		for uri := range strings.SplitSeq(list, ",") {
			add(strings.TrimSpace(uri))
		}
	}
	for i := range requests {
		add(extensionOf(requests[i].method))
	}
	if len(active) > 0 {
		w.Header().Set(name, strings.Join(active, ", "))
	}
}

// hasExtension reports whether the handler has the methods of an extension.
func (h *Handler) hasExtension(uri string) bool {
	switch uri {
	case KnowledgeExtensionURI:
		return h.table["knowledge/query"].unary != nil
	case ChannelsExtensionURI:
		return h.table["channels/create"].unary != nil
	}
	return false
}

// extensionOf returns the extension of a method, "" for none.
func extensionOf(method string) string {
	switch family, _, _ := strings.Cut(method, "/"); family {
	case "knowledge":
		return KnowledgeExtensionURI
	case "channels":
		return ChannelsExtensionURI
	}
	return ""
}

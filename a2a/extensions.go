package a2a

import (
	"net/http"
	"slices"
	"strings"
)

// The headers in which a client says which extensions it wants, and the server which
// are active: A2A 1.0's, and that of 0.3.
const (
	extensionsHeader   = "A2A-Extensions"
	extensionsHeader03 = "X-A2A-Extensions"
)

// activate says which extensions are active in an answer (WIRE §8): those that were
// asked for and are known here, and those whose methods are called. What is unknown
// is left out of account.
func (h *Handler) activate(w http.ResponseWriter, r *http.Request, requests ...request) {
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
		if h.knows(uri) && !slices.Contains(active, uri) {
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

// knows tells whether the handler has the methods of an extension.
func (h *Handler) knows(uri string) bool {
	switch uri {
	case KnowledgeExtensionURI:
		return h.table["knowledge/query"].unary != nil
	case ChannelsExtensionURI:
		return h.table["channels/create"].unary != nil
	}
	return false
}

// extensionOf is the extension that a method is of, "" for none.
func extensionOf(method string) string {
	switch family, _, _ := strings.Cut(method, "/"); family {
	case "knowledge":
		return KnowledgeExtensionURI
	case "channels":
		return ChannelsExtensionURI
	}
	return ""
}

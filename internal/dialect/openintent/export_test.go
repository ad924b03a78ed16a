package openintent

// Routes returns the patterns of the routes, those of streams included.
func (h *Handler) Routes() (out []string) {
	for pattern := range h.table() {
		out = append(out, pattern)
	}
	for pattern := range h.streams() {
		out = append(out, pattern)
	}
	return out
}

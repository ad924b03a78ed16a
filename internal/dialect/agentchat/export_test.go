package agentchat

// Routes returns the patterns of the routes, without that of sockets.
func (h *Handler) Routes() (out []string) {
	for pattern := range h.calls() {
		out = append(out, pattern)
	}
	return out
}

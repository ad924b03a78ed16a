package modelcontext

// ExpireSessions ends the sessions that are idle, as SessionIdle does.
func (h *Handler) ExpireSessions() {
	h.sessions.mu.Lock()
	var list []*session
	for _, s := range h.sessions.byID {
		if s.idle == nil || !s.idle.Stop() {
			panic("a session without a request has no timer")
		}
		list = append(list, s)
	}
	h.sessions.mu.Unlock()
	for _, s := range list {
		h.sessions.expireSession(s)
	}
}

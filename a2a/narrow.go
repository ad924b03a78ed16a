package a2a

import (
	"bytes"
	"net/http"

	"koine/internal/caller"
	"koine/internal/sse"
)

// narrowRequest restricts the request to the rights of metadata.securityToken, a further
// credential that can only narrow (docs/reference/http.md). The returned request ends with that
// credential; the caller must call leave after the answer. The token is not stored.
func (h *Handler) narrowRequest(r *http.Request, req *request) (narrow *http.Request, leave func(), err error) {
	leave = func() {}
	if h.options.Narrow == nil || !mayHaveToken(req.params) {
		return r, leave, nil
	}
	f := new(failure)
	params := readParams(f, req.params)
	metadata, _ := params.readMember("metadata")
	token, present := metadata.readText("securityToken")
	if err := f.firstError(); err != nil || !present {
		return r, leave, err
	}
	ctx, cancel := sse.WithEnd(r.Context())
	who, release, err := h.options.Narrow(ctx, caller.From(ctx), token, cancel)
	if err != nil {
		cancel(nil)
		return r, leave, err
	}
	return r.WithContext(caller.With(ctx, who)), func() { release(); cancel(nil) }, nil
}

// mayHaveToken is a quick check that most params contain no token. An escape may hide
// the name.
func mayHaveToken(params []byte) bool {
	return bytes.Contains(params, []byte("securityToken")) || bytes.Contains(params, []byte(`\u`))
}

package a2a

import (
	"bytes"
	"context"
	"net/http"

	"koine/internal/caller"
)

// narrowed is the request with what is left of its caller's rights under
// metadata.securityToken, a further credential that can only narrow (WIRE §1). It
// ends when that credential does; leave is called when it was answered. The token
// is kept nowhere.
func (h *Handler) narrowed(r *http.Request, req *request) (narrow *http.Request, leave func(), err error) {
	leave = func() {}
	if h.options.Narrow == nil || !mayHaveToken(req.params) {
		return r, leave, nil
	}
	f := new(failure)
	params := readParams(f, req.params)
	metadata, _ := params.object("metadata")
	token, said := metadata.text("securityToken")
	if err := f.error(); err != nil || !said {
		return r, leave, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	who, release, err := h.options.Narrow(ctx, caller.From(ctx), token, cancel)
	if err != nil {
		cancel(nil)
		return r, leave, err
	}
	return r.WithContext(caller.With(ctx, who)), func() { release(); cancel(nil) }, nil
}

// mayHaveToken tells quickly of most params that there is no token in them. An
// escape may hide the name.
func mayHaveToken(params []byte) bool {
	return bytes.Contains(params, []byte("securityToken")) || bytes.Contains(params, []byte(`\u`))
}

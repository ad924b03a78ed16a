package httpd

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
	"koine/kg"
)

// A browser's EventSource cannot send headers, so a page with a credential exchanges it
// for a stream token, which it puts into an address: the token opens one stream, once,
// within a minute, and is invalid when the credential is. The server removes it from
// the address before anything else sees the request, so that no log, trace or handler
// has it, and stores only its hash.

// StreamTokenPath is the path that creates stream tokens, by POST of {"url":
// "/changes?…"}.
const StreamTokenPath = "/stream-token"

// StreamTokenParameter is the query parameter with a stream token.
const StreamTokenParameter = "streamToken"

// Limits of stream tokens.
const (
	StreamTokenLifetime = time.Minute
	// MaxStreamTokens bounds the unused tokens. A caller may have half of the free
	// places.
	MaxStreamTokens = 10_000
	// MaxStreamURLBytes bounds the address of a token.
	MaxStreamURLBytes = 32 << 10
)

// streamTokens holds the unused tokens. It is safe for concurrent use.
type streamTokens struct {
	places *throttle.Pool

	mu     sync.Mutex // guards byHash
	byHash map[[sha256.Size]byte]*streamToken
}

type streamToken struct {
	target     string // path and query, as targetOf writes them
	credential string
	caller     caller.Caller
	expiry     *time.Timer
}

func newStreamTokens(size int64) *streamTokens {
	return &streamTokens{places: throttle.NewPool(size), byHash: map[[sha256.Size]byte]*streamToken{}}
}

// HandleStream lets a stream token open a GET stream on the pattern, which must have a route.
func (s *Server) HandleStream(pattern string) { s.routes[pattern].streamed = true }

// targetOf normalizes an address, so that equivalent spellings compare equal.
func targetOf(u *url.URL) (string, bool) {
	query, err := url.ParseQuery(u.RawQuery)
	return u.Path + "?" + query.Encode(), err == nil
}

// serveStreamToken creates a token for the caller.
func (s *Server) serveStreamToken(w http.ResponseWriter, r *http.Request) {
	by := caller.From(r.Context())
	target, u, refused := s.readStreamURL(r)
	if refused != nil {
		s.writeRefusal(w, r, by, refused)
		return
	}
	credential, refused := credentialOf(r.Header)
	if refused != nil {
		s.writeRefusal(w, r, by, refused)
		return
	}
	text, ok := s.tokens.addToken(&streamToken{target: target, credential: credential, caller: by})
	if !ok {
		s.writeRefusal(w, r, by, tooManyStreamTokens)
		return
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += StreamTokenParameter + "=" + text
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusCreated, struct {
		Token       string `json:"token"`
		URL         string `json:"url"`
		ExpiresInMs int64  `json:"expiresInMs"`
	}{text, u.RequestURI(), StreamTokenLifetime.Milliseconds()})
}

// readStreamURL reads the stream that a token is for.
func (s *Server) readStreamURL(r *http.Request) (target string, u *url.URL, refused *refusal) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", nil, badStreamURL("the content type must be application/json")
	}
	var body struct {
		URL string `json:"url"`
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, MaxStreamURLBytes+1))
	if err != nil || len(raw) > MaxStreamURLBytes || json.Unmarshal(raw, &body) != nil || body.URL == "" {
		return "", nil, badStreamURL(`the body must be {"url": "/changes?…"}, the path and the query of a stream`)
	}
	u, err = url.Parse(body.URL)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Fragment != "" {
		return "", nil, badStreamURL("url must be a path of this server with a query")
	}
	_, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: u, Host: r.Host})
	target, valid := targetOf(u)
	if !s.routeOf(pattern).streamed || !valid || u.Query().Has(StreamTokenParameter) {
		return "", nil, badStreamURL("url must be a stream that accepts stream tokens: /changes or /graphql")
	}
	return target, u, nil
}

// addToken stores a token until it is used or expires. It returns false if its caller has no
// share left.
func (all *streamTokens) addToken(t *streamToken) (text string, ok bool) {
	if !all.places.Acquire(throttle.OwnerOf(t.caller), 1) {
		return "", false
	}
	text = "st_" + rand.Text()
	hash := sha256.Sum256([]byte(text))
	all.mu.Lock()
	defer all.mu.Unlock()
	all.byHash[hash] = t
	t.expiry = time.AfterFunc(StreamTokenLifetime, func() { all.removeToken(hash) })
	return text, true
}

// removeToken removes a token and returns it; nil if there is none.
func (all *streamTokens) removeToken(hash [sha256.Size]byte) *streamToken {
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.byHash[hash]
	if t == nil {
		return nil
	}
	delete(all.byHash, hash)
	t.expiry.Stop()
	all.places.Release(throttle.OwnerOf(t.caller), 1)
	return t
}

type streamTokenKey struct{}

// hideStreamToken removes a stream token from the address of a request.
func hideStreamToken(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.RawQuery, "oken") && !strings.Contains(r.URL.RawQuery, "%") {
		return r
	}
	var rest []string
	token, found := "", false
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil && plain == StreamTokenParameter {
			token, found = value, true
			continue
		}
		rest = append(rest, part)
	}
	if !found {
		return r
	}
	r.URL.RawQuery = strings.Join(rest, "&")
	r.RequestURI = r.URL.RequestURI()
	return r.WithContext(context.WithValue(r.Context(), streamTokenKey{}, token))
}

// redeemToken consumes the stream token of a request. It returns nil without a refusal if
// there is none.
func (s *Server) redeemToken(r *http.Request, pattern string) (*streamToken, *refusal) {
	text, present := r.Context().Value(streamTokenKey{}).(string)
	if !present {
		return nil, nil
	}
	t := s.tokens.removeToken(sha256.Sum256([]byte(text))) // consumed even if the request is refused
	target, valid := targetOf(r.URL)
	if t == nil || !s.routeOf(pattern).streamed || r.Method != http.MethodGet || !valid || t.target != target ||
		!strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/event-stream") {
		return nil, badStreamToken
	}
	// The creator of the token could send headers, so this is not a cross-site request
	// without a preflight.
	r.Header.Set("GraphQL-Require-Preflight", "1")
	return t, nil
}

// authenticateToken authenticates the token's credential again.
func (s *Server) authenticateToken(ctx context.Context, t *streamToken, by *caller.Caller) (context.Context, func(), *refusal) {
	ctx, leave, refused := s.authenticateCredential(ctx, t.credential, by)
	if refused != nil {
		return nil, nil, refused
	}
	if by.Principal.ID != t.caller.Principal.ID {
		leave()
		return nil, nil, badStreamToken
	}
	if t.caller.Actor != "" && !by.Principal.MayActFor(t.caller.Actor) {
		leave()
		return nil, nil, sourceForbidden
	}
	by.Actor = t.caller.Actor
	return ctx, leave, nil
}

var (
	badStreamToken = &refusal{status: http.StatusUnauthorized, rpc: rpcPermissionDenied, reason: string(kg.CodeUnauthenticated),
		message: "the stream token was used, has expired, or is for another stream", challenge: challenge + `, error="invalid_token"`,
		hint: "Create another one with POST " + StreamTokenPath + "; it opens one stream, once, within a minute."}
	tooManyStreamTokens = &refusal{status: http.StatusTooManyRequests, rpc: rpcRateLimit, reason: string(kg.CodeRateLimited),
		message: "the caller has too many unused stream tokens", hint: "Use them, or wait until they expire.", retry: int(StreamTokenLifetime / time.Second)}
)

func badStreamURL(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, rpc: rpcInvalidRequest, reason: string(kg.CodeInvalid), message: message}
}

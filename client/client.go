package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Defaults and bounds.
const (
	// DefaultMinWait and DefaultMaxWait bound the wait before a retry. The wait doubles
	// each time, and half of it is random.
	DefaultMinWait = 250 * time.Millisecond
	DefaultMaxWait = 30 * time.Second
	// DefaultAttempts is the number of consecutive failed attempts before giving up.
	DefaultAttempts = 10
	// MaxResponseBytes is the largest response that the client reads.
	MaxResponseBytes = 256 << 20
)

// Options configure a client. The zero value makes an anonymous client for a server in
// open mode.
type Options struct {
	// Key is an API key or a token, sent as "Authorization: Bearer". It is sent only to
	// the address that was opened, never to other hosts named in the agent card.
	Key string
	// Agent is the agent that requests act for (X-Agent-ID): in open mode any name, and
	// with a key an agent that the key may act for.
	Agent string
	// Requires lists the capabilities that Open checks. All others are checked when a
	// method needs them.
	Requires []Capability
	// UserAgent is the User-Agent header. "" is "koine-client".
	UserAgent string
	// HTTP sends the requests, for custom certificates, a proxy, or connection limits.
	// Its Timeout ends streams too, so bound calls by their contexts instead. Redirects
	// are not followed. Nil uses a new client.
	HTTP *http.Client
	// CACert is a PEM file of certificate authorities to trust in addition to those of
	// the system. It cannot be combined with HTTP, which has a TLS configuration of its
	// own.
	CACert string
	// Retry bounds retries.
	Retry Retry
}

// Retry bounds the retries after a lost stream, after a call with an unknown outcome, and
// while a server is busy. Zero fields are the defaults.
type Retry struct {
	MinWait, MaxWait time.Duration
	// Attempts is the number of consecutive failed attempts after which the last error
	// is returned. -1 retries until the context is done.
	Attempts int
	// FailFast is for interactive programs. Calls are not retried, a stream reconnects only
	// after it was established once, and no idempotency keys are generated.
	FailFast bool
	// OnRetry, if set, is called before each wait. It must not block.
	OnRetry func(err error, wait time.Duration)
}

// Client is a connection to one agent. It is safe for concurrent use, and need not be
// closed.
type Client struct {
	base         string // the address that was opened, without a trailing slash
	origin       string // the origin of all requests, without a trailing slash
	rpc          string // the URL for JSON-RPC
	deduplicates bool   // the agent is koine or behind its hub, and deduplicates messages by id
	card         *Card
	http         *http.Client // sends the headers of the options
	retry        Retry
}

// Open reads the agent card at the address and returns a client for the agent. It fails
// with CapabilityMissing if the card lacks a required capability, and with Invalid if the
// address is not an HTTP URL. The scheme defaults to http. Open does not retry, so that
// an unreachable server is reported at once.
//
// All requests go to the host of the address. Only the path of the URLs in the card is
// used, so that a card cannot redirect credentials to another host.
func Open(ctx context.Context, address string, o Options) (*Client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, &Error{Reason: Invalid, Message: fmt.Sprintf("%q is not an HTTP address: pass http://HOST:PORT", address)}
	}
	own, err := newHTTPClient(o)
	if err != nil {
		return nil, err
	}
	c := &Client{origin: at.Scheme + "://" + at.Host, http: own, retry: o.Retry.withDefaults()}
	c.base = c.origin + strings.TrimRight(at.EscapedPath(), "/")
	if c.card, err = c.fetchCard(ctx); err != nil {
		return nil, err
	}
	if c.rpc, err = c.card.rpcEndpoint(c.origin); err != nil {
		return nil, err
	}
	c.deduplicates = c.card.hasExtension(knowledgeURI)
	var missing []error
	for _, capability := range o.Requires {
		missing = append(missing, c.requireCapability(capability))
	}
	if err := errors.Join(missing...); err != nil {
		return nil, err
	}
	return c, nil
}

// Address returns the address that was opened, with its scheme and without a trailing
// slash.
func (c *Client) Address() string { return c.base }

// Card returns the agent card that Open read. The caller must not change it.
func (c *Client) Card() *Card { return c.card }

func (r Retry) withDefaults() Retry {
	if r.MinWait <= 0 {
		r.MinWait = DefaultMinWait
	}
	if r.MaxWait <= 0 {
		r.MaxWait = DefaultMaxWait
	}
	if r.Attempts == 0 {
		r.Attempts = DefaultAttempts
	}
	return r
}

// newHTTPClient returns the HTTP client of the options with the headers for authentication. It
// does not follow redirects, which could carry credentials to another host.
func newHTTPClient(o Options) (*http.Client, error) {
	own := &http.Client{}
	switch {
	case o.HTTP != nil && o.CACert != "":
		return nil, &Error{Reason: Invalid, Message: "CACert and HTTP are mutually exclusive: configure the certificate authorities in HTTP"}
	case o.HTTP != nil:
		*own = *o.HTTP
	case o.CACert != "":
		trust, err := TrustAuthorities(o.CACert)
		if err != nil {
			return nil, &Error{Reason: Invalid, Message: err.Error()}
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = trust
		own.Transport = transport
	}
	header := http.Header{"User-Agent": {cmp.Or(o.UserAgent, "koine-client")}}
	if o.Agent != "" {
		header.Set("X-Agent-ID", o.Agent)
	}
	if o.Key != "" {
		header.Set("Authorization", "Bearer "+o.Key)
	}
	next := own.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	own.Transport = &headerTransport{next, header}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return own, nil
}

// headerTransport adds headers to each request, as http.RoundTripper.
type headerTransport struct {
	next   http.RoundTripper
	header http.Header
}

// CloseIdleConnections closes the idle connections of the underlying transport. An
// http.Client calls it.
func (h *headerTransport) CloseIdleConnections() {
	if next, ok := h.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// RoundTrip sends a copy of the request with the headers added.
func (h *headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range h.header {
		r.Header[name] = values
	}
	return h.next.RoundTrip(r)
}

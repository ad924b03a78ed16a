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
	// DefaultMinWait and DefaultMaxWait bound the wait before something is tried
	// again. It doubles each time, and half of it is random.
	DefaultMinWait = 250 * time.Millisecond
	DefaultMaxWait = 30 * time.Second
	// DefaultAttempts is how often in a row something is tried in vain.
	DefaultAttempts = 10
	// MaxResponseBytes is how much is read of one answer.
	MaxResponseBytes = 256 << 20
)

// Options are those of a client. The zero value is an anonymous one, for a server
// in open mode.
type Options struct {
	// Key is an API key or a token, sent as "Authorization: Bearer". It goes to
	// the address that was opened only, whatever the agent card says.
	Key string
	// Agent is in whose name requests are made (X-Agent-ID): in open mode any
	// name; with a key, an agent that the key may act for.
	Agent string
	// Requires are the capabilities without which Open refuses. What is not
	// required is asked for when it is used.
	Requires []Capability
	// UserAgent says which program asks; "" is that of this package.
	UserAgent string
	// HTTP sends the requests: for certificates of one's own, a proxy, or bounds on
	// connections. A Timeout of it ends streams too; better, the context says how long
	// a call may take. Redirections are not followed. Without one there is a
	// client of its own.
	HTTP *http.Client
	// CACert is a PEM file of authorities whose certificates are trusted beside those
	// of the system's. With HTTP, that client is the one that knows whom to trust, and
	// Open refuses both.
	CACert string
	// Retry says how often and how patiently something is tried again.
	Retry Retry
}

// Retry bounds how something is tried again: a stream that was lost, an update or
// message of which nobody knows whether it arrived, a server that is busy. Zero
// fields are the defaults.
type Retry struct {
	MinWait, MaxWait time.Duration
	// Attempts in a row without success, after which the last error is given.
	// -1: no bound but the context.
	Attempts int
	// FailFast is for programs that a person waits for. A call is made once, and a
	// stream is only connected again after there was one; no idempotency keys are made
	// up.
	FailFast bool
	// OnRetry, if set, is told before each wait. It must not block.
	OnRetry func(err error, wait time.Duration)
}

// Client talks to one agent.
type Client struct {
	base         string // the address that was opened, without a slash at its end
	origin       string // of all requests, without a slash at its end
	rpc          string // where JSON-RPC goes
	deduplicates bool   // it is an agent of koine's, behind the hub too: the same message is taken once
	card         *Card
	http         *http.Client // sets the headers
	retry        Retry
}

// Open asks the agent at the address for its card, and refuses with
// CapabilityMissing if that lacks what is required. An address without a scheme is
// http; one that is none is Invalid. It asks once: that nobody is there is told at once.
//
// All requests go to the host of the address. Of what the card says of addresses
// only the path is believed, so that a credential is not led elsewhere.
func Open(ctx context.Context, address string, o Options) (*Client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, &Error{Reason: Invalid, Message: fmt.Sprintf("%q is no address of an http server", address)}
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

// Address is the one that was opened, with its scheme and without a slash at its end.
func (c *Client) Address() string { return c.base }

// Card is the agent card as it was when the client was opened. It must not be
// changed.
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

// newHTTPClient is the HTTP client of the options, which also says who is calling. It
// follows no redirection: that could lead a credential elsewhere.
func newHTTPClient(o Options) (*http.Client, error) {
	own := &http.Client{}
	switch {
	case o.HTTP != nil && o.CACert != "":
		return nil, &Error{Reason: Invalid, Message: "CACert is for a client without one of HTTP, which has to trust the authorities itself"}
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

// headerTransport adds headers to each request.
type headerTransport struct {
	next   http.RoundTripper
	header http.Header
}

// CloseIdleConnections lets an http.Client close what nobody uses.
func (h *headerTransport) CloseIdleConnections() {
	if next, ok := h.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// RoundTrip leaves the request as it is and sends a copy.
func (h *headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range h.header {
		r.Header[name] = values
	}
	return h.next.RoundTrip(r)
}

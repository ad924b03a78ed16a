package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/buildinfo"
)

// ServerFlags holds the flags that select a server and the caller's identity.
type ServerFlags struct {
	URL string `help:"Server to work on (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	CAFlag
	CallerFlags
}

// RequestTimeout bounds a short request, and the time until a stream begins.
const RequestTimeout = 60 * time.Second

// MaxAnswerBytes bounds an answer held in memory; exports stream.
const MaxAnswerBytes = client.MaxResponseBytes

// OpenClient connects to the server with requestTimeout for each request.
func (s *ServerFlags) OpenClient(ctx context.Context) (*client.Client, error) {
	return s.openWith(ctx, RequestTimeout, nil, nil)
}

// OpenUnbounded connects without a timeout, for uploads and exports.
func (s *ServerFlags) OpenUnbounded(ctx context.Context) (*client.Client, error) {
	return s.openWith(ctx, 0, nil, nil)
}

// OpenStream connects for a stream. A stream that loses its connection resumes after its last
// event.
func (s *ServerFlags) OpenStream(ctx context.Context, t Terminal) (*client.Client, error) {
	return s.openWith(ctx, 0, func(h *http.Transport) { h.ResponseHeaderTimeout = RequestTimeout }, func(cause error, wait time.Duration) {
		var refused *client.Error
		if errors.As(cause, &refused) && refused.Reason == "RESYNC" {
			t.Notef("the statements shown may be outdated (%s); rereading them in %s", refused.Message, wait.Round(time.Millisecond))
			return
		}
		t.Notef("connection lost (%v); reconnecting in %s", cause, wait.Round(time.Millisecond))
	})
}

// openWith connects to the server; timeout bounds each request including its answer (0: no
// limit).
func (s *ServerFlags) openWith(ctx context.Context, timeout time.Duration, adjust func(*http.Transport), lost func(error, time.Duration)) (*client.Client, error) {
	transport, err := s.NewTransport()
	if err != nil {
		return nil, err
	}
	if adjust != nil {
		adjust(transport)
	}
	c, err := client.Open(ctx, s.ServerURL(), client.Options{
		Agent: s.As, Key: s.Key, UserAgent: UserAgent(), HTTP: &http.Client{Transport: transport, Timeout: timeout}, Retry: client.Retry{FailFast: true, OnRetry: lost},
	})
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, client.Invalid):
		return nil, AsUsage(err)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, new(*url.Error)):
		return nil, s.UnreachableError(err)
	case strings.Contains(err.Error(), plainHTTPAnswer):
		return nil, WithCode(fmt.Errorf("the server at %s requires HTTPS: use a URL that begins with https://", s.ServerURL()), ExitUnreachable)
	}
	return nil, err
}

func (s *ServerFlags) ServerURL() string { return cmp.Or(s.URL, DefaultURL) }

func UserAgent() string { return "koine/" + buildinfo.Version() }

// UnreachableError explains why a server does not answer.
func (s *ServerFlags) UnreachableError(err error) error {
	format, hint := explainUnreachable(err)
	if hint != "" {
		hint = "\n" + hint
	}
	return WithCode(fmt.Errorf(format+": %w%s", s.ServerURL(), err, hint), ExitUnreachable)
}

// StreamError explains the error that ended a stream.
func (s *ServerFlags) StreamError(err error) error {
	if errors.As(err, new(*client.Error)) {
		return err
	}
	return s.UnreachableError(err)
}

// CAFlag names certificate authorities to trust beside the system's.
type CAFlag struct {
	CACert string `help:"PEM file with certificate authorities to trust in addition to the system's." name:"cacert" placeholder:"FILE" type:"path" env:"KOINE_CACERT"`
}

// NewTransport returns a transport that trusts the system's authorities and those of the
// flag.
func (f CAFlag) NewTransport() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // exports set Accept-Encoding themselves
	if f.CACert == "" {
		return t, nil
	}
	var err error
	if t.TLSClientConfig, err = client.TrustAuthorities(f.CACert); err != nil {
		return nil, Usagef("--cacert: %w", err)
	}
	return t, nil
}

// plainHTTPAnswer is the answer of a Go TLS server to plain HTTP.
const plainHTTPAnswer = "Client sent an HTTP request to an HTTPS server"

// explainUnreachable explains a failed connection. format takes the address; hint is "" if there
// is no known remedy.
func explainUnreachable(err error) (format, hint string) {
	var (
		unknown *x509.UnknownAuthorityError
		byValue x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		trust   *tls.CertificateVerificationError
		dns     *net.DNSError
	)
	switch {
	case errors.As(err, &byValue), errors.As(err, &unknown):
		return "the certificate of the server at %s is not trusted", "If it was issued by your own authority, pass that authority's certificate with --cacert FILE or KOINE_CACERT."
	case errors.As(err, &name):
		return "the certificate of the server at %s is for another host name", "Use a host name that the certificate contains."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return "the certificate of the server at %s is not valid yet", "It is valid from " + invalid.Cert.NotBefore.UTC().Format(time.RFC3339) + ": check the clock of this machine."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of the server at %s has expired", "It was valid until " + invalid.Cert.NotAfter.UTC().Format(time.RFC3339) + ": renew it, or check the clock of this machine."
	case errors.As(err, &trust):
		return "the certificate of the server at %s is not trusted", ""
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the server at %s does not support HTTPS", "Use a URL that begins with http://."
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host of %s is unknown", "Check --url or KOINE_URL."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "no server responds at %s", "Start one with: koine serve --demo"
	}
	return "no server responds at %s", ""
}

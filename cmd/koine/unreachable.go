package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"koine/client"
)

// caFlag names certificate authorities to trust beside the system's.
type caFlag struct {
	CACert string `help:"PEM file with certificate authorities to trust in addition to the system's." name:"cacert" placeholder:"FILE" type:"path" env:"KOINE_CACERT"`
}

// newTransport returns a transport that trusts the system's authorities and those of the
// flag.
func (f caFlag) newTransport() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // exports set Accept-Encoding themselves
	if f.CACert == "" {
		return t, nil
	}
	var err error
	if t.TLSClientConfig, err = client.TrustAuthorities(f.CACert); err != nil {
		return nil, usageError{fmt.Errorf("--cacert: %w", err)}
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

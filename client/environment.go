package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// DefaultAddress is the default address of "koine serve".
const DefaultAddress = "http://127.0.0.1:8080"

// Environment returns the address and the options from the environment variables of the
// command line: KOINE_URL (default: DefaultAddress), KOINE_KEY, KOINE_AS and
// KOINE_CACERT.
func Environment() (address string, o Options) {
	return cmp.Or(os.Getenv("KOINE_URL"), DefaultAddress), Options{Key: os.Getenv("KOINE_KEY"), Agent: os.Getenv("KOINE_AS"), CACert: os.Getenv("KOINE_CACERT")}
}

// TrustAuthorities returns a TLS configuration that trusts the certificate authorities in
// a PEM file in addition to those of the system.
func TrustAuthorities(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate: pass a PEM file", file)
	}
	return &tls.Config{RootCAs: roots}, nil
}

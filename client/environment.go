package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// DefaultAddress is where "koine serve" listens when it is not told.
const DefaultAddress = "http://127.0.0.1:8080"

// Environment is the address and the options that the environment says, in the same
// variables as for the command line: KOINE_URL (DefaultAddress without it), KOINE_KEY,
// KOINE_AS and KOINE_CACERT.
func Environment() (address string, o Options) {
	return cmp.Or(os.Getenv("KOINE_URL"), DefaultAddress), Options{Key: os.Getenv("KOINE_KEY"), Agent: os.Getenv("KOINE_AS"), CACert: os.Getenv("KOINE_CACERT")}
}

// TrustAuthorities is a TLS configuration that trusts the authorities in a PEM file
// beside those of the system's.
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
		return nil, fmt.Errorf("there is no certificate in %s; it is a PEM file", file)
	}
	return &tls.Config{RootCAs: roots}, nil
}

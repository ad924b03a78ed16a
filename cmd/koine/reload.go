package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/httpd"
)

// tlsFlags enable TLS.
type tlsFlags struct {
	TLSCert string `help:"PEM file with the certificate chain for HTTPS. It is reloaded when it changes, and on SIGHUP." name:"tls-cert" placeholder:"FILE" type:"path"`
	TLSKey  string `help:"PEM file with the private key of the certificate." name:"tls-key" placeholder:"FILE" type:"path"`
}

func (f tlsFlags) openCertificate(log *slog.Logger) (*httpd.Certificate, error) {
	switch {
	case f.TLSCert == "" && f.TLSKey == "":
		return nil, nil
	case f.TLSCert == "" || f.TLSKey == "":
		return nil, cli.Usagef("--tls-cert and --tls-key must be given together")
	}
	return httpd.LoadCertificate(f.TLSCert, f.TLSKey, log)
}

// urlPrefix returns the scheme of the server's URLs with ://.
func (f tlsFlags) urlPrefix() string {
	if f.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// watchCertificate reloads the certificate when its files change, until stop.
func watchCertificate(ctx context.Context, c *httpd.Certificate) (stop func()) {
	if c == nil {
		return func() {}
	}
	return runWithHangup(ctx, httpd.CertificateEvery, c.Watch)
}

// runWithHangup runs follow in a goroutine until stop is called. follow polls its files at
// the interval every, and at once after a SIGHUP, which it receives through now.
func runWithHangup(ctx context.Context, every time.Duration, follow func(ctx context.Context, every time.Duration, now <-chan os.Signal)) (stop func()) {
	now := make(chan os.Signal, 1)
	signal.Notify(now, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { follow(ctx, every, now) })
	return func() {
		signal.Stop(now)
		cancel()
		following.Wait()
	}
}

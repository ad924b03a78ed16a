package httpd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// CertificateEvery is how often the files of a certificate are looked at.
const CertificateEvery = 10 * time.Second

// Certificate is the server's certificate with its key, of two PEM files that
// are read again when they change. It is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               atomic.Pointer[tls.Certificate]

	mu   sync.Mutex // guards seen: one reads at a time
	seen [2]fileState
}

// fileState tells whether a file may have changed.
type fileState struct {
	modified time.Time
	size     int64
}

// LoadCertificate reads the files. The first file may hold the whole chain.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config is what a listener with this certificate speaks: TLS 1.2 and 1.3 with
// Go's own choice of ciphers, HTTP/2 and HTTP/1.1. Connections that are open keep
// the certificate that they began with.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}

// NotAfter is until when the certificate is valid.
func (c *Certificate) NotAfter() time.Time { return c.now.Load().Leaf.NotAfter }

// Reload reads the files now. What cannot be used is the error, and changes
// nothing.
func (c *Certificate) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.states()
	return c.read()
}

func (c *Certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("certificate %s: %w", c.certFile, err)
		}
	}
	c.now.Store(&pair)
	c.log.Info("certificate in use", "file", c.certFile, "serial", pair.Leaf.SerialNumber.String(), "not_after", pair.Leaf.NotAfter)
	return nil
}

// Watch reads the files again when they change, looking every so often, and on
// each signal, until ctx ends. A pair that cannot be used is logged once, and the
// one before stays.
func (c *Certificate) Watch(ctx context.Context, every time.Duration, signals <-chan os.Signal) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-signals:
			err = c.Reload()
		case <-ticker.C:
			err = c.reloadChanged()
		}
		if err != nil {
			c.log.Error("the certificate was not changed: the files cannot be used", "error", err)
		}
	}
}

func (c *Certificate) reloadChanged() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	states := c.states()
	if states == c.seen {
		return nil
	}
	c.seen = states
	return c.read()
}

func (c *Certificate) states() (states [2]fileState) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			states[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return states
}

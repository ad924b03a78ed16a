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

// CertificateEvery is the interval at which the certificate files are checked.
const CertificateEvery = 10 * time.Second

// Certificate is the server's certificate and key from two PEM files, which it reads
// again when they change. It is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               atomic.Pointer[tls.Certificate]

	mu   sync.Mutex // guards seen and serializes reads
	seen [2]fileState
}

// fileState detects a change of a file.
type fileState struct {
	modified time.Time
	size     int64
}

// LoadCertificate reads the files. The first file may contain the whole chain.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns the TLS configuration of a listener: TLS 1.2 and 1.3 with Go's default
// ciphers, HTTP/2 and HTTP/1.1. Open connections keep their certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}

// NotAfter returns the end of the certificate's validity.
func (c *Certificate) NotAfter() time.Time { return c.now.Load().Leaf.NotAfter }

// Reload reads the files now. If they are invalid, it returns an error and keeps the
// certificate.
func (c *Certificate) Reload() error {
	return c.reload(true)
}

// reload reads the files if they have changed, or in any case.
func (c *Certificate) reload(always bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	states := c.fileStates()
	if states == c.seen && !always {
		return nil
	}
	c.seen = states
	return c.loadFiles()
}

func (c *Certificate) loadFiles() error {
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

// Watch reads the files again when they change, checking at the interval and on each
// signal, until ctx ends. If the files are invalid, Watch logs the error once and the
// old certificate stays.
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
			err = c.reload(false)
		}
		if err != nil {
			c.log.Error("cannot load the changed certificate, the old one stays in use", "error", err)
		}
	}
}

func (c *Certificate) fileStates() (states [2]fileState) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			states[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return states
}

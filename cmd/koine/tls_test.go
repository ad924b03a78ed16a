package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// writePair makes a certificate for 127.0.0.1 and puts it into two files.
func writePair(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// With a certificate the server uses https, also in its card, and reloads a new certificate
// on SIGHUP.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key, 1)
	s, url := startServer(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("the server is at %s", url)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	shown := func() int64 {
		t.Helper()
		response, err := client.Get(url + "/.well-known/agent-card.json")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		card, err := io.ReadAll(response.Body)
		if err != nil || !strings.Contains(string(card), `"url":"`+url+`/a2a"`) {
			t.Errorf("the card does not say %s: %s, %v", url, card, err)
		}
		return response.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := shown(); got != 1 {
		t.Errorf("certificate %d, want 1", got)
	}
	writePair(t, cert, key, 2)
	if err := s.process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for deadline := time.After(time.Minute); shown() != 2; {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("SIGHUP brought no new certificate")
		}
	}
}

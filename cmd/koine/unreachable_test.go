package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/slowtest"
)

// Each reason why a server cannot be reached is reported with the remedy, by every command
// that uses one.
func TestUnreachableServers(t *testing.T) {
	slowtest.Long(t)
	t.Setenv("KOINE_KEY", "")
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	gone := httptest.NewServer(answer)
	gone.Close()
	dir := t.TempDir()
	authority, rubbish := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "rubbish.pem")
	write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	write(t, rubbish, "no certificate")
	port := secure.URL[strings.LastIndex(secure.URL, ":"):]
	for _, row := range []struct {
		name, url string
		flags     []string
		code      int
		says, not string
	}{
		{"an authority that nobody trusts", secure.URL, nil, cli.ExitUnreachable, "pass that authority's certificate with --cacert FILE", "Start one"},
		{"one that is trusted", secure.URL, []string{"--cacert", authority}, cli.ExitFailure, "404", "trusted"},
		{"another name", "https://localhost" + port, []string{"--cacert", authority}, cli.ExitUnreachable, "is for another host name", "Start one"},
		{"https to http", "https" + strings.TrimPrefix(plain.URL, "http"), nil, cli.ExitUnreachable, "does not support HTTPS", "Start one"},
		{"http to https", "http" + strings.TrimPrefix(secure.URL, "https"), nil, cli.ExitUnreachable, "use a URL that begins with https://", "Start one"},
		{"an unknown host", "http://nowhere.invalid:8080", nil, cli.ExitUnreachable, "the host of http://nowhere.invalid:8080 is unknown", "Start one"},
		{"nobody there", gone.URL, nil, cli.ExitUnreachable, "Start one with: koine serve --demo", "trusted"},
		{"no such file", secure.URL, []string{"--cacert", filepath.Join(dir, "absent")}, cli.ExitUsage, "--cacert: ", "Start one"},
		{"a file without a certificate", secure.URL, []string{"--cacert", rubbish}, cli.ExitUsage, "has no certificate: pass a PEM file", "Start one"},
	} {
		for _, command := range [][]string{{"query", "{ revision }"}, {"watch"}, {"keys", "list"}, {"channel", "list"}, {"bench", "query"}} {
			var out, said strings.Builder
			args := append(append(command, "--url", row.url), row.flags...)
			code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
			if code != row.code || !strings.Contains(said.String(), row.says) || strings.Contains(said.String(), row.not) {
				t.Errorf("%s: %v ends with %d and says %q, want %d and %q", row.name, args, code, said.String(), row.code, row.says)
			}
		}
	}
	t.Run("the variable", func(t *testing.T) {
		t.Setenv("KOINE_CACERT", authority)
		var out, said strings.Builder
		execute(t.Context(), []string{"query", "{ revision }", "--url", secure.URL}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		if !strings.Contains(said.String(), "404") {
			t.Errorf("with KOINE_CACERT: %s", said.String())
		}
	})
}

// A certificate that has expired, or is not valid yet, is reported with its time.
func TestCertificatesOutOfTime(t *testing.T) {
	t.Setenv("KOINE_KEY", "")
	day := 24 * time.Hour
	for _, row := range []struct {
		from, to time.Time
		says     []string
	}{
		{time.Now().Add(-2 * day), time.Now().Add(-day), []string{"has expired", "It was valid until ", "renew it"}},
		{time.Now().Add(day), time.Now().Add(2 * day), []string{"is not valid yet", ": check the clock of this machine."}},
	} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: row.from, NotAfter: row.to, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		defer server.Close()
		authority := filepath.Join(t.TempDir(), "ca.pem")
		write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		var out, said strings.Builder
		code := execute(t.Context(), []string{"query", "{ revision }", "--url", server.URL, "--cacert", authority}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
		for _, part := range row.says {
			if code != cli.ExitUnreachable || !strings.Contains(said.String(), part) {
				t.Errorf("it ends with %d and says %q, want %d and %q", code, said.String(), cli.ExitUnreachable, part)
			}
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every command that uses a server has a flag for authorities.
func TestEveryClientTakesAuthorities(t *testing.T) {
	parser, err := newParser(cli.Terminal{}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, leaf := range parser.Model.Leaves(false) {
		names := map[string]bool{}
		for _, group := range leaf.AllFlags(false) {
			for _, flag := range group {
				names[flag.Name] = true
			}
		}
		if names["url"] {
			seen++
			if !names["cacert"] {
				t.Errorf("%s has --url and no --cacert", leaf.FullPath())
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands have --url", seen)
	}
}

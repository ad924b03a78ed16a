package httpd_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/httpd"
	"koine/internal/slowtest"
)

// pair is a certificate in files, made by the test.
type pair struct{ cert, key string }

func newPair(t *testing.T) pair {
	dir := t.TempDir()
	return pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

// write makes a certificate of this number for 127.0.0.1 and puts it into the
// files.
func (p pair) write(t *testing.T, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "koine test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, p.cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, p.key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, p pair, log *slog.Logger) *httpd.Certificate {
	t.Helper()
	c, err := httpd.LoadCertificate(p.cert, p.key, log)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var quiet = slog.New(slog.DiscardHandler)

// trusting is a client that trusts the certificate and nothing else.
func trusting(t *testing.T, cert *x509.Certificate, h2 bool) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: h2}
	if !h2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func TestHTTPS(t *testing.T) {
	p := newPair(t)
	cert := p.write(t, 1)
	s := newServer(httpd.Options{Certificate: load(t, p, quiet)})
	s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %t %d %v", r.Proto, r.TLS != nil, len(body), err)
	}))
	r := run(t, s)
	for _, row := range []struct {
		h2   bool
		want string
	}{{true, "HTTP/2.0 true 200000 <nil>"}, {false, "HTTP/1.1 true 200000 <nil>"}} {
		resp, err := trusting(t, cert, row.h2).Post("https://"+r.addr+"/", "application/json", strings.NewReader(strings.Repeat("x", 200_000)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != row.want || err != nil {
			t.Errorf("got %s, %v, want %s", body, err, row.want)
		}
	}
	for version, works := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if err == nil {
			conn.Close()
		}
		if (err == nil) != works {
			t.Errorf("%s: got %v", tls.VersionName(version), err)
		}
	}
	// Plain HTTP gets only an error.
	resp, body := do(t, r, "GET", "/healthz", "")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: got %d %s", resp.StatusCode, body)
	}
}

// Over HTTP/2 an answer, and a body, may pause for longer than the stall timeout.
func TestHTTP2MayRest(t *testing.T) {
	slowtest.Long(t)
	t.Parallel() // it waits for real time
	p := newPair(t)
	cert := p.write(t, 1)
	s := newServer(httpd.Options{Certificate: load(t, p, quiet), StallTimeout: 10 * time.Second})
	s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		half := make([]byte, 3)
		_, first := io.ReadFull(r.Body, half)
		io.WriteString(w, "first ")
		http.NewResponseController(w).Flush()
		<-time.After(10500 * time.Millisecond)
		_, second := io.ReadAll(r.Body)
		fmt.Fprint(w, "second ", first, " ", second)
	}))
	resp, err := trusting(t, cert, true).Post("https://"+run(t, s).addr+"/", "text/plain", strings.NewReader("abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "first second <nil> <nil>" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestCertificateFilesThatCannotBeUsed(t *testing.T) {
	good, other := newPair(t), newPair(t)
	good.write(t, 1)
	other.write(t, 2)
	for name, p := range map[string]pair{
		"not there":         {good.cert + "x", good.key},
		"another key":       {good.cert, other.key},
		"key as cert":       {good.key, good.key},
		"no certificate":    {os.DevNull, good.key},
		"a folder in place": {filepath.Dir(good.cert), good.key},
	} {
		if _, err := httpd.LoadCertificate(p.cert, p.key, quiet); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

// locked is a log that a test reads while it is written.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// serial returns the serial number of the current certificate.
func serial(c *httpd.Certificate) int64 {
	shown, _ := c.Config().GetCertificate(nil)
	return shown.Leaf.SerialNumber.Int64()
}

func TestCertificateIsReadAgain(t *testing.T) {
	p := newPair(t)
	p.write(t, 1)
	log := &locked{}
	c := load(t, p, slog.New(slog.NewTextHandler(log, nil)))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		signals := make(chan os.Signal, 1)
		go c.Watch(ctx, time.Minute, signals)
		defer synctest.Wait()
		defer cancel()
		look := func(want int64, what string) {
			t.Helper()
			time.Sleep(time.Minute + time.Second)
			synctest.Wait()
			if got := serial(c); got != want {
				t.Errorf("%s: certificate %d, want %d", what, got, want)
			}
		}
		look(1, "nothing changed")
		p.write(t, 22) // the files' sizes or times differ
		touch(t, p, 1)
		look(22, "another pair")

		writeFile(t, p.key, "not a key")
		touch(t, p, 2)
		look(22, "a broken key")
		look(22, "still broken")
		if n := log.count("cannot load the changed certificate"); n != 1 {
			t.Errorf("a broken pair was logged %d times, want once", n)
		}
		signals <- os.Interrupt
		synctest.Wait()
		if n := log.count("cannot load the changed certificate"); n != 2 {
			t.Errorf("a signal with a broken pair was logged %d times in all, want 2", n)
		}

		p.write(t, 333)
		signals <- os.Interrupt
		synctest.Wait()
		if got := serial(c); got != 333 {
			t.Errorf("after a signal: certificate %d, want 333", got)
		}
		os.Remove(p.cert)
		look(333, "the file is gone")
	})
}

// touch gives the files another time than they had: a test is faster than the
// clock of a file system.
func touch(t *testing.T, p pair, n int) {
	t.Helper()
	at := time.Unix(1_000_000_000+int64(n), 0)
	for _, name := range []string{p.cert, p.key} {
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// A server changes its certificate while running, and open connections stay open.
func TestCertificateChangesUnderAServer(t *testing.T) {
	p := newPair(t)
	first := p.write(t, 1)
	c := load(t, p, quiet)
	s := newServer(httpd.Options{Certificate: c})
	s.HandleRPC(whoami)
	r := run(t, s)
	before := trusting(t, first, false)
	post := func(client *http.Client) error {
		resp, err := client.Post("https://"+r.addr+"/", "application/json", nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := post(before); err != nil {
		t.Fatal(err)
	}
	second := p.write(t, 2)
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := post(before); err != nil {
		t.Errorf("the connection that was open: %v", err)
	}
	if err := post(trusting(t, second, false)); err != nil {
		t.Errorf("a new connection: %v", err)
	}
	if err := post(trusting(t, first, false)); err == nil {
		t.Error("a new connection was shown the old certificate")
	}
}

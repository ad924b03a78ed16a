package client_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"koine/client"
)

// TestEnvironmentNamesAuthorities proves that KOINE_CACERT names the trusted authorities,
// and that an invalid file is an error of Open.
func TestEnvironmentNamesAuthorities(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	dir := t.TempDir()
	authority, rubbish := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "rubbish.pem")
	for file, text := range map[string]string{authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})), rubbish: "no certificate"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KOINE_URL", s.URL)
	for file, want := range map[string]string{"": "certificate", authority: "404", rubbish: "has no certificate: pass a PEM file", filepath.Join(dir, "absent"): "no such file"} {
		t.Setenv("KOINE_CACERT", file)
		address, o := client.Environment()
		o.Retry.FailFast = true
		if _, err := client.Open(t.Context(), address, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("KOINE_CACERT=%s: got %v, want %s", file, err, want)
		}
	}
	if _, err := client.Open(t.Context(), s.URL, client.Options{HTTP: s.Client(), CACert: authority}); err == nil || !strings.Contains(err.Error(), "CACert and HTTP are mutually exclusive") {
		t.Errorf("with a client as well: got %v", err)
	}
}

// Package w3c locates the W3C test suites for tests of other packages.
//
// The suites are part of the Go module github.com/geoknoesis/rdf-go, which go.mod requires for
// its test files only, so that go.sum pins their content. KOINE_W3C_TESTS selects a checkout of
// https://github.com/w3c/rdf-tests instead.
package w3c

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Checkout returns the checkout of w3c/rdf-tests that KOINE_W3C_TESTS names, "" if it is unset.
func Checkout() string { return os.Getenv("KOINE_W3C_TESTS") }

// RDFTests returns the directory of w3c/rdf-tests: the checkout's, else the module's.
func RDFTests(t testing.TB) string {
	t.Helper()
	if checkout := Checkout(); checkout != "" {
		return checkout
	}
	return filepath.Join(moduleDir(t), "rdf-tests")
}

// JSONLD returns the directory of the tests of w3c/json-ld-api.
func JSONLD(t testing.TB) string {
	t.Helper()
	return filepath.Join(moduleDir(t), "jsonld")
}

func moduleDir(t testing.TB) string {
	t.Helper()
	dir, err := download()
	if err != nil {
		t.Fatalf("the W3C test suites are not available: %v", err)
	}
	return filepath.Join(dir, "w3c-tests")
}

// download returns the directory of the module in the module cache. It downloads the
// module if it is missing.
var download = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", "github.com/geoknoesis/rdf-go").Output()
	if err != nil {
		return "", err
	}
	var downloaded struct{ Dir string }
	err = json.Unmarshal(out, &downloaded)
	return downloaded.Dir, err
})

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/slowtest"
)

// Statements are imported and exported in every format, equal up to blank nodes: a social
// network and part of the film graph, half of whose statements are about blank nodes. A
// missing statement is detected.
func TestRoundTrips(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	dir := t.TempDir()
	source, short := filepath.Join(dir, "all.nq"), filepath.Join(dir, "short.nq")
	generated, err := exec.Command("koine", "bench", "generate", "--statements", "2000").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := append(generated, filmExcerpt(t)...)
	if err := os.WriteFile(source, text, 0o600); err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(bytes.TrimSpace(text), '\n')
	if err := os.WriteFile(short, text[:last+1], 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := roundTrips(dir, source)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, format := range []string{"nquads", "trig", "jsonld", "turtle", "ntriples"} {
		if !strings.Contains(out, format+": equal\n") {
			t.Errorf("%s is not said to be equal:\n%s", format, out)
		}
	}
	if out, err := roundTrips(dir, source, short); err == nil || !strings.Contains(out, "short.nq: NOT EQUAL") || !strings.Contains(out, "0 added, 1 removed") {
		t.Errorf("a form that lacks a statement: got %v\n%s", err, out)
	}
}

func roundTrips(dir string, args ...string) (string, error) {
	script := exec.Command("../../scripts/round-trips.sh", args...)
	script.Env = append(os.Environ(), "KOINE=koine", "TMPDIR="+dir)
	out, err := script.CombinedOutput()
	return string(out), err
}

// filmExcerpt is the part of the film graph that is in the repository, as N-Quads.
func filmExcerpt(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open("../../internal/rdf/testdata/movies-excerpt.nq.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

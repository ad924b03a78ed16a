package rdf_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/rdf"
)

// movies is the film data that KOINE_FILMS names or that lies beside the repository, or the
// excerpt in it where that is missing.
func movies(b *testing.B) string {
	b.Helper()
	if named := os.Getenv("KOINE_FILMS"); named != "" {
		return named
	}
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "..", "shared", "data", "movies.nq.gz")
	if _, err := os.Stat(path); err != nil {
		b.Logf("reading the excerpt: %v", err)
		return filepath.Join("testdata", "movies-excerpt.nq.gz")
	}
	return path
}

// BenchmarkReadMovies reads N-Quads, 471,705 of them, decompression included.
func BenchmarkReadMovies(b *testing.B) {
	path := movies(b)
	n := 0
	for b.Loop() {
		for _, err := range rdf.Read(openGzip(b, path), rdf.NQuads, rdf.Options{Name: path}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "quads/s")
}

// BenchmarkFormats reads and writes an excerpt of the same data in memory.
func BenchmarkFormats(b *testing.B) {
	text, err := io.ReadAll(openGzip(b, filepath.Join("testdata", "movies-excerpt.nq.gz")))
	if err != nil {
		b.Fatal(err)
	}
	quads := collect(b, text, rdf.NQuads, rdf.Options{})
	for _, f := range rdf.Formats {
		text := write(b, quads, f, rdf.WriteOptions{Prefixes: prefixes(b)})
		b.Run("read/"+f.String(), func(b *testing.B) {
			n := 0
			for b.Loop() {
				for range rdf.Read(bytes.NewReader(text), f, rdf.Options{}) {
					n++
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "quads/s")
		})
		b.Run("write/"+f.String(), func(b *testing.B) {
			n := 0
			for b.Loop() {
				w := rdf.NewWriter(io.Discard, f, rdf.WriteOptions{})
				for _, q := range quads {
					if err := w.Write(q); err != nil {
						b.Fatal(err)
					}
					n++
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "quads/s")
		})
	}
}

package rdf_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"koine/internal/rdf"
	"koine/internal/slowtest"
)

// TestCutOffGzipIsRefused cuts compressed documents off at places where the text ends
// with a whole line, so that nothing but the gzip data says that more was to come.
func TestCutOffGzipIsRefused(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const lines, flushed = 50_000, 20_000
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	cut := 0
	for i := range lines {
		if i == flushed {
			if err := z.Flush(); err != nil {
				t.Fatal(err)
			}
			cut = data.Len()
		}
		fmt.Fprintf(z, "<urn:s:%d> <urn:p> <urn:o> .\n", i)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	whole := data.Bytes()
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-5] ^= 1
	for _, c := range []struct {
		what string
		data []byte
		want string // "" where the document is whole
	}{
		{"whole", whole, ""},
		{"cut off behind a line", whole[:cut], "truncated"},
		{"without its trailer", whole[:len(whole)-8], "truncated"},
		{"without its last byte", whole[:len(whole)-1], "truncated"},
		{"with another checksum", damaged, "damaged"},
		{"with the beginning of another member", append(bytes.Clone(whole), 0x1f, 0x8b, 8), "truncated"},
		{"with other data behind it", append(bytes.Clone(whole), strings.Repeat("x", 20)...), "damaged"},
	} {
		for _, f := range []rdf.Format{rdf.NTriples, rdf.Turtle} {
			t.Run(c.what+" "+f.MediaType(), func(t *testing.T) {
				in, err := rdf.Decompress(bytes.NewReader(c.data))
				if err != nil {
					t.Fatal(err)
				}
				for _, skip := range []bool{false, true} {
					n, err := countQuads(in, f, rdf.Options{ContinueOnError: skip})
					switch {
					case c.want == "" && (err != nil || n != lines):
						t.Errorf("read %d statements, %v, want %d", n, err, lines)
					case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
						t.Errorf("read %d statements, %v, want an error that says %q", n, err, c.want)
					}
					if in, err = rdf.Decompress(bytes.NewReader(c.data)); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

func countQuads(in io.Reader, f rdf.Format, o rdf.Options) (n int, err error) {
	for _, err := range rdf.Read(in, f, o) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

package rdf

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"koine/kg"
)

// Summary describes a document.
type Summary struct {
	Quads    uint64
	Rejected uint64 // skipped lines and statements, with Options.ContinueOnError
	Dropped  uint64 // JSON-LD entries without a meaning: see JSONLDOptions.Dropped
	// Tag is the tag of the document for Options.Tag: see DocumentTag.
	Tag string
}

// Survey reads a document completely without storing it. Doing so before an import has
// two uses: an error in the last line is found before the first one is stored, and the
// document's tag is known. seen, if not nil, is called for each statement and must not
// keep it. Errors are those of Read.
func Survey(r io.Reader, f Format, o Options, visit func(*kg.Quad)) (Summary, error) {
	return SurveyContext(context.Background(), r, f, o, visit)
}

// SurveyContext is Survey with a context: see ReadContext.
func SurveyContext(ctx context.Context, r io.Reader, f Format, o Options, visit func(*kg.Quad)) (Summary, error) {
	var s Summary
	sum := sha256.New()
	rejected := o.Rejected
	o.Rejected = func(e *SyntaxError) {
		s.Rejected++
		if rejected != nil {
			rejected(e)
		}
	}
	dropped := o.JSONLD.Dropped
	o.JSONLD.Dropped = func(e *SyntaxError) {
		s.Dropped++
		if dropped != nil {
			dropped(e)
		}
	}
	for q, err := range ReadContext(ctx, io.TeeReader(r, sum), f, o) {
		if err != nil {
			return s, err
		}
		if visit != nil {
			visit(&q)
		}
		s.Quads++
	}
	s.Tag = DocumentTag([sha256.Size]byte(sum.Sum(nil)))
	return s, nil
}

// Decompress returns the text of an input that may be compressed with gzip, as its first
// bytes show.
func Decompress(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	magic, err := in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(magic) != "\x1f\x8b" {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, invalid("not a gzip file: %v", err)
	}
	return gunzipped{z}, nil
}

// gunzipped classifies errors of gzip data. It hides io.ErrUnexpectedEOF, which readers
// could take for a regular end of the document.
type gunzipped struct{ z *gzip.Reader }

func (g gunzipped) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = invalid("the gzip data is truncated")
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		err = invalid("the gzip data is damaged: %v", err)
	}
	return n, err
}

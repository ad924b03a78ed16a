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

// Summary is what a document holds.
type Summary struct {
	Quads    uint64
	Rejected uint64 // lines and statements skipped, with Options.ContinueOnError
	Dropped  uint64 // entries of JSON-LD that mean nothing: see JSONLDOptions.Dropped
	// Tag is the document's own, for Options.Tag: see DocumentTag.
	Tag string
}

// Survey reads a document once from end to end and keeps nothing of it. Doing
// so before its statements are written has two uses: a fault in the last line
// is found before the first one is in the store, and the document's tag is
// known. seen, if not nil, is told of each statement, which it must not keep.
// Errors are those of Read.
func Survey(r io.Reader, f Format, o Options, seen func(*kg.Quad)) (Summary, error) {
	return SurveyContext(context.Background(), r, f, o, seen)
}

// SurveyContext is Survey that ends when a context does: see ReadContext.
func SurveyContext(ctx context.Context, r io.Reader, f Format, o Options, seen func(*kg.Quad)) (Summary, error) {
	var s Summary
	sum := sha256.New()
	tell := o.Rejected
	o.Rejected = func(e *SyntaxError) {
		s.Rejected++
		if tell != nil {
			tell(e)
		}
	}
	tellDropped := o.JSONLD.Dropped
	o.JSONLD.Dropped = func(e *SyntaxError) {
		s.Dropped++
		if tellDropped != nil {
			tellDropped(e)
		}
	}
	for q, err := range ReadContext(ctx, io.TeeReader(r, sum), f, o) {
		if err != nil {
			return s, err
		}
		if seen != nil {
			seen(&q)
		}
		s.Quads++
	}
	s.Tag = DocumentTag([sha256.Size]byte(sum.Sum(nil)))
	return s, nil
}

// Decompress gives the text of an input that may be compressed with gzip,
// which its first bytes tell.
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

// gunzipped says what is wrong with gzip data. A document that is cut off is never taken
// for one that ends there: io.ErrUnexpectedEOF is what readers take the end for.
type gunzipped struct{ z *gzip.Reader }

func (g gunzipped) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = invalid("the gzip data is cut off")
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		err = invalid("the gzip data is damaged: %v", err)
	}
	return n, err
}

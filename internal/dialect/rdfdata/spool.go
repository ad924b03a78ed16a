package rdfdata

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// spoolMemoryBytes is the largest body that is kept in memory.
const spoolMemoryBytes = 1 << 20

// spool stores a request's body as it was sent, so that it can be read twice.
type spool struct {
	memory []byte
	file   *os.File
	gzip   bool
	limit  int64
}

// receiveBody reads the body into a spool. The caller must close it.
func (h *handler) receiveBody(w http.ResponseWriter, r *http.Request, limit int64) (*spool, error) {
	s := &spool{limit: limit}
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		s.gzip = true
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "the Content-Encoding %q is not supported; use gzip or identity", encoding)
	}
	body := http.MaxBytesReader(w, r.Body, limit)
	var memory bytes.Buffer
	n, err := io.CopyN(&memory, body, spoolMemoryBytes)
	s.memory = memory.Bytes()
	if errors.Is(err, io.EOF) && n < spoolMemoryBytes {
		return s, nil
	}
	if err == nil {
		err = s.spoolRest(body, h.options.TempDir)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// spoolRest moves the buffered part into a file and appends the rest of the body.
func (s *spool) spoolRest(body io.Reader, dir string) (err error) {
	if s.file, err = os.CreateTemp(dir, "koine-import-*"); err != nil {
		return err
	}
	if _, err = s.file.Write(s.memory); err != nil {
		return err
	}
	s.memory = nil
	_, err = io.Copy(s.file, body)
	return err
}

// isEmpty reports whether the body is empty.
func (s *spool) isEmpty() bool { return s.file == nil && len(s.memory) == 0 }

// open returns a reader of the document from its beginning, decompressed and bounded. Only
// one reader may be in use.
func (s *spool) open() (io.Reader, error) {
	var r io.Reader = bytes.NewReader(s.memory)
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		r = s.file
	}
	if !s.gzip {
		return r, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "INVALID", "the body is not valid gzip: %v", err)
	}
	return &boundedReader{r: z, left: s.limit, limit: s.limit}, nil
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}

// boundedReader returns an error at its limit, where io.LimitReader would return io.EOF.
type boundedReader struct {
	r           io.Reader
	left, limit int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, &http.MaxBytesError{Limit: b.limit}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = refuse(http.StatusBadRequest, "INVALID", "the body is not valid gzip: %v", err)
	}
	return n, err
}

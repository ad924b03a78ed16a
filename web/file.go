package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	assetsDir = "playground/assets/"

	// The page has a fixed name and is asked for again each time; the name of an
	// asset holds the hash of its content.
	cachePage  = "no-cache"
	cacheAsset = "public, max-age=31536000, immutable"
)

// contentTypes is our own table: what package mime knows differs between machines.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".ttf":  "font/ttf",
	".txt":  "text/plain; charset=utf-8",
}

// file is one embedded file. It is read-only and safe for concurrent use.
type file struct {
	contentType  string
	cacheControl string
	tag          string // names the content, whatever its encoding
	gzipped      []byte

	// plain is for the rare client that takes no gzip. It unpacks once, when first
	// asked, and keeps the result.
	plain func() ([]byte, error)
}

// readFiles reads all files below dist; their names lose dist/ and .gz.
func readFiles(fsys fs.FS) (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(fsys, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		gzipped, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		name = strings.TrimSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
		files[name], err = newFile(name, gzipped)
		return err
	})
	return files, err
}

func newFile(name string, gzipped []byte) (*file, error) {
	contentType, ok := contentTypes[path.Ext(name)]
	if !ok {
		return nil, fmt.Errorf("no content type for %s", name)
	}
	sum := sha256.Sum256(gzipped)
	f := &file{
		contentType:  contentType,
		cacheControl: cachePage,
		tag:          base64.RawURLEncoding.EncodeToString(sum[:12]),
		gzipped:      gzipped,
		plain:        sync.OnceValues(func() ([]byte, error) { return decompress(gzipped) }),
	}
	if strings.HasPrefix(name, assetsDir) {
		f.cacheControl = cacheAsset
	}
	return f, nil
}

// serve answers GET and HEAD, with 304 for a client that has the content already.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	body, tag := f.gzipped, f.tag+"-gzip"
	header := w.Header()
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
	} else {
		plain, err := f.plain()
		if err != nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		body, tag = plain, f.tag
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", f.cacheControl)
	header.Set("ETag", `"`+tag+`"`)
	header.Add("Vary", "Accept-Encoding")
	// http.ServeContent leaves the length out when there is an encoding.
	header.Set("Content-Length", strconv.Itoa(len(body)))
	r = r.Clone(r.Context())
	r.Header.Del("Range") // whole files only
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reads the values of Accept-Encoding (RFC 9110 section 12.5.3).
func acceptsGzip(values []string) bool {
	accepted := false
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			coding, parameters, _ := strings.Cut(item, ";")
			coding = strings.ToLower(strings.TrimSpace(coding))
			if coding != "gzip" && coding != "x-gzip" && coding != "*" {
				continue
			}
			q, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameters)), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			accepts := !found || err == nil && weight > 0
			if coding != "*" {
				return accepts // a name counts before the wildcard
			}
			accepted = accepts
		}
	}
	return accepted
}

func decompress(gzipped []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

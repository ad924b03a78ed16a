package a2a

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// readBody reads the request's body up to its limit.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, *Error) {
	if !isJSON(r.Header) {
		return nil, wrongContentType(r.Header)
	}
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(most)
	case err != nil:
		return nil, parseError(errors.New("the body could not be read"))
	}
	return body, nil
}

// isJSON reports whether the body is declared as JSON in UTF-8. Nothing else is
// accepted, because a foreign web page can send forms and plain text without a
// preflight request.
func isJSON(header http.Header) bool {
	contentType := header.Get("Content-Type")
	if header.Get("Content-Encoding") != "" {
		return false
	}
	if contentType == "application/json" { // nearly always
		return true
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	charset := params["charset"]
	return (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) &&
		(charset == "" || strings.EqualFold(charset, "utf-8"))
}

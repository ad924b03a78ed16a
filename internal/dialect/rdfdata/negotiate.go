package rdfdata

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"koine/internal/rdf"
)

// answerFormat returns the client's preferred format: ?format=, else by Accept (RFC 9110,
// section 12.5.1). Among equally preferred formats it is the first of offered.
func answerFormat(r *http.Request, t target) (rdf.Format, error) {
	offered := offeredFormats(t)
	if name := r.URL.Query().Get("format"); name != "" {
		if f, ok := rdf.FormatByName(name); ok && f.IsWritten() {
			return f, nil
		}
		return 0, refuse(http.StatusNotAcceptable, "NOT_ACCEPTABLE", "format %q is unknown", name).withHint(offerHint(rdf.Formats))
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return offered[0], nil
	}
	best, bestQuality := rdf.Format(0), 0.0
	for _, f := range offered {
		if q := acceptQuality(accept, f.MediaType()); q > bestQuality {
			best, bestQuality = f, q
		}
	}
	if best == 0 {
		return 0, refuse(http.StatusNotAcceptable, "NOT_ACCEPTABLE", "no format in Accept is supported").withHint(offerHint(rdf.Formats))
	}
	return best, nil
}

// offeredFormats returns the formats of responses, the default first: N-Quads for the
// store, and N-Triples for a graph, because the Graph Store Protocol requires a format
// without graphs.
func offeredFormats(t target) []rdf.Format {
	if !t.named {
		return rdf.Formats
	}
	return append([]rdf.Format{rdf.NTriples}, rdf.Formats...)
}

// acceptQuality returns the quality of a media type in the Accept header, by the most
// specific matching range.
func acceptQuality(accept, mediaType string) float64 {
	quality, specific := 0.0, -1
	for part := range strings.SplitSeq(accept, ",") {
		pattern, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		level := matchRange(pattern, mediaType)
		if level <= specific {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		quality, specific = q, level
	}
	return quality
}

// matchRange returns how specifically a media range matches: 2 for the type (or a
// synonym), 1 for its group, 0 for any, -1 for no match.
func matchRange(pattern, mediaType string) int {
	group, _, _ := strings.Cut(mediaType, "/")
	switch pattern {
	case "*/*":
		return 0
	case group + "/*":
		return 1
	}
	if f, ok := rdf.FormatByName(pattern); ok && f.MediaType() == mediaType && strings.Contains(pattern, "/") {
		return 2
	}
	return -1
}

// bodyFormat returns the format that Content-Type names.
func bodyFormat(r *http.Request) (rdf.Format, error) {
	contentType := r.Header.Get("Content-Type")
	mediaType, params, err := mime.ParseMediaType(contentType)
	if f, ok := rdf.FormatByName(mediaType); ok && err == nil && strings.Contains(mediaType, "/") {
		if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
			return 0, refuse(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "charset %s is not supported; send UTF-8", charset)
		}
		return f, nil
	}
	if contentType == "" {
		contentType = "none"
	}
	return 0, refuse(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "the Content-Type %q is not an RDF format", contentType).withHint(offerHint(rdf.ReadFormats))
}

func offerHint(formats []rdf.Format) string { return "Supported formats: " + mediaTypes(formats) + "." }

// takesGzip reports whether the response may be compressed.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, params, err := mime.ParseMediaType("x/" + strings.TrimSpace(part))
		if err == nil && name == "x/gzip" {
			q, err := strconv.ParseFloat(params["q"], 64)
			return params["q"] == "" || err == nil && q > 0
		}
	}
	return false
}

package transport

import (
	"mime"
	"strconv"
	"strings"
)

// responseForm is the media type of an answer.
type responseForm uint8

const (
	formNone responseForm = iota
	formJSON
	formResponse
	formEvents
)

var formTypes = map[responseForm]string{
	formJSON:     "application/json; charset=utf-8",
	formResponse: "application/graphql-response+json; charset=utf-8",
	formEvents:   "text/event-stream",
}

// negotiateForm returns the form with the highest quality in the Accept headers,
// the first of equals. A client without a preference gets application/json.
func negotiateForm(accept []string) (best responseForm) {
	quality, said := 0.0, false
	for _, part := range strings.Split(strings.Join(accept, ","), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		said = true
		form, q := acceptPart(part)
		if form != formNone && q > quality {
			best, quality = form, q
		}
	}
	if !said {
		return formJSON
	}
	return best
}

func acceptPart(part string) (responseForm, float64) {
	kind, params, err := mime.ParseMediaType(part)
	if err != nil {
		return formNone, 0
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return formNone, 0
	}
	q := 1.0
	if text, ok := params["q"]; ok {
		if q, err = strconv.ParseFloat(text, 64); err != nil {
			return formNone, 0
		}
	}
	switch kind {
	case "application/graphql-response+json":
		return formResponse, q
	case "application/json", "application/*", "*/*":
		return formJSON, q
	case "text/event-stream":
		return formEvents, q
	}
	return formNone, 0
}

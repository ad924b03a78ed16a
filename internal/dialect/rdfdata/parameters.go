package rdfdata

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"koine/kg"
)

// parameters are the query parameters by method.
var parameters = map[string][]string{
	http.MethodGet:    {"graph", "default", "at", "minCertainty", "format", "assertions"},
	http.MethodHead:   {"graph", "default", "at", "minCertainty", "format", "assertions"},
	http.MethodPost:   {"graph", "default", "continueOnError", "justification", "assertions"},
	http.MethodPut:    {"graph", "default", "continueOnError", "justification"},
	http.MethodDelete: {"graph", "default", "justification"},
}

// checkParameters rejects an unknown query parameter: with a misspelt graph, GET would
// export everything and POST would write to the default graph.
func checkParameters(r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return kg.Errorf(kg.CodeInvalid, "the query parameters are invalid: %v", err)
	}
	own := parameters[r.Method]
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(own, name) {
			e := kg.Errorf(kg.CodeInvalid, "%s /data has no parameter %q", r.Method, clipText(name)).At(clipText(name))
			e.Hint = "Supported parameters: " + strings.Join(own, ", ") + "."
			return e
		}
	}
	return nil
}

// justificationOf returns the client's justification, or otherwise. It is checked before
// the document is received.
func justificationOf(r *http.Request, otherwise string) (string, error) {
	values := r.URL.Query()["justification"]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return otherwise, nil
	case len(values) > 1:
		return "", kg.Errorf(kg.CodeInvalid, "justification must be given once").At("justification")
	case !utf8.ValidString(values[0]):
		return "", kg.Errorf(kg.CodeInvalid, "the justification is not UTF-8").At("justification")
	case len(values[0]) > kg.MaxJustificationBytes:
		return "", kg.Errorf(kg.CodeLimitExceeded, "the justification has %d bytes; the limit is %d", len(values[0]), kg.MaxJustificationBytes).At("justification")
	}
	return values[0], nil
}

// maxNameTold is the largest length in bytes of a client's text in an error.
const maxNameTold = 64

func clipText(text string) string { return kg.Excerpt(text, maxNameTold) }

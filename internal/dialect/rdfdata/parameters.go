package rdfdata

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"koine/kg"
)

// parameters are those that each method knows.
var parameters = map[string][]string{
	http.MethodGet:  {"graph", "at", "minCertainty", "format"},
	http.MethodHead: {"graph", "at", "minCertainty", "format"},
	http.MethodPost: {"graph", "continueOnError"},
	http.MethodPut:  {"graph", "continueOnError"},
}

// known refuses a query parameter that the method does not have: a misspelt
// graph would export everything, or write into the default graph.
func known(r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return kg.Errorf(kg.CodeInvalid, "the query parameters cannot be read: %v", err)
	}
	own := parameters[r.Method]
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(own, name) {
			e := kg.Errorf(kg.CodeInvalid, "%s /data has no parameter %q", r.Method, clip(name)).At(clip(name))
			e.Hint = "Its parameters are " + strings.Join(own, ", ") + "."
			return e
		}
	}
	return nil
}

// maxNameTold bounds how much of a client's text an error repeats, in bytes.
const maxNameTold = 64

func clip(text string) string {
	if len(text) <= maxNameTold {
		return text
	}
	return strings.ToValidUTF8(text[:maxNameTold], "") + "…"
}

package openintent_test

import (
	"bufio"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"koine/internal/dialect/openintent"
	"koine/internal/wiretest"
)

// Every row of testdata/rows.txt is shown by the steps of testdata/wire that have its tag,
// every tag names a row, and every route of the handler has a row.
func TestEveryRowIsShown(t *testing.T) {
	rows := readRows(t)
	shows := func(part string) bool {
		for _, parts := range rows {
			if slices.Contains(parts, part) {
				return true
			}
		}
		return false
	}
	mux := http.NewServeMux()
	nothing := func(http.ResponseWriter, *http.Request) {}
	for _, route := range openintent.NewHandler(openintent.Deps{}, openintent.Options{}).Routes() {
		mux.HandleFunc(route, nothing)
		if !shows(strings.Replace(route, openintent.Root, "", 1)) {
			t.Errorf("the route %s has no row", route)
		}
	}
	for _, path := range []string{openintent.DiscoveryPath, openintent.CompatibilityPath} {
		mux.HandleFunc("GET "+path, nothing)
	}
	steps := map[string][]shownStep{}
	for _, x := range wiretest.Exchanges(t) {
		tags := tagged.FindAllStringSubmatch(x.Name, -1)
		if len(tags) == 0 {
			continue
		}
		step := newShownStep(t, mux, x.Step, x.Answer)
		for _, tag := range tags {
			if rows[tag[1]] == nil {
				t.Errorf("%s: %s: no row has the tag %s", x.File, x.Name, tag[1])
			}
			steps[tag[1]] = append(steps[tag[1]], step)
		}
	}
	for tag, parts := range rows {
		for _, part := range parts {
			if !slices.ContainsFunc(steps[tag], func(s shownStep) bool { return s.shows(part) }) {
				t.Errorf("no step with the tag (%s) shows %s", tag, part)
			}
		}
	}
}

var (
	tagged   = regexp.MustCompile(`\(([0-9C]\.\w+)\)`)
	variable = regexp.MustCompile(`\$\{\w+\}`)
)

// shownStep is what a step of a conversation shows.
type shownStep struct {
	pattern, answer string
	query           url.Values
}

func newShownStep(t *testing.T, mux *http.ServeMux, request, answer string) shownStep {
	t.Helper()
	first, _, _ := strings.Cut(request, "\n")
	method, target, _ := strings.Cut(first, " ")
	u, err := url.Parse(variable.ReplaceAllString(target, "x"))
	if err != nil {
		t.Fatal(err)
	}
	_, pattern := mux.Handler(&http.Request{Method: method, URL: u})
	return shownStep{strings.Replace(pattern, openintent.Root, "", 1), answer, u.Query()}
}

// shows reports whether the step shows a part of a row.
func (s shownStep) shows(part string) bool {
	if status, ok := strings.CutPrefix(part, "status "); ok {
		return strings.HasPrefix(s.answer, status)
	}
	if name, ok := strings.CutPrefix(part, "event "); ok {
		return strings.Contains(s.answer, "\nevent: "+name+"\n")
	}
	pattern, parameters, _ := strings.Cut(part, "?")
	if s.pattern != pattern || s.answer >= "300" {
		return false
	}
	for name := range strings.SplitSeq(parameters, "&") {
		if name != "" && !s.query.Has(name) {
			return false
		}
	}
	return true
}

// readRows returns what shows each row of testdata/rows.txt, by its tag.
func readRows(t *testing.T) map[string][]string {
	t.Helper()
	f, err := os.Open("testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := map[string][]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, " | ")
		tag := strings.TrimSpace(columns[0])
		if len(columns) != 3 || rows[tag] != nil || !tagged.MatchString("("+tag+")") {
			t.Fatalf("no row, or its tag is taken: %s", line)
		}
		rows[tag] = strings.Split(columns[1], ", ")
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

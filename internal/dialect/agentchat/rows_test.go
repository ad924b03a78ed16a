package agentchat_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"koine/internal/dialect/agentchat"
	"koine/internal/wiretest"
)

// Every row of testdata/rows.txt is shown by a conversation of testdata/wire, and every
// route of the handler has a row.
func TestEveryRowIsShown(t *testing.T) {
	rows := readRows(t)
	routes := agentchat.NewHandler(agentchat.Deps{}, agentchat.Options{}).Routes()
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route, func(http.ResponseWriter, *http.Request) {})
		if !slices.Contains(rows["paths"], route) {
			t.Errorf("the route %s has no row", route)
		}
	}
	shown := map[string]bool{}
	var paths []shownPath
	for _, x := range wiretest.Exchanges(t) {
		if strings.HasPrefix(x.Step, "SOCKET ") {
			for _, found := range regexp.MustCompile(`(?m)^> {"type":"([\w.]+)"`).FindAllStringSubmatch(x.Step, -1) {
				shown["sent "+found[1]] = true
			}
			for _, found := range regexp.MustCompile(`(?m)^< {"type":"([\w.]+)"(?:.*?"event":"([\w.]+)")?`).FindAllStringSubmatch(x.Answer, -1) {
				shown["received "+found[1]] = true
				shown["events "+found[2]] = true
			}
			for _, found := range regexp.MustCompile(`(?m)^closed (\d+)`).FindAllStringSubmatch(x.Answer, -1) {
				shown["closed "+found[1]] = true
			}
			continue
		}
		method, target, _ := strings.Cut(strings.SplitN(x.Step, "\n", 2)[0], " ")
		status := x.Answer[:3]
		if code := regexp.MustCompile(`"type":"error","code":"(\w+)"`).FindStringSubmatch(x.Answer); code != nil {
			shown["statuses "+status+" "+code[1]] = true
		}
		u, err := url.Parse(regexp.MustCompile(`\$\{\w+\}`).ReplaceAllString(target, "x"))
		if err != nil || status >= "300" {
			continue
		}
		_, pattern := mux.Handler(&http.Request{Method: method, URL: u})
		paths = append(paths, shownPath{pattern, u.Query()})
	}
	for section, list := range rows {
		for _, row := range list {
			if section == "paths" {
				if !slices.ContainsFunc(paths, func(p shownPath) bool { return p.shows(row) }) {
					t.Errorf("no conversation shows the path %s", row)
				}
			} else if !shown[section+" "+row] {
				t.Errorf("no conversation shows %s: %s", section, row)
			}
		}
	}
}

type shownPath struct {
	pattern string
	query   url.Values
}

func (p shownPath) shows(row string) bool {
	pattern, parameters, _ := strings.Cut(row, "?")
	if p.pattern != pattern {
		return false
	}
	for name := range strings.SplitSeq(parameters, "&") {
		if name != "" && !p.query.Has(name) {
			return false
		}
	}
	return true
}

// readRows reads the sections of testdata/rows.txt.
func readRows(t *testing.T) map[string][]string {
	t.Helper()
	f, err := os.Open("testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, section := map[string][]string{}, ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			rows[section] = append(rows[section], line)
		}
	}
	if err := lines.Err(); err != nil || len(rows) < 5 {
		t.Fatal(fmt.Sprint(len(rows), " sections, ", err))
	}
	return rows
}

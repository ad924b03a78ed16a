package agentchat_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"koine/internal/dialect/agentchat"
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
	var exchanges []exchange
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		exchanges = append(exchanges, exchangesOf(t, file)...)
	}
	var paths []shownPath
	for _, x := range exchanges {
		if x.socket {
			for _, found := range regexp.MustCompile(`(?m)^> {"type":"([\w.]+)"`).FindAllStringSubmatch(x.request, -1) {
				shown["sent "+found[1]] = true
			}
			for _, found := range regexp.MustCompile(`(?m)^< {"type":"([\w.]+)"(?:.*?"event":"([\w.]+)")?`).FindAllStringSubmatch(x.answer, -1) {
				shown["received "+found[1]] = true
				shown["events "+found[2]] = true
			}
			for _, found := range regexp.MustCompile(`(?m)^closed (\d+)`).FindAllStringSubmatch(x.answer, -1) {
				shown["closed "+found[1]] = true
			}
			continue
		}
		method, target, _ := strings.Cut(strings.SplitN(x.request, "\n", 2)[0], " ")
		status := x.answer[:3]
		if code := regexp.MustCompile(`"type":"error","code":"(\w+)"`).FindStringSubmatch(x.answer); code != nil {
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

type exchange struct {
	socket          bool
	request, answer string
}

func exchangesOf(t *testing.T, file string) (out []exchange) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		request := string(archive.Files[i].Data)
		if archive.Files[i+1].Name != archive.Files[i].Name+" =>" {
			t.Fatalf("%s: %s has no answer", file, archive.Files[i].Name)
		}
		out = append(out, exchange{strings.HasPrefix(request, "SOCKET "), request, string(archive.Files[i+1].Data)})
	}
	return out
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

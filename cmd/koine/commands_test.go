package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// The commands that documents show without output work: each block of them has its place
// here.
func TestCommandsOfTheDocuments(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	elsewhere := func(*commands) {}
	for path, blocks := range map[string][]func(*commands){
		"README.md": {
			(*commands).serve,
			elsewhere, // all tests
			(*commands).askTheDemo,
		},
		"docs/first-agent.md": {(*commands).serve, elsewhere /* client's TestImportedFromAnotherModule */},
		"docs/trust.md":       {elsewhere /* TestTourOfTrust */, elsewhere /* TestTourOfTrust */},
		"docs/deploying.md":   {func(c *commands) { c.serveTeam() }, (*commands).administerTeam},
		"docs/operations.md":  {(*commands).diagnose, elsewhere /* TestScripts/names */, elsewhere /* TestScripts/load */, (*commands).backUp, (*commands).erase},
		"docs/security.md":    {(*commands).keepKeys, (*commands).serve, (*commands).suspend, (*commands).keepShapes, (*commands).lookFirst},
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text := document(t, path)
			shown := commandBlocks.FindAllStringSubmatch(text, -1)
			if len(shown) != len(blocks) {
				t.Fatalf("it has %d blocks of commands, of which %d are known here", len(shown), len(blocks))
			}
			for i, run := range blocks {
				dir := t.TempDir()
				run(&commands{t, text, shown[i][1] + shown[i][2], &shell{t: t, state: filepath.Join(dir, "state")}, dir})
			}
		})
	}
}

// The README builds and runs this program, as `make` builds it. CI builds it; here it is
// only compared.
func TestBuildOfTheREADME(t *testing.T) {
	slowtest.Long(t)
	text := document(t, "README.md")
	built := regexp.MustCompile(`(?m)^go build -o (\S+) (\S+)$`).FindAllStringSubmatch(text, -1)
	ran := regexp.MustCompile(`(?m)^go run (\S+) serve --demo$`).FindAllStringSubmatch(text, -1)
	if len(built) == 0 || len(built) != strings.Count(text, "go build") || len(ran) != 1 {
		t.Fatalf("it is built so: %q, and run so: %q", built, ran)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append(built, ran...) {
		list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Name}} {{.Dir}}", line[len(line)-1])
		list.Dir = "../.."
		if out, err := list.CombinedOutput(); err != nil || string(out) != "main "+here+"\n" {
			t.Errorf("%s: %s, %v; want the program in %s", line[0], out, err, here)
		}
	}
	for _, line := range built {
		if !strings.Contains(text, "\n./"+line[1]+" ") {
			t.Errorf("%s: nothing in it is run as ./%s", line[0], line[1])
		}
		if made := "\tgo build -o bin/" + line[1] + " " + line[2] + "\n"; !strings.Contains(document(t, "Makefile"), made) {
			t.Errorf("%s: the Makefile has no %q", line[0], made)
		}
	}
}

// The settings and rules that documents show are taken.
func TestFilesOfTheDocuments(t *testing.T) {
	settings := filesOf(document(t, "docs/operations.md"), "yaml")
	if len(settings) != 1 {
		t.Fatalf("found %d files of settings", len(settings))
	}
	server, _ := startServer(t, "--config", written(t, "koine.yaml", settings[0]))
	if log := server.log.String(); !secretOfKey.MatchString(log) {
		t.Errorf("a server whose settings say that it knows keys printed none:\n%s", log)
	}
	rules := filesOf(document(t, "docs/security.md"), "yaml")
	if len(rules) != 2 {
		t.Fatalf("found %d pieces of rules", len(rules))
	}
	file := written(t, "rules.yaml", strings.Join(rules, ""))
	if out, err := exec.CommandContext(t.Context(), "koine", "rules", "check", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// commandBlocks are those without output, and queries within a text.
var commandBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```|`(koine query '[^`]*')`")

// document is the text of one, by its path from the root.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// filesOf are the blocks of a kind.
func filesOf(text, kind string) (files []string) {
	for _, block := range regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		files = append(files, block[1])
	}
	return files
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serverOf are the flags of the server whose line contains a word, except for its address;
// files of the repository are found from here.
func serverOf(t *testing.T, text, word string) []string {
	t.Helper()
	for line := range strings.Lines(text) {
		if _, flags, ok := strings.Cut(line, "koine serve "); ok && strings.Contains(flags, word) {
			flags = regexp.MustCompile(`--listen \S+`).ReplaceAllString(flags, "")
			return strings.Fields(strings.ReplaceAll(flags, " examples/", " ../../examples/"))
		}
	}
	t.Fatalf("no line starts a server with %s", word)
	return nil
}

// commands are those of one block, with a directory of their own.
type commands struct {
	*testing.T
	document string
	block    string
	shell    *shell
	dir      string
}

// run runs some of the commands as they are shown, except for their server.
func (c *commands) run(lines, url string) string {
	c.Helper()
	lines = strings.ReplaceAll(strings.ReplaceAll(lines, "http://127.0.0.1:8080", url), "./koine ", "koine ")
	printed, err := c.shell.run("set -e\n" + lines)
	if err != nil {
		c.Fatalf("%v\n%s\n%s", err, lines, printed)
	}
	return printed
}

// has fails unless a text is in the output.
func (c *commands) has(printed string, texts ...string) {
	c.Helper()
	for _, text := range texts {
		if !strings.Contains(printed, text) {
			c.Errorf("there is no %q in what is printed by\n%s\n%s", text, c.block, printed)
		}
	}
}

// write puts a file into their directory.
func (c *commands) write(name, text string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// environment sets the server and the key of the commands.
func (c *commands) environment(url, key string) {
	c.run("export KOINE_URL="+url+" KOINE_KEY="+key, url)
}

// serve starts the server of the block.
func (c *commands) serve() {
	// the example of RFC 7517
	const keys = `{"keys": [{"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`
	c.write("jwks.json", keys)
	flags := serverOf(c.T, c.block+"\n", "--")
	for i, flag := range flags {
		if flag == "jwks.json" {
			flags[i] = filepath.Join(c.dir, flag)
		}
	}
	startServer(c.T, flags...)
}

// serveTeam starts the server of the block, which writes the first key into a file of
// the commands' directory.
func (c *commands) serveTeam() string {
	var flags []string
	given := serverOf(c.T, c.document, "--admin-key-file")
	for i := 0; i < len(given); i++ {
		switch given[i] {
		case "--data": // one of the test's own
			i++
		case "--admin-key-file":
			i++
			flags = append(flags, "--admin-key-file", filepath.Join(c.dir, given[i]))
		default:
			flags = append(flags, given[i])
		}
	}
	_, url := startServer(c.T, flags...)
	return url
}

// administerTeam makes a key, a graph and a backup on that server, with the first key.
func (c *commands) administerTeam() {
	printed := c.run(c.block, c.serveTeam())
	c.has(printed, "of agent://dora", "prices")
	if _, err := os.Stat(filepath.Join(c.dir, "monday.koine")); err != nil {
		c.Error(err)
	}
}

// askTheDemo runs the README's queries and searches, and follows the server up to the first event.
func (c *commands) askTheDemo() {
	_, url := startServer(c.T, "--demo")
	c.environment(url, "")
	for line := range strings.Lines(c.block) {
		switch {
		case strings.HasPrefix(line, "go build"): // TestBuildOfTheREADME
		case strings.Contains(line, " watch "):
			c.follow(url, line)
		case strings.Contains(line, " query "):
			c.has(c.run(line, url), "lab:Finding")
		case strings.Contains(line, " search "):
			c.has(c.run(line, url), "Water in the crystal costs capacity")
		case strings.Contains(line, " recall "):
			c.has(c.run(line, url), "finding:2 (Drying the cell changes nothing)")
		default:
			c.has(c.run(line, url), "serve")
		}
	}
}

// follow runs a command that does not end until it has printed a line.
func (c *commands) follow(url, line string) {
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+strings.ReplaceAll(line, "./koine ", "koine "))
	cmd.Env = append(os.Environ(), "KOINE_URL="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	cancel()
	_ = cmd.Wait() // killed
	if err != nil {
		c.Fatalf("%s printed nothing: %v", line, err)
	}
	c.has(first, "finding:1")
}

// backUp backs a server up as documented, with a change between the backups, and restores
// it.
func (c *commands) backUp() {
	_, url := startServer(c.T, "--demo")
	c.environment(url, "")
	full, rest, _ := strings.Cut(c.block, "\n")
	c.run(full, url)
	c.run("koine update add finding:1 lab:status doubtful", url)
	c.has(c.run(rest, url), "no damage found")
	c.has(c.run("koine export --data ./new-data", url), `<https://koine.example/demo/status> "doubtful"`)
}

// diagnose reads the operator's pages. The profile is short, and is not opened.
func (c *commands) diagnose() {
	server, _ := startServer(c.T, "--debug-listen", "127.0.0.1:0")
	page := regexp.MustCompile(`debug pages.*(http://127\.0\.0\.1:\d+)/`).FindStringSubmatch(server.log.String())
	if page == nil {
		c.Fatalf("the log has no address of the pages:\n%s", server.log)
	}
	short := strings.NewReplacer("http://127.0.0.1:6060", page[1], "seconds=10", "seconds=1", "go tool pprof", "curl -sf -o profile")
	c.has(c.run(short.Replace(c.block), ""), `"slowest":`)
	if info, err := os.Stat(filepath.Join(c.dir, "profile")); err != nil || info.Size() == 0 {
		c.Errorf("the profile is %v, %v", info, err)
	}
}

// erase erases the given content of a directory.
func (c *commands) erase() {
	const subject = "https://example.org/person/7"
	c.write("people.nt", "<"+subject+"> <urn:p> \"seven\" .\n<https://example.org/person/8> <urn:p> \"eight\" .\n")
	c.run("koine load --data ./koine-data people.nt", "")
	c.has(c.block, subject)
	c.run(c.block, "")
	if left := c.run("koine export --data ./koine-data", ""); strings.Contains(left, subject) || !strings.Contains(left, "eight") {
		c.Errorf("what is left:\n%s", left)
	}
}

// keysServer is a server that knows keys, which the commands use as its administrator.
func (c *commands) keysServer() (url string) {
	server, url := startServer(c.T, "--demo", "--auth", "keys")
	c.environment(url, secretOfKey.FindString(server.log.String()))
	return url
}

// keepKeys creates a key, and runs the commands with ID for that one.
func (c *commands) keepKeys() {
	url := c.keysServer()
	create, rest, _ := strings.Cut(c.block, "\n")
	id := regexp.MustCompile(`Key (\w{12}) of agent://dora`).FindStringSubmatch(c.run(create, url))
	if id == nil {
		c.Fatal("no key was made")
	}
	c.has(c.run(strings.ReplaceAll(rest, " ID", " "+id[1]), url), id[1], "Dora's laptop")
}

func (c *commands) suspend() {
	url := c.keysServer()
	c.run("koine keys create --agent dora", url)
	c.has(c.run(c.block, url), "SUSPENDED")
}

// keepShapes puts the shapes that the document shows, and takes them away.
func (c *commands) keepShapes() {
	_, url := startServer(c.T, "--demo")
	c.environment(url, "")
	for _, shapes := range filesOf(c.document, "turtle") {
		c.write("people.ttl", shapes)
	}
	c.has(c.run(c.block, url), "https://example.org/PersonShape")
	if left := c.run("koine shapes list", url); left != "" {
		c.Errorf("shapes are left:\n%s", left)
	}
}

// lookFirst runs a quarantine as a dry run.
func (c *commands) lookFirst() {
	_, url := startServer(c.T, "--demo")
	c.environment(url, "")
	if printed := c.run(c.block, url); !regexp.MustCompile(`assertionsAffected  [1-9]`).MatchString(printed) {
		c.Errorf("nothing would be hidden:\n%s", printed)
	}
}

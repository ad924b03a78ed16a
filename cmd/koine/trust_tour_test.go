package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/slowtest"
)

// trustBlocks are those of docs/trust.md: a command and its output. The word refused marks
// one that fails.
var trustBlocks = regexp.MustCompile("(?s)```console trust( refused)?\n\\$ ([^\n]*(?:\n  [^\n]*)*)\n(.*?)```")

// trustMasks are the parts that differ from run to run, beside masks.
var trustMasks = regexp.MustCompile(`ak_live_\w+|Key \w{12} of|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// The tour of trust is run as in the document: against the server that it starts, except
// for its port, in one shell, with the administrator's key that the first start printed.
// With UPDATE_README=1 the output is written into it.
func TestTourOfTrust(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const path = "../../docs/trust.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	server, url := startServer(t, serverOf(t, string(text), "--auth keys")...)
	shell := &shell{t: t, state: filepath.Join(t.TempDir(), "state")}
	shell.run("export KOINE_URL=" + url + " ADMIN=" + trustMasks.FindString(server.log.String()))
	commands := 0
	updated := trustBlocks.ReplaceAllStringFunc(string(text), func(block string) string {
		commands++
		parts := trustBlocks.FindStringSubmatch(block)
		printed, err := shell.run(strings.ReplaceAll(parts[2], "./koine", "koine"))
		if (err != nil) != (parts[1] != "") {
			t.Errorf("%s: %v\n%s", parts[2], err, printed)
		}
		return "```console trust" + parts[1] + "\n$ " + parts[2] + "\n" + printed + "```"
	})
	if all := strings.Count(string(text), "```console trust"); commands != all || all < 6 {
		t.Errorf("%d of %d commands are run", commands, all)
	}
	if os.Getenv("UPDATE_README") != "" {
		if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	masked := func(s string) string { return trustMasks.ReplaceAllString(mask(s), "…") }
	if diff := cmp.Diff(masked(string(text)), masked(updated)); diff != "" {
		t.Errorf("what %s shows is not what happens (-shown +happens); UPDATE_README=1 writes it:\n%s", path, diff)
	}
}

// shell runs one command after the other, each with the variables that those
// before it set.
type shell struct {
	t     *testing.T
	state string
}

// run returns the output of the command, with a line break at the end if there is any.
func (s *shell) run(command string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	script := "set -a; [ ! -f \"$STATE\" ] || . \"$STATE\"\n" + command + "\nstatus=$?; export -p >\"$STATE\"; exit $status"
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = filepath.Dir(s.state), append(os.Environ(), "STATE="+s.state)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

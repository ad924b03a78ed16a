package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
)

// welcomeCommands are the commands that the welcome shows, over as many lines as they
// take, but for those that need a word filled in.
var welcomeCommands = regexp.MustCompile(`(?m)^  ((?:curl|koine query) [^\n]*(?:\n    [^\n]*)*)`)

// The suggested commands of the server work as printed, with the printed key: the secret
// itself is there once.
func TestWelcomeCanBeTried(t *testing.T) {
	slowtest.Long(t)
	for _, flags := range [][]string{{}, {"--auth", "keys"}} {
		t.Run(strings.Join(append([]string{"serve"}, flags...), " "), func(t *testing.T) {
			server, url := startServer(t, slices.Concat([]string{"--demo", "--heartbeat", "1s"}, flags)...)
			var text string // the rest of it comes behind the line that tells the address
			eventually(t, "the welcome ends", func() bool {
				text = server.log.String()
				return strings.Contains(text, "The demo data is deleted")
			})
			shell := &shell{t: t, state: t.TempDir() + "/state"}
			want := 4
			if len(flags) > 0 {
				want = 5
				key := trustMasks.FindString(text)
				if n := strings.Count(text, key); key == "" || n != 1 {
					t.Errorf("the key is printed %d times:\n%s", n, text)
				}
				shell.run("export KOINE_URL=" + url + " KOINE_KEY=" + key)
			}
			commands := welcomeCommands.FindAllStringSubmatch(text, -1)
			if len(commands) != want {
				t.Errorf("got %d commands to try, want %d:\n%s", len(commands), want, text)
			}
			for _, c := range commands {
				command := c[1]
				if strings.Contains(command, "/changes") {
					command += " -s | head -n 1" // it goes on otherwise
				}
				printed, err := shell.run(command)
				if err != nil || printed == "" || strings.Contains(printed, `"error`) {
					t.Errorf("%s\n%v\n%s", command, err, printed)
				}
			}
		})
	}
}

// The demo's named graphs are readable with any key, and belong to the agents that fill
// them.
func TestDemoWithKeys(t *testing.T) {
	server, url := startServer(t, "--demo", "--auth", "keys")
	shell := &shell{t: t, state: t.TempDir() + "/state"}
	shell.run("export KOINE_URL=" + url + " ADMIN=" + trustMasks.FindString(server.log.String()))
	for _, step := range []struct{ command, want string }{
		{"ELLA=$(KOINE_KEY=$ADMIN koine keys create --agent ella 2>/dev/null); CHEN=$(KOINE_KEY=$ADMIN koine keys create --agent chen 2>/dev/null)", ""},
		{`KOINE_KEY=$ELLA koine query --compact '{ graphs { nodes { iri } } statements(view: {graphs: ["lab:measurements"]}) { nodes { graph } } }' | cut -c1-170`,
			`{"graphs":{"nodes":[{"iri":null},{"iri":"https://koine.example/demo/literature"},{"iri":"https://koine.example/demo/measurements"}]},"statements":{"nodes":[{"graph":"http`},
		{`KOINE_KEY=$ELLA koine update add lab:run-7 rdfs:comment "Mine" --graph lab:measurements 2>&1 | grep -o '(.*)'`, "(PERMISSION_DENIED)"},
		{`KOINE_KEY=$CHEN koine update add lab:run-7 rdfs:comment "Looked at again" --graph lab:measurements | grep -o Verified`, "Verified"},
		{`KOINE_KEY=$CHEN koine query --compact '{ graph(iri: "lab:measurements") { policy { visibility owners } } }'`,
			`{"graph":{"policy":{"visibility":"PUBLIC","owners":["agent://chen"]}}}`},
	} {
		printed, err := shell.run(step.command)
		if err != nil || strings.TrimSpace(printed) != step.want {
			t.Errorf("%s\ngot  %s%v\nwant %s", step.command, printed, err, step.want)
		}
	}
}

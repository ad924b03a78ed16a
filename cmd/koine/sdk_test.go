package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// The official JavaScript clients of A2A 1.0 and 0.3 use all methods over each binding, and
// are notified.
func TestOfficialScriptClients(t *testing.T) {
	for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
		t.Run(binding, func(t *testing.T) {
			runClient(t, "", binding, "sdk.mjs", "--conformance-agent", "--allow-private-webhooks")
		})
	}
}

// And koine itself is an agent whose card they read, and that they send messages to.
func TestOfficialScriptClientsAskKoine(t *testing.T) { runClients(t, "self.mjs") }

// runClients lets a script of the clients loose on a server.
func runClients(t *testing.T, script string, args ...string) {
	t.Helper()
	runClient(t, "", "", script, args...)
}

// runClient is runClients for the client of one version, "" for both, over one binding.
func runClient(t *testing.T, version, binding, script string, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a test with node; -short leaves it out")
	}
	const clients = "../../a2a/clients"
	if _, err := os.Stat(clients + "/node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	_, url := startServer(t, args...)
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(2*time.Minute))
	defer cancel()
	command := exec.CommandContext(ctx, "node", script, url, version, binding)
	command.Dir = clients
	out, err := command.CombinedOutput()
	want := "1.0 ok\n0.3 ok\n"
	if version != "" {
		want = version + " ok\n"
	}
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

package online

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"koine/cmd/koine/internal/cli"
)

// HealthCommand reports whether a server is ready. Containers without a shell use it as
// their probe.
type HealthCommand struct {
	URL string `help:"Server to check (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	cli.CAFlag
	Live    bool          `help:"Check only that the server responds, not that it accepts updates."`
	Timeout time.Duration `help:"How long to wait for the response." default:"3s"`
}

// Help is shown by --help.
func (HealthCommand) Help() string {
	return `The exit code is 0 if the server is ready, 1 if it is not, and 5 if it does not respond. No credentials are required.

Examples:
  koine health
  koine health --live --url https://koine.example`
}

// maxHealthBytes bounds the response body.
const maxHealthBytes = 64 << 10

// Run requests the status and prints it.
func (c *HealthCommand) Run(ctx context.Context, t cli.Terminal) error {
	server := &cli.ServerFlags{URL: c.URL, CAFlag: c.CAFlag}
	transport, err := server.NewTransport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(server.ServerURL(), "/")+path, nil)
	if err != nil {
		return cli.AsUsage(err)
	}
	request.Header.Set("User-Agent", cli.UserAgent())
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return server.UnreachableError(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealthBytes))
	if err != nil {
		return server.UnreachableError(err)
	}
	var said struct{ Status, Reason string }
	_ = json.Unmarshal(body, &said) // the body may be a proxy's error page
	if response.StatusCode != http.StatusOK || said.Status == "" {
		return fmt.Errorf("the server at %s is not ready: %s", server.ServerURL(), cmp.Or(said.Reason, response.Status))
	}
	_, err = fmt.Fprintln(t.Out, said.Status)
	return err
}

package main

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/dialect/openintent"
	"koine/internal/httpd"
)

// intentFlags configure OpenIntent.
type intentFlags struct {
	OpenintentPrefix   string        `help:"Path before the paths of OpenIntent, /api/v1 and its documents in /.well-known. It is part of the base_url of a client." default:"/" placeholder:"PATH" name:"openintent-prefix"`
	OpenintentRFCNames bool          `help:"Write the event of an audited message as channel_message in lists of events too, as RFC-0021 does. The Python SDK cannot read such a list." name:"openintent-rfc-names"`
	OpenintentKeep     time.Duration `help:"How long messages keep their content after their intent ended, except in audited channels; 0 keeps it for ever." default:"0s" placeholder:"DURATION" name:"openintent-keep"`
}

// Validate checks the bounds of the flags.
func (f *intentFlags) Validate() error {
	if f.OpenintentKeep < 0 {
		return errors.New("--openintent-keep must not be negative: give a duration such as 720h, or 0 to keep messages for ever")
	}
	return nil
}

// refusalDelay is the wait before a refused stream of OpenIntent is answered.
const refusalDelay = 2 * time.Second

// intentPrefix returns the path prefix of OpenIntent, "" for the root. The others are those
// of protocols with a prefix of their own.
func (f *intentFlags) intentPrefix(others ...string) (string, error) {
	prefix := strings.TrimSuffix(f.OpenintentPrefix, "/")
	if prefix != "" && (prefix[0] != '/' || path.Clean(prefix) != prefix || strings.ContainsFunc(prefix, notInPath)) || f.OpenintentPrefix == "" {
		return "", cli.Usagef("--openintent-prefix %s: must be / or a path such as /openintent, of letters, digits, and - . _ ~", f.OpenintentPrefix)
	}
	root := prefix + openintent.Root
	taken := func(other string) bool {
		return other != "" && (strings.HasPrefix(other+"/", root+"/") || strings.HasPrefix(root+"/", other+"/"))
	}
	first := firstElement(root)
	if slices.Contains(reservedPaths, first) || slices.ContainsFunc(others, taken) || slices.Contains(others, "") && slices.Contains([]string{"messages", "tasks", "ws"}, first) {
		return "", cli.Usagef("--openintent-prefix %s: %s is used by another protocol: choose a path such as /openintent", f.OpenintentPrefix, root)
	}
	return prefix, nil
}

// handleIntents registers the routes of OpenIntent.
func handleIntents(server *httpd.Server, prefix string, h http.Handler) {
	h = http.StripPrefix(prefix, h)
	server.Handle(prefix+openintent.Root+"/", httpd.Detailed, h)
	for _, pattern := range openintent.StreamPaths() {
		method, path, _ := strings.Cut(pattern, " ")
		pattern = method + " " + prefix + path
		server.Handle(pattern, httpd.Detailed, h)
		server.DelayRefusals(pattern, refusalDelay)
	}
	documents := http.StripPrefix(prefix, openintent.NewDiscoveryHandler())
	for _, path := range []string{openintent.DiscoveryPath, openintent.CompatibilityPath} {
		server.HandlePublic("GET "+prefix+path, httpd.Detailed, documents)
	}
}

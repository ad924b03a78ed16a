package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the build of a release (-ldflags "-X main.version=…").
var version = ""

// versionCommand prints the version.
type versionCommand struct{}

// Run prints it on one line.
func (versionCommand) Run(t terminal) error {
	_, err := fmt.Fprintf(t.out, "koine %s (%s, %s/%s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionText is the release, or else the commit that it was built from.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if revision == "" {
		return "development"
	}
	return revision + changed
}

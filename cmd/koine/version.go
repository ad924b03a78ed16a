package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// release is the version under development.
const release = "0.1.0-dev"

// version, commit and date are set by the linker for builds without VCS stamps: -ldflags "-X
// main.version=… -X main.commit=… -X main.date=…".
var version, commit, date string

// build describes the origin of the binary.
type build struct {
	Version string // semantic version, between releases with the commit
	Commit  string // full commit id, "" if unknown
	Date    string // time of the commit, RFC 3339, "" if unknown
	Changed bool   // the work tree had uncommitted changes
}

// thisBuild describes this binary.
var thisBuild = sync.OnceValue(func() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return newBuild(info, version, commit, date)
})

// newBuild combines the linker's values with the stamps of the go command; the linker's take
// precedence.
func newBuild(info *debug.BuildInfo, version, commit, date string) build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := build{Version: version, Commit: cmp.Or(commit, settings["vcs.revision"]), Date: cmp.Or(date, settings["vcs.time"])}
	b.Changed = commit == "" && settings["vcs.modified"] == "true"
	if b.Version == "" {
		b.Version = releaseVersion(info.Main.Version)
		if b.Commit != "" && b.Version == release {
			b.Version += "+" + b.Commit[:min(12, len(b.Commit))]
			if b.Changed {
				b.Version += ".changed"
			}
		}
	}
	return b
}

// releaseVersion returns the release of a module version, or release for pseudo-versions.
func releaseVersion(module string) string {
	if tag, ok := strings.CutPrefix(module, "v"); ok && !strings.HasPrefix(tag, "0.0.0-") && !strings.Contains(tag, "-0.") && !strings.HasSuffix(tag, "+dirty") {
		return tag
	}
	return release
}

// String returns the line printed by koine version.
func (b build) String() string {
	return fmt.Sprintf("koine %s (commit %s, date %s, %s, %s/%s)", b.Version, cmp.Or(b.Commit, "unknown"), cmp.Or(b.Date, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// metricLabels returns the labels of the metric koine_build_info.
func (b build) metricLabels() map[string]string {
	return map[string]string{"version": b.Version, "commit": b.Commit, "date": b.Date, "goversion": runtime.Version()}
}

// logTo logs the build, as the first line of a server's log.
func (b build) logTo(log *slog.Logger) {
	log.Info("koine starting", "version", b.Version, "commit", cmp.Or(b.Commit, "unknown"), "date", cmp.Or(b.Date, "unknown"), "go", runtime.Version(), "platform", runtime.GOOS+"/"+runtime.GOARCH)
}

// versionCommand prints the version.
type versionCommand struct{}

// Run prints the version on one line.
func (versionCommand) Run(t terminal) error {
	_, err := fmt.Fprintln(t.out, thisBuild())
	return err
}

// versionText returns the version alone, for user agents and the agent card.
func versionText() string { return thisBuild().Version }

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

// release is the version that this source becomes.
const release = "0.1.0-dev"

// A build may say what it is made of, where the go command does not stamp it or there
// is no repository: -ldflags "-X main.version=… -X main.commit=… -X main.date=…".
var version, commit, date string

// build is what the binary was built from.
type build struct {
	Version string // a semantic version; of a build between releases also its commit
	Commit  string // the whole commit id, "" if unknown
	Date    string // of the commit, RFC 3339, "" if unknown
	Changed bool   // there were changes beyond the commit
}

// thisBuild describes this binary.
var thisBuild = sync.OnceValue(func() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, version, commit, date)
})

// buildOf prefers what the linker was told to what the go command stamped.
func buildOf(info *debug.BuildInfo, version, commit, date string) build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := build{Version: version, Commit: cmp.Or(commit, settings["vcs.revision"]), Date: cmp.Or(date, settings["vcs.time"])}
	b.Changed = commit == "" && settings["vcs.modified"] == "true"
	if b.Version == "" {
		b.Version = releaseOf(info.Main.Version)
		if b.Commit != "" && b.Version == release {
			b.Version += "+" + b.Commit[:min(12, len(b.Commit))]
			if b.Changed {
				b.Version += ".changed"
			}
		}
	}
	return b
}

// releaseOf is the release that a module version is, the coming one for versions
// that the go command makes up of a commit.
func releaseOf(module string) string {
	if tag, ok := strings.CutPrefix(module, "v"); ok && !strings.HasPrefix(tag, "0.0.0-") && !strings.Contains(tag, "-0.") && !strings.HasSuffix(tag, "+dirty") {
		return tag
	}
	return release
}

// String is the one line of koine version.
func (b build) String() string {
	return fmt.Sprintf("koine %s (commit %s, date %s, %s, %s/%s)", b.Version, cmp.Or(b.Commit, "unknown"), cmp.Or(b.Date, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// metricLabels are those of the metric koine_build_info.
func (b build) metricLabels() map[string]string {
	return map[string]string{"version": b.Version, "commit": b.Commit, "date": b.Date, "goversion": runtime.Version()}
}

// logTo writes the first line of a server's log.
func (b build) logTo(log *slog.Logger) {
	log.Info("koine starts", "version", b.Version, "commit", cmp.Or(b.Commit, "unknown"), "date", cmp.Or(b.Date, "unknown"), "go", runtime.Version(), "platform", runtime.GOOS+"/"+runtime.GOARCH)
}

// versionCommand prints the version.
type versionCommand struct{}

// Run prints it on one line.
func (versionCommand) Run(t terminal) error {
	_, err := fmt.Fprintln(t.out, thisBuild())
	return err
}

// versionText is the version alone, as user agents and the agent card have it.
func versionText() string { return thisBuild().Version }

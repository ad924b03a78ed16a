// Package buildinfo says which build of koine this is: version, commit and date, from the
// linker or from the stamps of the go command. Current is where to begin.
package buildinfo

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// release is the version of this source. Builds of commits behind the release have it with the
// commit.
const release = "0.1.0"

// version, commit and date are set by the linker for builds without VCS stamps: -ldflags "-X
// koine/cmd/koine/internal/buildinfo.version=…" and so on.
var version, commit, date string

// Info describes the origin of the binary.
type Info struct {
	Version string // semantic version, between releases with the commit
	Commit  string // full commit id, "" if unknown
	Date    string // time of the commit, RFC 3339, "" if unknown
	Changed bool   // the work tree had uncommitted changes
}

// Current describes this binary.
var Current = sync.OnceValue(func() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return newBuild(info, version, commit, date)
})

// newBuild combines the linker's values with the stamps of the go command; the linker's take
// precedence.
func newBuild(info *debug.BuildInfo, version, commit, date string) Info {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := Info{Version: version, Commit: cmp.Or(commit, settings["vcs.revision"]), Date: cmp.Or(date, settings["vcs.time"])}
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
func (b Info) String() string {
	return fmt.Sprintf("koine %s (commit %s, date %s, %s, %s/%s)", b.Version, cmp.Or(b.Commit, "unknown"), cmp.Or(b.Date, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// MetricLabels returns the labels of the metric koine_build_info.
func (b Info) MetricLabels() map[string]string {
	return map[string]string{"version": b.Version, "commit": b.Commit, "date": b.Date, "goversion": runtime.Version()}
}

// LogTo logs the build, as the first line of a server's log.
func (b Info) LogTo(log *slog.Logger) {
	log.Info("koine starting", "version", b.Version, "commit", cmp.Or(b.Commit, "unknown"), "date", cmp.Or(b.Date, "unknown"), "go", runtime.Version(), "platform", runtime.GOOS+"/"+runtime.GOARCH)
}

// Version returns the version alone, for user agents and the agent card.
func Version() string { return Current().Version }

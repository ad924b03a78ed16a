package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	stamped := func(module string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: module}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const id, at = "cf518e50e6ee6ff5e270c5ded9840f689535be17", "2026-11-22T22:42:49Z"
	for _, row := range []struct {
		name                  string
		info                  *debug.BuildInfo
		version, commit, date string
		want                  Info
	}{
		{"nothing is known", stamped("(devel)"), "", "", "", Info{Version: release}},
		{"a commit", stamped("v0.0.0-20261122224249-cf518e50e6ee", "vcs.revision", id, "vcs.time", at, "vcs.modified", "false"), "", "", "", Info{release + "+cf518e50e6ee", id, at, false}},
		{"changes beyond it", stamped("v0.0.0-20261122224249-cf518e50e6ee+dirty", "vcs.revision", id, "vcs.time", at, "vcs.modified", "true"), "", "", "", Info{release + "+cf518e50e6ee.changed", id, at, true}},
		{"a release", stamped("v0.2.1", "vcs.revision", id, "vcs.time", at), "", "", "", Info{"0.2.1", id, at, false}},
		{"behind a release", stamped("v0.2.2-0.20261122224249-cf518e50e6ee", "vcs.revision", id), "", "", "", Info{release + "+cf518e50e6ee", id, "", false}},
		{"from a proxy", stamped("v0.2.1"), "", "", "", Info{Version: "0.2.1"}},
		{"told by the linker", stamped("(devel)"), "0.3.0", id, at, Info{"0.3.0", id, at, false}},
		{"a commit told by the linker", stamped("(devel)", "vcs.revision", "other", "vcs.modified", "true"), "", id, at, Info{release + "+cf518e50e6ee", id, at, false}},
	} {
		if got := newBuild(row.info, row.version, row.commit, row.date); got != row.want {
			t.Errorf("%s: got %+v, want %+v", row.name, got, row.want)
		}
	}
}

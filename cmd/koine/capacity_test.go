package main

import (
	"errors"
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
	"koine/internal/httpd"
)

// Shared resources have configurable bounds, and are refused past them.
func TestCapacityFlags(t *testing.T) {
	n := func(n int) *int { return &n }
	valid := capacityFlags{MaxStreams: 10_000, ReceivedMiB: n(256)}
	with := func(change func(*capacityFlags)) capacityFlags {
		f := valid
		change(&f)
		return f
	}
	for _, row := range []struct {
		flags capacityFlags
		want  string
	}{
		{valid, ""},
		{with(func(f *capacityFlags) { f.MaxStreams = 1 }), ""},
		{with(func(f *capacityFlags) { f.MaxStreams = maxCapacity }), ""},
		{with(func(f *capacityFlags) { f.MaxStreams = 0 }), "--max-streams must be between 1 and 1000000"},
		{with(func(f *capacityFlags) { f.MaxStreams = maxCapacity + 1 }), "--max-streams"},
		{with(func(f *capacityFlags) { f.MaxConnections = n(httpd.MinConnections) }), ""},
		{with(func(f *capacityFlags) { f.MaxConnections = n(maxCapacity) }), ""},
		{with(func(f *capacityFlags) { f.MaxConnections = n(httpd.MinConnections - 1) }), "--max-connections must be between 8 and 1000000"},
		{with(func(f *capacityFlags) { f.MaxConnections = n(maxCapacity + 1) }), "--max-connections"},
		{with(func(f *capacityFlags) { f.ReceivedMiB = n(minReceivedMiB) }), ""},
		{with(func(f *capacityFlags) { f.ReceivedMiB = n(maxReceivedMiB) }), ""},
		{with(func(f *capacityFlags) { f.ReceivedMiB = n(minReceivedMiB - 1) }), "--received-mib must be between 32 and 65536"},
		{with(func(f *capacityFlags) { f.ReceivedMiB = n(maxReceivedMiB + 1) }), "--received-mib"},
	} {
		err := row.flags.validateRanges()
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || !errors.As(err, new(cli.UsageError))) {
			t.Errorf("%+v: got %v, want %q", row.flags, err, row.want)
		}
	}
}

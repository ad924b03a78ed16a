package kg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// Registered prefixes are present when the store is opened again, instead of the earlier
// ones.
func TestKeptPrefixes(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	if kept := s.KeptPrefixes(); len(kept) != 0 {
		t.Fatalf("a new store keeps %v", kept)
	}
	for _, want := range []map[string]string{{"ex": "urn:a:"}, {"ex": "https://x.example/", "y": "urn:y:"}, {}} {
		if err := keepPrefixes(s, want); err != nil {
			t.Fatal(err)
		}
		s.KeptPrefixes()["mine"] = "urn:mine:" // the store's own are not touched
		for range 2 {
			if kept := s.KeptPrefixes(); !maps.Equal(kept, want) {
				t.Fatalf("kept are %v, want %v", kept, want)
			}
			mustClose(t, s)
			s = openStore(t, dir, smallOptions())
		}
	}
	mustClose(t, s)
	if err := keepPrefixes(s, nil); kg.CodeOf(err) != kg.CodeClosed {
		t.Errorf("after Close: %v, want CLOSED", err)
	}
}

// Invalid prefixes, and one more than the bound, change nothing.
func TestChangeNamesRefuses(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	many := map[string]string{}
	for i := range kg.MaxKeptPrefixes {
		many[fmt.Sprint("p", i)] = fmt.Sprintf("urn:p%d:", i)
	}
	if err := keepPrefixes(s, many); err != nil {
		t.Fatalf("%d prefixes: %v", len(many), err)
	}
	more := maps.Clone(many)
	more["more"] = "urn:more:"
	for want, bad := range map[kg.Code]map[string]string{
		kg.CodeLimitExceeded: more,
		kg.CodeInvalid:       {"http": "urn:x:"},
	} {
		if err := keepPrefixes(s, bad); kg.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := keepPrefixes(s, map[string]string{"ex": "no IRI"}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("a namespace that is no IRI: %v", err)
	}
	mustClose(t, s)
	if kept := openStore(t, dir, smallOptions()).KeptPrefixes(); !maps.Equal(kept, many) {
		t.Errorf("%d are kept, want the %d from before", len(kept), len(many))
	}
}

// keepPrefixes has a store keep these prefixes and no others.
func keepPrefixes(s *kg.Store, prefixes map[string]string) error {
	_, err := s.ChangeNames(context.Background(), kg.Meta{}, func(n *kg.Names) error {
		n.Prefixes = maps.Clone(prefixes)
		if n.Prefixes == nil {
			n.Prefixes = map[string]string{}
		}
		return nil
	})
	return err
}

// prefixesFile is the content of prefixes.json as format 1 has it.
func prefixesFile(t *testing.T, prefixes map[string]string) string {
	t.Helper()
	list, err := json.Marshal(prefixes)
	if err != nil {
		t.Fatal(err)
	}
	sum := crc32.Checksum(list, crc32.MakeTable(crc32.Castagnoli))
	return fmt.Sprintf(`{"version": 1, "prefixes": %s, "checksum": "%08x"}`, list, sum)
}

// A damaged file of prefixes is refused, for any corrupted byte; a file that was being
// written when the machine stopped is not.
func TestSpoiltPrefixes(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{"ex": "https://x.example/"}
	mustClose(t, openStore(t, dir, smallOptions()))
	raw := prefixesFile(t, want)
	write(t, dir, "prefixes.json.tmp", `{"version": 1, "pre`)
	refused := func(text, says string) {
		t.Helper()
		write(t, dir, "prefixes.json", text)
		s, err := kg.Open(dir, smallOptions())
		if err == nil {
			if kept := s.KeptPrefixes(); !maps.Equal(kept, want) {
				t.Errorf("with %q the prefixes are %v", text, kept)
			}
			mustClose(t, s)
		}
		if says != "" && (kg.CodeOf(err) != kg.CodeFormatUnknown || !strings.Contains(err.Error(), says)) {
			t.Errorf("with %q: %v, want FORMAT_UNKNOWN with %q", text, err, says)
		}
	}
	refused(strings.Replace(raw, `"version": 1`, `"version": 2`, 1), "version 2")
	refused(strings.Replace(raw, "x.example", "y.example", 1), "checksum")
	refused("", "cannot be read")
	refused("null", "version 0")
	for i := range raw {
		spoilt := []byte(raw)
		spoilt[i] ^= 1
		refused(string(spoilt), "") // white space may go bad
	}
}

// One commit moves the prefixes beside the log of an older directory into the log, and
// removes the file. Those in the log win, and a file that returns after the commit changes
// nothing.
func TestPrefixesFileIsTakenIntoTheLog(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	if err := keepPrefixes(s, map[string]string{"own": "urn:own:"}); err != nil {
		t.Fatal(err)
	}
	head := s.Head().Revision
	mustClose(t, s)
	file := prefixesFile(t, map[string]string{"ex": "https://x.example/", "own": "urn:other:"})
	want := map[string]string{"ex": "https://x.example/", "own": "urn:own:"}
	for range 3 {
		write(t, dir, "prefixes.json", file)
		s = openStore(t, dir, smallOptions())
		if kept := s.KeptPrefixes(); !maps.Equal(kept, want) {
			t.Errorf("kept are %v, want %v", kept, want)
		}
		if got := s.Head().Revision; got != head+1 {
			t.Errorf("the head is %d, want %d: one commit took the file in", got, head+1)
		}
		if _, err := os.Stat(filepath.Join(dir, "prefixes.json")); !os.IsNotExist(err) {
			t.Errorf("the file is still there: %v", err)
		}
		mustClose(t, s)
	}
}

// If the commit cannot be made, the file stays, and keeps its meaning.
func TestPrefixesFileStaysOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	mustClose(t, openStore(t, dir, smallOptions()))
	want := map[string]string{"ex": "https://x.example/"}
	write(t, dir, "prefixes.json", prefixesFile(t, want))
	var free atomic.Uint64
	o := smallOptions()
	o.ReserveBytes, o.FreeBytes = 1<<20, func(string) (uint64, error) { return free.Load(), nil }
	s := openStore(t, dir, o)
	if kept := s.KeptPrefixes(); !maps.Equal(kept, want) {
		t.Errorf("kept are %v, want %v", kept, want)
	}
	if ns, _ := s.Prefixes().Namespace("ex"); ns != want["ex"] {
		t.Errorf("ex is %q", ns)
	}
	if s.Head().Revision != 0 {
		t.Error("there is a commit on a full disk")
	}
	free.Store(1 << 30)
	if _, err := s.ChangeNames(t.Context(), kg.Meta{}, func(n *kg.Names) error { delete(n.Prefixes, "ex"); return nil }); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = openStore(t, dir, o)
	if kept := s.KeptPrefixes(); len(kept) != 0 {
		t.Errorf("kept are %v: what was removed came back", kept)
	}
}

// Readers of the log alone have the same names: a store that replays it, a restored one,
// one with a rebuilt index, one after an erasure, and one with a cut history.
func TestNamesAreInTheLog(t *testing.T) {
	slowtest.Long(t)
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	prefixes := map[string]string{"ex": "https://x.example/"}
	if _, err := s.ChangeNames(t.Context(), kg.Meta{}, func(n *kg.Names) error {
		n.Prefixes, n.Schemes["foo"] = maps.Clone(prefixes), true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	live := s.Prefixes()
	if got, err := live.Resource("ex:a"); err != nil || got != kg.IRI("https://x.example/a") {
		t.Errorf("ex:a is %v, %v", got, err)
	}
	old := live.Fixed()
	prefixes["ex"] = "https://y.example/"
	if err := keepPrefixes(s, prefixes); err != nil {
		t.Fatal(err)
	}
	if got, _ := live.Resource("ex:a"); got != kg.IRI("https://y.example/a") {
		t.Errorf("after the change ex:a is %v", got)
	}
	if got, _ := old.Resource("ex:a"); got != kg.IRI("https://x.example/a") {
		t.Errorf("what was fixed before the change is %v", got)
	}
	for range 3 {
		if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:a"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(tx.Revision()))}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	same := func(how string, s *kg.Store) {
		t.Helper()
		if kept := s.KeptPrefixes(); !maps.Equal(kept, prefixes) {
			t.Errorf("%s: kept are %v, want %v", how, kept, prefixes)
		}
		if got := s.KeptSchemes(); !slices.Equal(got, []string{"foo"}) || !s.KnowsScheme("FOO") || s.KnowsScheme("bar") {
			t.Errorf("%s: schemes %v", how, got)
		}
	}
	same("live", s)
	var backup bytes.Buffer
	if _, err := s.Maintenance().Backup(t.Context(), &backup, kg.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	rebuilt := smallOptions()
	rebuilt.Rebuild = true
	s = openStore(t, dir, rebuilt)
	same("rebuilt", s)
	mustClose(t, s)
	if _, err := kg.Erase(t.Context(), dir, kg.EraseOptions{Pattern: kg.Pattern{Subject: kg.IRI("urn:a")}}); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, smallOptions())
	same("erased", s)
	mustClose(t, s)
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := kg.Restore(t.Context(), restored, []io.Reader{&backup}, kg.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	same("restored", openStore(t, restored, smallOptions()))
}

// Only administrators change names.
func TestNamesAreChangedByAdministrators(t *testing.T) {
	s := openStore(t, t.TempDir(), smallOptions())
	for _, row := range []struct {
		who  kg.Principal
		want kg.Code
	}{
		{kg.Principal{ID: "agent://a", Method: "key"}, kg.CodePermissionDenied},
		{kg.Principal{ID: "agent://a", Method: "key", Roles: []string{"reviewer"}}, kg.CodePermissionDenied},
		{kg.Principal{ID: "agent://a", Method: "key", Roles: []string{kg.RoleAdmin}}, ""},
	} {
		_, err := s.ChangeNames(t.Context(), kg.Meta{Principal: row.who}, func(n *kg.Names) error { n.Schemes["foo"] = true; return nil })
		if kg.CodeOf(err) != row.want {
			t.Errorf("%v: got %v, want %q", row.who, err, row.want)
		}
	}
}

// A name is a prefix or a scheme, and each has its form and its bounds.
func TestNamesThatAreRefused(t *testing.T) {
	s := openStore(t, t.TempDir(), smallOptions())
	if _, err := s.ChangeNames(t.Context(), kg.Meta{}, func(n *kg.Names) error {
		n.Prefixes["ex"], n.Schemes["foo"] = "urn:ex:", true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", kg.MaxNameBytes)
	for _, row := range []struct {
		name   string
		change func(*kg.Names)
		want   kg.Code
	}{
		{"a prefix that is a scheme here", func(n *kg.Names) { n.Prefixes["foo"] = "urn:x:" }, kg.CodeInvalid},
		{"a prefix that is a scheme everywhere", func(n *kg.Names) { n.Prefixes["urn"] = "urn:x:" }, kg.CodeInvalid},
		{"a scheme that is a prefix here", func(n *kg.Names) { n.Schemes["ex"] = true }, kg.CodeInvalid},
		{"a scheme in capitals", func(n *kg.Names) { n.Schemes["FOO"] = true }, kg.CodeInvalid},
		{"no scheme", func(n *kg.Names) { n.Schemes["1a"] = true }, kg.CodeInvalid},
		{"the longest prefix", func(n *kg.Names) { n.Prefixes[long] = "urn:x:" }, ""},
		{"one byte more", func(n *kg.Names) { n.Prefixes[long+"n"] = "urn:x:" }, kg.CodeLimitExceeded},
		{"the longest scheme", func(n *kg.Names) { n.Schemes[long[1:]+"s"] = true }, ""},
		{"one byte more of it", func(n *kg.Names) { n.Schemes[long+"s"] = true }, kg.CodeInvalid},
		{"the longest namespace", func(n *kg.Names) { n.Prefixes["l"] = "urn:" + strings.Repeat("x", kg.MaxNamespace-4) }, ""},
		{"a byte more of a namespace", func(n *kg.Names) { n.Prefixes["l"] = "urn:" + strings.Repeat("x", kg.MaxNamespace-3) }, kg.CodeLimitExceeded},
		{"as many schemes as are kept", func(n *kg.Names) { fill(n.Schemes, kg.MaxKeptSchemes) }, ""},
		{"one scheme more", func(n *kg.Names) { fill(n.Schemes, kg.MaxKeptSchemes+1) }, kg.CodeLimitExceeded},
	} {
		_, err := s.ChangeNames(t.Context(), kg.Meta{DryRun: true}, func(n *kg.Names) error { row.change(n); return nil })
		if kg.CodeOf(err) != row.want {
			t.Errorf("%s: got %v, want %q", row.name, err, row.want)
		}
	}
	if kept := s.KeptPrefixes(); len(kept) != 1 {
		t.Errorf("kept are %v", kept)
	}
}

func fill(schemes map[string]bool, n int) {
	for i := 0; len(schemes) < n; i++ {
		schemes[fmt.Sprintf("s%d", i)] = true
	}
}

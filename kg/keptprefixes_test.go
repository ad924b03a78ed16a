package kg_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"koine/kg"
)

// What a store is told to keep is there when it is opened again, instead of
// what it kept before.
func TestKeptPrefixes(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	if kept := s.KeptPrefixes(); len(kept) != 0 {
		t.Fatalf("a new store keeps %v", kept)
	}
	for _, want := range []map[string]string{{"ex": "urn:a:"}, {"ex": "https://x.example/", "y": "urn:y:"}, {}} {
		if err := s.KeepPrefixes(want); err != nil {
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
	if err := s.KeepPrefixes(nil); kg.CodeOf(err) != kg.CodeClosed {
		t.Errorf("after Close: %v, want CLOSED", err)
	}
}

// What cannot be a prefix, and one more than are kept, change nothing.
func TestKeepPrefixesRefuses(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	many := map[string]string{}
	for i := range kg.MaxKeptPrefixes {
		many[fmt.Sprint("p", i)] = fmt.Sprintf("urn:p%d:", i)
	}
	if err := s.KeepPrefixes(many); err != nil {
		t.Fatalf("%d prefixes: %v", len(many), err)
	}
	more := maps.Clone(many)
	more["more"] = "urn:more:"
	for want, bad := range map[kg.Code]map[string]string{
		kg.CodeLimitExceeded: more,
		kg.CodeInvalid:       {"http": "urn:x:"},
	} {
		if err := s.KeepPrefixes(bad); kg.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := s.KeepPrefixes(map[string]string{"ex": "no IRI"}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("a namespace that is no IRI: %v", err)
	}
	mustClose(t, s)
	if kept := openStore(t, dir, smallOptions()).KeptPrefixes(); !maps.Equal(kept, many) {
		t.Errorf("%d are kept, want the %d from before", len(kept), len(many))
	}
}

// A file of prefixes that is not as it was written is refused, whichever of its
// bytes went bad; what was being written when the machine stopped is not.
func TestSpoiltPrefixes(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	want := map[string]string{"ex": "https://x.example/"}
	if err := s.KeepPrefixes(want); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	write(t, dir, "prefixes.json.tmp", `{"version": 1, "pre`)
	s = openStore(t, dir, smallOptions())
	if kept := s.KeptPrefixes(); !maps.Equal(kept, want) {
		t.Fatalf("kept are %v", kept)
	}
	mustClose(t, s)

	raw, err := os.ReadFile(filepath.Join(dir, "prefixes.json"))
	if err != nil {
		t.Fatal(err)
	}
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
	refused(strings.Replace(string(raw), `"version": 1`, `"version": 2`, 1), "version 2")
	refused(strings.Replace(string(raw), "x.example", "y.example", 1), "checksum")
	refused("", "cannot be read")
	refused("null", "version 0")
	for i := range raw {
		spoilt := append([]byte(nil), raw...)
		spoilt[i] ^= 1
		refused(string(spoilt), "") // white space may go bad
	}
}

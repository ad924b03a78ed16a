package kg_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/kg"
)

// A byte of one of the small files is corrupted, or the file is truncated anywhere. Either
// the store does not open and names the file, or it is unchanged: its tokens, its prefixes,
// its readable history.
func TestSpoiltSmallFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, _ := newAging(t, dir, 15)
	prefixes := map[string]string{"ex": "https://example.org/", "o": "urn:other:"}
	if err := keepPrefixes(a.Store, prefixes); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Maintenance().Retain(within(t)); err != nil || r.Oldest != 5 {
		t.Fatalf("Retain: %+v, %v", r, err)
	}
	token, statementsNow := a.FormatPosition(a.Head()), statements(t, a.Store, 0)
	mustClose(t, a.Store)
	same := func(what, name string) (opened bool) {
		t.Helper()
		s, err := kg.Open(dir, tinyLog())
		if err != nil {
			if kg.CodeOf(err) != kg.CodeFormatUnknown || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "koine store") && !strings.Contains(err.Error(), "directory has format") {
				t.Errorf("%s: %v, want FORMAT_UNKNOWN about %s", what, err, name)
			}
			return false
		}
		defer s.Close()
		if _, err := s.ParsePosition(token); err != nil {
			t.Errorf("%s: it opens, and its tokens are not good any more: %v", what, err)
		}
		if !maps.Equal(s.KeptPrefixes(), prefixes) || s.Stats().OldestReadable != 5 {
			t.Errorf("%s: it opens with prefixes %v and the oldest revision %d", what, s.KeptPrefixes(), s.Stats().OldestReadable)
		}
		if !slices.Equal(statements(t, s, 0), statementsNow) {
			t.Errorf("%s: it opens with other statements", what)
		}
		return true
	}
	for _, name := range []string{"koine.json", "secret", "history.json"} {
		path := filepath.Join(dir, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		opened := 0
		for i := range good {
			bad := slices.Clone(good)
			bad[i] ^= 1 << (i % 8)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if same(name+" with a bad byte", name) {
				opened++
			}
			if err := os.WriteFile(path, good[:i], 0o600); err != nil {
				t.Fatal(err)
			}
			if same(name+" cut short", name) {
				opened++
			}
		}
		if opened > len(good)/2 {
			t.Errorf("%s: %d of %d times nobody noticed", name, opened, 2*len(good))
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !same("as it was", "") {
		t.Error("it does not open any more")
	}
}

// The clock jumps back and forth, also between two runs. The times of commits
// never go back, and a time still means one revision.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, w := newAging(t, dir, 1)
	var times []time.Time
	work := func(s *kg.Store, hours int64) {
		t.Helper()
		a.clock.Store(hours)
		w.work(t, s, 1)
		c, err := s.Commit(within(t), tester, s.Head().Revision)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, c.Time)
	}
	at := func(hours int) time.Time { return agingBegin.Add(time.Duration(hours) * time.Hour) }
	for _, hours := range []int64{10, 3, -5000, 11, 20, 12, 21} {
		work(a.Store, hours)
	}
	want := []time.Time{at(10), at(10), at(10), at(11), at(20), at(20), at(21)}
	if !slices.EqualFunc(times, want, time.Time.Equal) {
		t.Errorf("the times are %v, want %v", times, want)
	}
	mustClose(t, a.Store)
	o := tinyLog()
	o.Clock = func() time.Time { return at(int(a.clock.Load())) }
	a.clock.Store(2)
	s := openStore(t, dir, o)
	times = nil
	work(s, 2)
	work(s, 400_000) // 45 years on
	work(s, 22)
	if want := []time.Time{at(21), at(400_000), at(400_000)}; !slices.EqualFunc(times, want, time.Time.Equal) {
		t.Errorf("opened again, the times are %v, want %v", times, want)
	}
	for hours, want := range map[int]kg.Revision{0: 0, 1: 1, 10: 4, 15: 5, 20: 7, 21: 9, 100: 9, 400_000: 11} {
		if r, err := s.Resolve(within(t), kg.Moment{Time: at(hours)}); err != nil || r != want {
			t.Errorf("at hour %d: revision %d, %v; want %d", hours, r, err, want)
		}
	}
	mustCheck(t, s)
}

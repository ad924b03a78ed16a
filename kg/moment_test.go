package kg

import (
	"context"
	"testing"
	"time"
)

// TestMoments proves the parsing of moments and the revisions that they stand for.
func TestMoments(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := Open(t.TempDir(), Options{Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 4 { // two in the same instant
		if i != 2 {
			now = now.Add(time.Second)
		}
		commitOf(t, s, numbered(i))
	}
	check := func(text string, want Revision, resolve, read Code) {
		t.Helper()
		m, err := ParseMoment(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, err := s.Resolve(context.Background(), m); got != want || CodeOf(err) != resolve {
			t.Errorf("%s: got revision %d, %v, want %d, %q", text, got, err, want, resolve)
		}
		if got, err := s.ReadableAt(context.Background(), m); got != want || CodeOf(err) != read {
			t.Errorf("%s, to be read: got revision %d, %v, want %d, %q", text, got, err, want, read)
		}
	}
	check("0", 0, "", CodeRevisionGone)
	check("3", 3, "", "")
	check("9", 9, "", "") // a reader gets the error that it is ahead
	check("2026-01-01T00:00:00.999Z", 0, "", CodeRevisionGone)
	check("2026-01-01T00:00:01Z", 1, "", "")
	check("2026-01-01T00:00:02Z", 3, "", "")
	check("2026-01-01T01:00:02.5+01:00", 3, "", "")
	check("2027-01-01T00:00:00Z", 4, "", "")
	for _, text := range []string{"", "-1", "1.5", "yesterday", "2026-01-01", "2026-01-01T00:00:00"} {
		if m, err := ParseMoment(text); CodeOf(err) != CodeInvalid {
			t.Errorf("%q: got %v, %v, want %s", text, m, err, CodeInvalid)
		}
	}
	if err := s.Maintenance().CutLog(context.Background(), 4); err != nil {
		t.Fatal(err)
	}
	check("2026-01-01T00:00:02Z", 0, CodeRevisionGone, CodeRevisionGone)
	check("2026-01-01T00:00:03Z", 4, "", "")
	check("2", 2, "", "")
}

// TestTimeSpans proves the membership of times in a span, and in the intersection of two.
func TestTimeSpans(t *testing.T) {
	at := func(n int) (out time.Time) {
		if n > 0 {
			out = time.Unix(int64(n), 0)
		}
		return out
	}
	span := func(from, until int) TimeSpan { return TimeSpan{From: at(from), Until: at(until)} }
	for _, row := range []struct{ a, b TimeSpan }{
		{span(0, 0), span(0, 0)}, {span(2, 0), span(0, 0)}, {span(0, 4), span(0, 0)}, {span(2, 6), span(4, 8)},
		{span(2, 8), span(4, 6)}, {span(2, 4), span(4, 6)}, {span(2, 3), span(5, 6)}, {span(0, 3), span(5, 0)}, {span(4, 4), span(0, 0)},
	} {
		for _, pair := range [][2]TimeSpan{{row.a, row.b}, {row.b, row.a}} {
			both := pair[0].Intersect(pair[1])
			if err := (&View{Recorded: both}).Valid(); err != nil {
				t.Errorf("%v and %v: %v is no span: %v", pair[0], pair[1], both, err)
			}
			for n := 1; n < 10; n++ {
				if got, want := both.Contains(at(n)), pair[0].Contains(at(n)) && pair[1].Contains(at(n)); got != want {
					t.Errorf("%d in %v and %v: got %v, want %v", n, pair[0], pair[1], got, want)
				}
			}
		}
	}
}

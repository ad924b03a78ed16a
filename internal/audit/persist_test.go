package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/audit"
	"koine/kg"
)

// persisted is a trail with a file, in a bubble of synctest.
type persisted struct {
	t    *testing.T
	dir  string
	log  bytes.Buffer
	o    audit.Options
	stop func()
	*audit.Trail
}

func persist(t *testing.T, dir string, o audit.Options) *persisted {
	k := &persisted{t: t, dir: dir, o: o}
	k.o.Logger = slog.New(slog.NewTextHandler(&k.log, nil))
	k.Trail = audit.NewTrail(k.o)
	k.stop = k.Persist(dir)
	return k
}

// reopen ends the trail, in order, and makes another one of its file.
func (k *persisted) reopen() *persisted {
	k.stop()
	return persist(k.t, k.dir, k.o)
}

func (k *persisted) file() string {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, audit.FileName))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(text)
}

func (k *persisted) refuse(name, address string) {
	r := audit.Refusal{Kind: audit.Denied, Principal: kg.AgentID("agent://" + name), Reason: "RESERVED", Path: "/a2a", RequestID: "r-" + name}
	if address != "" {
		r.Address = netip.MustParseAddr(address)
	}
	k.Record(context.Background(), r)
}

// list is the list, in pages of a size.
func (k *persisted) list(size int) (all []string) {
	k.t.Helper()
	q := audit.Query{First: size}
	for {
		page, err := audit.List(context.Background(), &madeUp{}, k.Trail, q)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, e := range page.Entries {
			all = append(all, format(e))
		}
		if !page.More {
			return all
		}
		q.After = page.End
	}
}

// Refusals are in the file a second later, with all that is told of them, and are
// listed by the next process as by the one before: the cursor of a page too.
func TestRefusalsOutlastTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := persist(t, t.TempDir(), audit.Options{})
		k.refuse("a", "192.0.2.1")
		k.refuse("b", "2001:db8::1")
		time.Sleep(2 * audit.WriteInterval)
		synctest.Wait()
		if n := strings.Count(k.file(), "\n"); n != 2 {
			t.Errorf("%d lines:\n%s", n, k.file())
		}
		for range 41 {
			k.refuse("a", "192.0.2.1")
		}
		k.refuse("c", "")
		page, err := audit.List(t.Context(), &madeUp{}, k.Trail, audit.Query{First: 1})
		if err != nil || !page.More {
			t.Fatal(page, err)
		}
		before, err := audit.List(t.Context(), &madeUp{}, k.Trail, audit.Query{First: 10})
		if err != nil {
			t.Fatal(err)
		}
		k = k.reopen()
		after, err := audit.List(t.Context(), &madeUp{}, k.Trail, audit.Query{First: 10})
		if err != nil {
			t.Fatal(err)
		}
		for i := range after.Entries {
			x, y := *before.Entries[i].Refusal, *after.Entries[i].Refusal
			if !x.First.Equal(y.First) || !x.Last.Equal(y.Last) {
				t.Errorf("got %v to %v, want %v to %v", y.First, y.Last, x.First, x.Last)
			}
			x.First, x.Last, y.First, y.Last = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			if fmt.Sprintf("%+v", x) != fmt.Sprintf("%+v", y) && i != 2 { // the repeated one was noted
				t.Errorf("got %+v, want %+v", y, x)
			}
		}
		want := []string{"DENIED agent://c RESERVED x1", "DENIED agent://b RESERVED x1", "DENIED agent://a RESERVED x42"}
		for _, size := range []int{1, 2, 10} {
			if diff := cmp.Diff(want, k.list(size)); diff != "" {
				t.Errorf("pages of %d (-want +got):\n%s", size, diff)
			}
		}
		rest, err := audit.List(t.Context(), &madeUp{}, k.Trail, audit.Query{First: 10, After: page.End})
		if err != nil || len(rest.Entries) != 2 || format(rest.Entries[0]) != want[1] {
			t.Errorf("behind the cursor of before: %+v, %v", rest, err)
		}
		k.refuse("a", "192.0.2.1") // within its minute, and after a restart
		k.refuse("d", "")
		k = k.reopen()
		if diff := cmp.Diff([]string{"DENIED agent://d RESERVED x1", want[0], want[1], "DENIED agent://a RESERVED x43"}, k.list(10)); diff != "" {
			t.Errorf("after another restart (-want +got):\n%s", diff)
		}
		k.stop()
	})
}

// A repetition is one more line of the file when its minute is over.
func TestRepetitionsAreWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := persist(t, t.TempDir(), audit.Options{})
		for range 50 {
			k.refuse("a", "")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := strings.Count(k.file(), "\n"); n != 1 {
			t.Errorf("%d lines within the minute:\n%s", n, k.file())
		}
		time.Sleep(audit.RepeatWindow)
		synctest.Wait()
		if text := k.file(); strings.Count(text, "\n") != 2 || !strings.Contains(text, `"count":50`) {
			t.Errorf("after the minute:\n%s", text)
		}
		k.stop()
	})
}

// A line torn by a crash, and a damaged line, are skipped.
func TestATornLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := persist(t, t.TempDir(), audit.Options{})
		k.refuse("a", "")
		k.refuse("b", "")
		k.refuse("c", "")
		k.stop()
		lines := strings.SplitAfter(k.file(), "\n")
		for name, text := range map[string]string{
			"torn":      lines[0] + lines[1] + lines[2][:20],
			"no break":  lines[0] + lines[1] + strings.TrimSuffix(lines[2], "}\n"),
			"damaged":   lines[0] + "\x00\x00" + lines[2] + lines[1],
			"too long":  lines[0] + strings.Repeat("x", 200_000) + "\n" + lines[1],
			"of others": lines[0] + `{"number":9,"count":1,"kind":"KEY"}` + "\n" + lines[1],
		} {
			if err := os.WriteFile(filepath.Join(k.dir, audit.FileName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			k = persist(t, k.dir, audit.Options{})
			if diff := cmp.Diff([]string{"DENIED agent://b RESERVED x1", "DENIED agent://a RESERVED x1"}, k.list(10)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if !strings.Contains(k.log.String(), "skipped invalid lines") {
				t.Errorf("%s: nothing was logged", name)
			}
			k.refuse("d", "")
			k = k.reopen()
			if got := k.list(10); len(got) != 3 || got[0] != "DENIED agent://d RESERVED x1" || k.log.Len() > 0 {
				t.Errorf("%s: afterwards %q, %s", name, got, k.log.String())
			}
			k.stop()
		}
	})
}

// At its bound the file is rewritten with the content of the trail.
func TestTheFileIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 4096
		k := persist(t, t.TempDir(), audit.Options{MaxRefusals: 5, MaxFileBytes: bound})
		for i := range 200 {
			k.refuse(fmt.Sprint("agent", i), "")
			time.Sleep(2 * audit.WriteInterval)
			synctest.Wait()
			if n := len(k.file()); n > bound {
				t.Fatalf("%d bytes after %d refusals", n, i+1)
			}
		}
		entries, err := os.ReadDir(k.dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("got the files %v, %v", entries, err)
		}
		want := k.list(10)
		k = k.reopen()
		if diff := cmp.Diff(want, k.list(10)); diff != "" || len(want) != 5 || want[0] != "DENIED agent://agent199 RESERVED x1" {
			t.Errorf("after a restart (-want +got):\n%s", diff)
		}
		k.stop()
		// A file that is longer than its bound is read where it is not.
		k.o.MaxFileBytes = 700
		k = persist(t, k.dir, k.o)
		if got := k.list(10); len(got) == 0 || len(got) >= 5 || got[0] != want[0] {
			t.Errorf("of a file that is too long: %q", got)
		}
		if n := len(k.file()); n > 700 {
			t.Errorf("it has %d bytes", n)
		}
		k.stop()
	})
}

// Entries that come faster than the writes wait up to a bound; beyond that they are in
// memory, counted, and logged once.
func TestTheQueueIsBounded(t *testing.T) {
	for _, more := range []int{0, 1, 500} {
		synctest.Test(t, func(t *testing.T) {
			k := persist(t, t.TempDir(), audit.Options{})
			k.refuse("first", "") // so that the next are written together
			time.Sleep(audit.WriteInterval / 2)
			synctest.Wait()
			for i := range audit.MaxUnwritten + more {
				k.refuse(fmt.Sprint("agent", i), "")
			}
			if k.Unwritten() != uint64(more) {
				t.Errorf("%d past the bound: %d are counted", more, k.Unwritten())
			}
			time.Sleep(2 * audit.WriteInterval)
			synctest.Wait()
			if n := strings.Count(k.file(), "\n"); n != audit.MaxUnwritten+1 {
				t.Errorf("%d past the bound: %d lines", more, n)
			}
			if n := strings.Count(k.log.String(), "arrived faster than they could be written"); n != min(more, 1) {
				t.Errorf("%d past the bound: %d lines of the log", more, n)
			}
			if n := len(k.list(100)); n != audit.MaxUnwritten+1+more {
				t.Errorf("%d past the bound: %d are listed", more, n)
			}
			k.stop()
		})
	}
}

// A file that cannot be written is one line of the log, and is written when it
// can be.
func TestAFileThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		k := persist(t, dir, audit.Options{}) // there is no such directory
		for _, name := range []string{"a", "b", "c"} {
			k.refuse(name, "")
			time.Sleep(2 * audit.WriteInterval)
			synctest.Wait()
		}
		if n := strings.Count(k.log.String(), "cannot write refusals to the data directory"); n != 1 || k.Unwritten() != 3 {
			t.Errorf("%d lines, %d unwritten:\n%s", n, k.Unwritten(), k.log.String())
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		k.refuse("d", "")
		k = k.reopen()
		if got := k.list(10); len(got) != 4 {
			t.Errorf("afterwards: %q", got)
		}
		k.stop()
	})
}

// One that cannot be read is put aside.
func TestAFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, audit.FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	k := persist(t, dir, audit.Options{})
	k.refuse("a", "")
	k = k.reopen()
	defer k.stop()
	if got := k.list(10); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, audit.FileName+".unreadable")); err != nil {
		t.Error(err)
	}
}

// One address cannot displace the entries of others, with any number of invented ones.
func TestAFloodFromOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := persist(t, t.TempDir(), audit.Options{MaxRefusals: 500})
		k.refuse("dora", "192.0.2.7")
		for minute := range 10 {
			for i := range 500 {
				k.refuse(fmt.Sprint("mallory", minute, "-", i), fmt.Sprintf("2001:db8::%x", i+1)) // all of one /64
			}
			time.Sleep(audit.RepeatWindow)
		}
		got := k.list(100)
		if len(got) != 500 || got[len(got)-1] != "DENIED agent://dora RESERVED x1" {
			t.Errorf("of %d, the last is %s", len(got), got[len(got)-1])
		}
		if got[0] != "DENIED  RESERVED x400" {
			t.Errorf("the newest is %s", got[0])
		}
		if n := strings.Count(k.log.String(), "msg=refused"); n != 1+10*(audit.MaxDistinctPerAddress+1) {
			t.Errorf("%d lines of the log", n)
		}
		k = k.reopen()
		defer k.stop()
		if diff := cmp.Diff(got, k.list(100)); diff != "" {
			t.Errorf("after a restart (-before +after):\n%s", diff)
		}
	})
}

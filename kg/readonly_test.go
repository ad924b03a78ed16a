package kg_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"koine/internal/slowtest"
	"koine/kg"
)

func readOnly(o kg.Options) kg.Options {
	o.ReadOnly = true
	return o
}

// fingerprint lists the content of a directory: names, modes, sizes, times and hashes.
func fingerprint(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum := [sha256.Size]byte{}
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(raw)
		}
		list = append(list, fmt.Sprintf("%s %s %d %d %x", path, info.Mode(), info.Size(), info.ModTime().UnixNano(), sum[:8]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func unchanged(t *testing.T, dir string, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, fingerprint(t, dir)); diff != "" {
		t.Errorf("the directory changed (-before +after):\n%s", diff)
	}
}

func rowsOf(t *testing.T, s *kg.Store) []string {
	t.Helper()
	rows, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func checkText(t *testing.T, s *kg.Store) string {
	t.Helper()
	r, err := s.Maintenance().Check(within(t), kg.CheckOptions{Checkpoints: true})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%+v", *r)
}

// A read-only open shows the same as an open for writing, finds the same damage, accepts no
// updates, and changes nothing: however the store was stopped, and with any damage of its
// index or its log.
func TestReadOnly(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	stopped := t.TempDir()
	s := openStore(t, stopped, tinyLog())
	w := newWorker(21, "w")
	w.owns = true
	w.work(t, s, 8)
	if _, err := s.Maintenance().Checkpoint(within(t)); err != nil {
		t.Fatal(err)
	}
	w.work(t, s, 4)
	mustClose(t, s)
	killed := filepath.Join(t.TempDir(), "killed")
	s = openStore(t, stopped, tinyLog())
	w.work(t, s, 12)
	copyTree(t, stopped, killed, nil)
	mustClose(t, s)
	fresh := filepath.Join(t.TempDir(), "fresh")
	s = openStore(t, fresh, tinyLog())
	mustClose(t, s)
	segments := filesOf(t, filepath.Join(stopped, "log", "*.wal"))

	for _, test := range []struct {
		name  string
		dir   string
		spoil func(t *testing.T, dir string)
		tail  int  // WithTailBytes
		aside bool // the index is built in a temporary directory
		lost  bool // not all of it can be read
	}{
		{name: "stopped", dir: stopped},
		{name: "killed", dir: killed},
		{name: "killed, with a longer tail than is kept", dir: killed, tail: 1000, aside: true},
		{name: "no statement", dir: fresh},
		{name: "no lock", dir: stopped, spoil: func(t *testing.T, dir string) { remove(t, dir, "LOCK") }},
		{name: "remains of a check and of an erasure", dir: stopped, spoil: func(t *testing.T, dir string) {
			write(t, dir, "sorting-1.tmp", "x")
			if err := os.Mkdir(filepath.Join(dir, "erasing"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "index not closed", dir: stopped, spoil: func(t *testing.T, dir string) { remove(t, dir, "index/CLEAN") }},
		{name: "files of older indexes", dir: stopped, spoil: func(t *testing.T, dir string) {
			remove(t, dir, "index/CLEAN")
			write(t, dir, "index/00001.mem", "x")
			write(t, dir, "index/000001.vlog", "x")
			write(t, dir, "index/DISCARD", "x")
		}},
		{name: "index changed", dir: stopped, aside: true, spoil: func(t *testing.T, dir string) { write(t, dir, tableOf(t, dir), "") }},
		{name: "index gone", dir: killed, aside: true, spoil: func(t *testing.T, dir string) { remove(t, dir, "index") }},
		{name: "rebuild cut short", dir: stopped, aside: true, spoil: func(t *testing.T, dir string) { write(t, dir, "index.building", "") }},
		{name: "index lacks rows", dir: stopped, lost: true, spoil: spoilIndex},
		{name: "last file of the log gone", dir: stopped, lost: true, spoil: func(t *testing.T, dir string) {
			remove(t, dir, "log/"+filepath.Base(segments[len(segments)-1]))
		}},
		{name: "first file of the log gone", dir: stopped, lost: true, spoil: func(t *testing.T, dir string) {
			remove(t, dir, "log/"+filepath.Base(segments[0]))
		}},
		{name: "log gone", dir: killed, lost: true, spoil: func(t *testing.T, dir string) { remove(t, dir, "log") }},
		{name: "checkpoint spoiled", dir: stopped, spoil: func(t *testing.T, dir string) {
			damage(t, filesOf(t, filepath.Join(dir, "checkpoints", "*"))[0], "flip")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, other := filepath.Join(t.TempDir(), "read"), filepath.Join(t.TempDir(), "written")
			copyTree(t, test.dir, dir, nil)
			copyTree(t, test.dir, other, nil)
			if test.spoil != nil {
				test.spoil(t, dir)
				test.spoil(t, other)
			}
			before := fingerprint(t, dir)
			o := readOnly(tinyLog())
			if test.tail > 0 {
				o = o.WithTailBytes(test.tail)
			}
			s, want := openStore(t, dir, o), openStore(t, other, tinyLog())
			if got := s.Aside() != ""; got != test.aside {
				t.Errorf("the index is in a temporary directory: %t, want %t", got, test.aside)
			}
			if got, want := kg.CodeOf(s.Maintenance().Sound()), kg.CodeOf(want.Maintenance().Sound()); got != want {
				t.Errorf("Sound: %q, want %q as of one that is open for writing", got, want)
			}
			if got, want := checkText(t, s), checkText(t, want); got != want {
				t.Errorf("the check says\n%s\nand that of one that is open for writing\n%s", got, want)
			}
			if diff := cmp.Diff(rowsOf(t, want), rowsOf(t, s)); diff != "" {
				t.Errorf("the index (-written +read):\n%s", diff)
			}
			if test.lost {
				if kg.CodeOf(want.Maintenance().Sound()) != kg.CodeLogDamaged && strings.Contains(checkText(t, want), "Total:0") {
					t.Error("nothing is wrong with what was spoiled")
				}
			} else if diff := cmp.Diff(recordOf(t, want), recordOf(t, s), cmp.AllowUnexported(record{})); diff != "" {
				t.Errorf("what is read (-written +read):\n%s", diff)
			}
			refusesAll(t, s)
			aside := s.Aside()
			mustClose(t, s)
			if _, err := os.Stat(aside); aside != "" && !os.IsNotExist(err) {
				t.Errorf("the temporary directory is left: %v", err)
			}
			unchanged(t, dir, before)
		})
	}
}

// refusesAll requires a read-only store to refuse all writes.
func refusesAll(t *testing.T, s *kg.Store) {
	t.Helper()
	code := kg.CodeReadOnly
	if e := s.Maintenance().Sound(); e != nil {
		code = kg.CodeOf(e)
	}
	meta, patches := newWorker(1, "refused").update()
	_, update := s.Update(within(t), meta, apply(patches))
	_, names := s.ChangeNames(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(n *kg.Names) error {
		n.Prefixes["ex"] = "http://example.org/"
		return nil
	})
	for name, err := range map[string]error{
		"Update": update, "ChangeNames": names, "CutLog": s.Maintenance().CutLog(within(t), 1), "Ready": s.Ready(),
	} {
		if name == "CutLog" && s.Head().Revision == 0 {
			continue // there is nothing to cut
		}
		if kg.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
	_, load := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(5), kg.LoadOptions{})
	_, checkpoint := s.Maintenance().Checkpoint(within(t))
	for name, err := range map[string]error{"Load": load, "Checkpoint": checkpoint} {
		if kg.CodeOf(err) != kg.CodeReadOnly {
			t.Errorf("%s: %v, want READ_ONLY", name, err)
		}
	}
}

// A backup of a read-only store is that of the store, and is restored to it.
func TestReadOnlyBackup(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	s := openStore(t, dir, smallOptions())
	newWorker(22, "w").work(t, s, 30)
	copyTree(t, dir, other, nil) // as a kill leaves it
	want := recordOf(t, s)
	var whole, read bytes.Buffer
	if _, err := s.Maintenance().Backup(within(t), &whole, kg.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	before := fingerprint(t, other)
	s = openStore(t, other, readOnly(smallOptions()))
	if _, err := s.Maintenance().Backup(within(t), &read, kg.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	unchanged(t, other, before)
	if !bytes.Equal(whole.Bytes(), read.Bytes()) {
		t.Errorf("the backup has %d bytes, want the %d of the running store's", read.Len(), whole.Len())
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := kg.Restore(within(t), restored, []io.Reader{&read}, kg.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	want.restored(t, openStore(t, restored, smallOptions()))
}

// Readers share a directory, and a writer has it alone.
func TestReadOnlyLock(t *testing.T) {
	t.Parallel()
	dir, _ := small(t)
	o := tinyLog()
	one, two := openStore(t, dir, readOnly(o)), openStore(t, dir, readOnly(o))
	if _, err := kg.Open(dir, o); kg.CodeOf(err) != kg.CodeDataDirInUse {
		t.Errorf("Open for writing beside readers: %v, want DATA_DIR_IN_USE", err)
	}
	mustClose(t, one)
	if _, err := kg.Open(dir, o); kg.CodeOf(err) != kg.CodeDataDirInUse {
		t.Errorf("Open for writing beside a reader: %v, want DATA_DIR_IN_USE", err)
	}
	mustClose(t, two)
	s := openStore(t, dir, o)
	if _, err := kg.Open(dir, readOnly(o)); kg.CodeOf(err) != kg.CodeDataDirInUse {
		t.Errorf("Open to read beside a writer: %v, want DATA_DIR_IN_USE", err)
	}
	mustClose(t, s)
}

// A read-only open that is not possible is refused, and nothing is created.
func TestReadOnlyRefused(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "nowhere")} {
		if _, err := kg.Open(dir, readOnly(smallOptions())); kg.CodeOf(err) != kg.CodeFormatUnknown {
			t.Errorf("Open where there is no store: %v, want FORMAT_UNKNOWN", err)
		}
	}
	if names, err := os.ReadDir(empty); err != nil || len(names) > 0 {
		t.Errorf("there is %v, %v; want nothing", names, err)
	}
	dir, _ := small(t)
	o := readOnly(smallOptions())
	o.Rebuild = true
	if _, err := kg.Open(dir, o); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("Open with Rebuild: %v, want INVALID", err)
	}
	write(t, dir, "erasing.ready", `{"names":["log"]}`)
	before := fingerprint(t, dir)
	_, err := kg.Open(dir, readOnly(smallOptions()))
	if kg.CodeOf(err) != kg.CodeReadOnly || !strings.Contains(kg.AsError(err).Hint, "koine check --data") {
		t.Errorf("Open amid an erasure: %v, want READ_ONLY with the way out", err)
	}
	unchanged(t, dir, before)
}

// A directory of an older format is read as it is.
func TestReadOnlyEarlierFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, "testdata/format-1.tar.gz", dir)
	before := fingerprint(t, dir)
	var logged bytes.Buffer
	o := readOnly(smallOptions())
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	s := openStore(t, dir, o)
	if text := logged.String(); !strings.Contains(text, `level=INFO msg="the data directory keeps its older format`) {
		t.Errorf("the log does not say that the format is older, or warns of it: %s", text)
	}
	other := filepath.Join(t.TempDir(), "other")
	copyTree(t, dir, other, nil)
	want := recordOf(t, openStore(t, other, smallOptions()))
	for r := kg.Revision(1); r <= 5; r++ { // the rest is about the upgrade
		if diff := cmp.Diff(want.statements[r], statements(t, s, r)); diff != "" {
			t.Errorf("the statements of revision %d (-upgraded +read):\n%s", r, diff)
		}
	}
	if len(want.statements[5]) == 0 {
		t.Error("there is no statement")
	}
	if text := checkText(t, s); !strings.Contains(text, "Total:0") {
		t.Errorf("the check says %s", text)
	}
	mustClose(t, s)
	unchanged(t, dir, before)
}

// At its bound the tail is in memory, past it the index is in a temporary directory.
func TestReadOnlyTailBound(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	s := openStore(t, dir, smallOptions())
	newWorker(23, "w").work(t, s, 5)
	copyTree(t, dir, killed, nil)
	want := rowsOf(t, s)
	mustClose(t, s)
	aside := func(bytes int) bool {
		s := openStore(t, killed, readOnly(smallOptions()).WithTailBytes(bytes))
		defer mustClose(t, s)
		if got := rowsOf(t, s); !slices.Equal(got, want) {
			t.Errorf("with %d bytes: %d rows, want %d", bytes, len(got), len(want))
		}
		return s.Aside() != ""
	}
	least, most := 1, 1<<20 // too few, enough
	if !aside(least) || aside(most) {
		t.Fatal("the bound does not count")
	}
	for least+1 < most {
		if mid := (least + most) / 2; aside(mid) {
			least = mid
		} else {
			most = mid
		}
	}
	if aside(most) || !aside(most-1) {
		t.Errorf("%d bytes are not the bound", most)
	}
}

// Writable checks the lock, the log and the index.
func TestWritable(t *testing.T) {
	t.Parallel()
	dir, _ := small(t)
	if !kg.Writable(dir) || !kg.Writable(filepath.Join(dir, "nowhere")) {
		t.Error("a directory that can be written is said not to be")
	}
}

// The temporary directory of an index that a killed process left is removed by the next
// process that makes one. One in use stays, and so does a new one.
func TestIndexesLeftAside(t *testing.T) {
	dir, _ := small(t)
	remove(t, dir, "index")
	t.Setenv("TMPDIR", t.TempDir())
	path := func(name string) string { return filepath.Join(os.TempDir(), name) }
	for _, name := range []string{"koine-index-left", "koine-index-new", "koine-index-used", "koine"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path(name), "000001.sst", "")
	}
	old := time.Now().Add(-2 * kg.AsideGrace)
	for _, name := range []string{"koine-index-left", "koine-index-used", "koine"} {
		if err := os.Chtimes(path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := os.Open(path("koine-index-used"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	o := smallOptions()
	o.ReadOnly = true
	s := openStore(t, dir, o)
	mine := filepath.Base(s.Aside())
	names := func() []string {
		t.Helper()
		entries, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			if e.Name() != mine {
				names = append(names, e.Name())
			}
		}
		return names
	}
	if got, want := names(), []string{"koine", "koine-index-new", "koine-index-used"}; !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
	if err := os.Chtimes(s.Aside(), old, old); err != nil {
		t.Fatal(err)
	}
	other := openStore(t, dir, o)
	if _, err := os.Stat(s.Aside()); err != nil || other.Aside() == s.Aside() {
		t.Errorf("the directory of a store that is open: %v", err)
	}
	mustClose(t, other)
	mustClose(t, s)
	if _, err := os.Stat(path(mine)); !os.IsNotExist(err) {
		t.Errorf("the directory of a store that was closed: %v", err)
	}
}

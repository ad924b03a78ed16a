package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"koine/cmd/koine/internal/cli"
	"koine/internal/slowtest"
)

// TestReadOnlyVolume reads stopped stores where nothing can be written: on volumes that are
// mounted read-only, and in a directory whose files the user may only read. It proves, for
// stores that were stopped, that were killed, and that older builds wrote: check, export,
// backup and the list commands work; their output equals that for a writable copy; a backup
// is restored to the same store; writes are refused; and nothing changes.
func TestReadOnlyVolume(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	all := storesToRead(t)
	for kind, skip := range map[string]string{"ext4": "stopped", "tmpfs": "none", "permissions": "data"} {
		t.Run(kind, func(t *testing.T) {
			stores := maps.Clone(all) // each way of stopping twice or more
			maps.DeleteFunc(stores, func(name, _ string) bool { return strings.HasSuffix(name, skip) })
			r := &readingOnly{t: t, koine: "koine", dir: filepath.Join(t.TempDir(), "data")}
			if kind != "permissions" {
				v := &fullVolume{t: t}
				v.mountVolume(kind)
				r.dir = filepath.Join(v.mount, "data")
			}
			for name, store := range stores {
				runCommand(t, "cp", "-a", "--sparse=always", store, filepath.Join(mkdir(t, r.dir), name))
			}
			if kind == "permissions" {
				r.withdraw()
			} else if err := unix.Mount("", filepath.Dir(r.dir), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatalf("remount: %v", err)
			}
			for name, store := range stores {
				t.Run(name, func(t *testing.T) {
					one := *r
					one.t, one.dir = t, filepath.Join(r.dir, name)
					one.compare(store)
				})
			}
		})
	}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func runCommand(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// storesToRead makes data directories, by the end of their process.
func storesToRead(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	stopped, killed := filepath.Join(dir, "stopped"), filepath.Join(dir, "killed")
	var doc strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&doc, "<urn:ex:s%d> <urn:ex:p%d> \"value %d\" .\n", i, i%7, i)
	}
	file := filepath.Join(dir, "statements.nt")
	if err := os.WriteFile(file, []byte(doc.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	runKoine(t, "load", "--data", stopped, file)
	runKoine(t, "keys", "create", "--data", stopped, "--agent", "agent://dora")
	runCommand(t, "cp", "-a", "--sparse=always", stopped, killed)
	v := &fullVolume{t: t, mount: dir, told: make(map[string]bool)}
	if err := os.Symlink(killed, filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	v.start("1")
	for i := range 20 {
		if status := v.update(fmt.Sprint("urn:tail:0:", i)); status != 200 {
			t.Fatalf("update: status %d, %q", status, v.strange)
		}
	}
	v.kill()

	stores := map[string]string{"stopped": stopped, "killed": killed}
	archives, err := filepath.Glob("testdata/upgrade/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no data of older builds: %v", err)
	}
	for _, archive := range archives {
		build := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		extractSparse(t, archive, mkdir(t, filepath.Join(dir, build)))
		for _, name := range []string{"data", "killed"} {
			stores[build+" "+name] = filepath.Join(dir, build, name)
		}
	}
	return stores
}

// readingOnly runs koine where nothing in a directory can be written.
type readingOnly struct {
	t     *testing.T
	koine string
	dir   string
	user  *syscall.SysProcAttr // the user that runs it; nil: this user
}

// withdraw withdraws the right to write from the user that runs koine: that is not root, to
// which permissions do not apply.
func (r *readingOnly) withdraw() {
	runCommand(r.t, "chmod", "-R", "a-w", r.dir)
	r.t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", r.dir).Run() })
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	runCommand(r.t, "chown", "-R", fmt.Sprint(nobody), r.dir)
	for dir := filepath.Dir(r.dir); dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		runCommand(r.t, "chmod", "a+rx", dir)
	}
	path, err := exec.LookPath("koine")
	if err != nil {
		r.t.Fatal(err)
	}
	r.koine = filepath.Join(filepath.Dir(r.dir), "koine")
	runCommand(r.t, "cp", "-L", path, r.koine)
	runCommand(r.t, "chmod", "0755", r.koine)
	r.user = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// run runs a command and returns its output, on standard error too, and its exit code.
func (r *readingOnly) run(args ...string) (out, said string, code int) {
	r.t.Helper()
	cmd := exec.Command(r.koine, args...)
	cmd.SysProcAttr = r.user
	cmd.Dir = "/"
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// must is run of a command that succeeds.
func (r *readingOnly) must(args ...string) string {
	r.t.Helper()
	out, said, code := r.run(args...)
	if code != 0 {
		r.t.Fatalf("koine %s ends with %d\n%s%s", strings.Join(args, " "), code, out, said)
	}
	return out
}

var checkedRevision = regexp.MustCompile(`^revision (\d+): .* statements`)

// compare reads the directory, and compares the output with that for a writable copy.
func (r *readingOnly) compare(store string) {
	t := r.t
	before := contentsOf(t, r.dir)
	copied := filepath.Join(t.TempDir(), "copy")
	runCommand(t, "cp", "-a", "--sparse=always", store, copied)

	report, said, code := r.run("check", "--data", r.dir)
	revision := checkedRevision.FindStringSubmatch(report)
	if code != 0 || revision == nil || !strings.Contains(report, "no damage found") || !strings.Contains(said, "not writable: opened read-only") {
		t.Fatalf("koine check ends with %d\n%s%s", code, report, said)
	}
	export := r.must("export", "--data", r.dir)
	// An upgrade of the copy is a revision more.
	if want := runOutput(t, "export", "--data", copied, "--at", revision[1]); export != want {
		t.Errorf("the export has %d bytes, want the %d of the copy's", len(export), len(want))
	}
	if strings.Count(export, "\n") < 10 {
		t.Errorf("the export has nothing: %s", export)
	}
	for _, list := range [][]string{{"keys", "list"}, {"prefix", "list"}, {"scheme", "list"}, {"shapes", "list"}} {
		args := append(list, "--data")
		got, want := r.must(append(args, r.dir)...), runOutput(t, append(args, copied)...)
		if got != want && !strings.HasPrefix(list[0], "scheme") { // the upgrade takes those in use
			t.Errorf("koine %s says\n%s\nand of the copy\n%s", list, got, want)
		}
	}

	out := t.TempDir()
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(out), 0o777); err != nil {
		t.Fatal(err)
	}
	file, restored := filepath.Join(out, "backup.koine"), filepath.Join(t.TempDir(), "restored")
	r.must("backup", "--data", r.dir, "-o", file)
	runKoine(t, "restore", "--data", restored, file)
	runKoine(t, "check", "--data", restored)
	if got := runOutput(t, "export", "--data", restored, "--at", revision[1]); got != export {
		t.Errorf("the export of what was restored has %d bytes, want %d", len(got), len(export))
	}

	for _, args := range [][]string{
		{"check", "--repair"}, {"check", "--rebuild"}, {"serve", "--listen", "127.0.0.1:0"},
		{"keys", "create", "--agent", "agent://erin"}, {"keys", "revoke", "000000000000"}, {"prefix", "add", "ex=http://example.org/"},
		{"prefix", "remove", "ex"}, {"scheme", "add", "doi"}, {"shapes", "put", "/dev/null"}, {"shapes", "remove", "urn:ex:shape"},
	} {
		out, said, code := r.run(append(args, "--data", r.dir)...)
		if code != cli.ExitFailure || !strings.Contains(said, "koine: the data directory "+r.dir+" cannot be written") || strings.Contains(said, "opened read-only") {
			t.Errorf("koine %s ends with %d\n%s%s", args, code, out, said)
		}
	}
	if after := contentsOf(t, r.dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// runOutput is the standard output of koine.
func runOutput(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("koine", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("koine %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

// contentsOf lists the names, modes, sizes, times and hashes of the files in a directory.
func contentsOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
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
		fmt.Fprintf(&b, "%s %s %d %d %x\n", strings.TrimPrefix(path, dir), info.Mode(), info.Size(), info.ModTime().UnixNano(), sum[:8])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

package sealed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// OpenMapped detects a changed byte in each of its windows, and keeps no pages in memory.
func TestOpenMapped(t *testing.T) {
	want := make([]byte, 2*checkWindow+checkWindow/2)
	for i := range want {
		want[i] = byte(i >> 12)
	}
	sealedContent := Seal(bytes.Clone(want))
	for _, changed := range []int{-1, 0, checkWindow - 1, checkWindow, len(want) - 1, len(want)} {
		content := bytes.Clone(sealedContent)
		if changed >= 0 {
			content[changed] ^= 1
		}
		path := filepath.Join(t.TempDir(), "file")
		if err := WriteFile(path, content); err != nil {
			t.Fatal(err)
		}
		image, unmap, err := MapFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := OpenMapped(image)
		if changed >= 0 != errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d changed: %v", changed, err)
		}
		if n := countResident(t, image); n > checkWindow {
			t.Errorf("byte %d changed: %d bytes are in memory, want at most a window of %d", changed, n, checkWindow)
		}
		if changed < 0 && !bytes.Equal(got, want) {
			t.Error("the content differs")
		}
		unmap()
	}
	if _, err := OpenMapped(nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("an empty file: %v, want ErrDamaged", err)
	}
}

// countResident returns how many bytes of a mapping this process has in memory.
func countResident(t *testing.T, content []byte) (n int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begins := fmt.Sprintf("%p-", content)
	begins = strings.TrimPrefix(begins, "0x")
	for lines, within := bufio.NewScanner(f), false; lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, begins):
			within = true
		case within && strings.HasPrefix(line, "Rss:"):
			if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no mapping begins at %s", begins)
	return 0
}

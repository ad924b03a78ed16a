package footprint

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// The use of this process is seen: memory, processor time, bytes written.
func TestRead(t *testing.T) {
	before := read(t)
	memory := make([]byte, 64<<20)
	for i := range memory {
		memory[i] = byte(i)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(memory[:8<<20]); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
	}
	after := read(t)
	runtime.KeepAlive(memory)
	if grew := after.Private - before.Private; grew < 60<<20 {
		t.Errorf("private memory grew by %d", grew)
	}
	if after.Resident < after.Private || after.Peak < after.Resident-1<<20 || after.Mapped == 0 {
		t.Errorf("%+v", after)
	}
	if took := after.Processor - before.Processor; took < 20*time.Millisecond {
		t.Errorf("processor time: %s", took)
	}
	if after.Written < before.Written {
		t.Errorf("written: %d after %d", after.Written, before.Written)
	}
	if _, err := Read(-1); err == nil {
		t.Error("there is no process -1")
	}
}

func read(t *testing.T) Footprint {
	t.Helper()
	f, err := Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

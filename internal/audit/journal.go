package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"koine/kg"
)

// FileName is that of the file in the data directory that keeps refusals.
const FileName = "refusals.jsonl"

// Bounds of that file.
const (
	// DefaultMaxFileBytes is how long it may get. At the bound it is made anew with
	// what the Trail still has, the newest first, up to half of the bound.
	DefaultMaxFileBytes = 16 << 20
	// MaxTextBytes bounds each text of a line, in bytes.
	MaxTextBytes = 1024
	// maxLine is more than a line of such texts can be.
	maxLine = 64 << 10
)

// line is a refusal as the file has it. A later line with the same number is what
// became of it: it was repeated.
type line struct {
	Number    uint64     `json:"number"`
	Kind      Kind       `json:"kind"`
	Principal string     `json:"principal"`
	Actor     string     `json:"actor"`
	Address   netip.Addr `json:"address"`
	Path      string     `json:"path,omitempty"`
	Reason    string     `json:"reason"`
	RequestID string     `json:"request,omitempty"`
	First     time.Time  `json:"first"`
	Last      time.Time  `json:"last"`
	Count     int        `json:"count"`
}

func lineOf(r *Refusal) []byte {
	raw, err := json.Marshal(line{
		r.number, r.Kind, truncateText(string(r.Principal)), truncateText(string(r.Actor)), r.Address, truncateText(r.Path), truncateText(r.Reason), truncateText(r.RequestID), r.First, r.Last, r.Count,
	})
	if err != nil { // a year past 9999: not written, and not worth more
		return nil
	}
	return append(raw, '\n')
}

func truncateText(text string) string { return text[:min(len(text), MaxTextBytes)] }

func (l *line) isComplete() bool {
	return l.Number > 0 && l.Count > 0 && (l.Kind == Denied || l.Kind == Authentication || l.Kind == RateLimit)
}

func (l *line) toRefusal() *Refusal {
	return &Refusal{
		Kind: l.Kind, Principal: kg.AgentID(l.Principal), Actor: kg.AgentID(l.Actor), Address: l.Address, Path: l.Path, Reason: l.Reason,
		RequestID: l.RequestID, First: l.First, Last: l.Last, Count: l.Count, number: l.Number,
	}
}

// journal is the open file. One goroutine at a time uses it.
type journal struct {
	path string
	max  int64
	file *os.File // nil after a failure, until it is made anew
	size int64
}

// readAll gives the refusals of the file, the oldest first, and how many lines were
// none: the last one after a crash, or what was damaged. A file that is too long
// is read from where it is not.
func (j *journal) readAll() (list []*Refusal, broken int, err error) {
	file, err := os.Open(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	if size, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, err
	} else if _, err = file.Seek(max(0, size-j.max), io.SeekStart); err != nil {
		return nil, 0, err
	}
	known := map[uint64]*Refusal{}
	for in := bufio.NewReaderSize(file, maxLine); ; {
		raw, err := in.ReadSlice('\n')
		var l line
		switch {
		case err == nil && json.Unmarshal(raw, &l) == nil && l.isComplete():
			r := l.toRefusal()
			if before := known[r.number]; before != nil {
				*before = *r
				continue
			}
			known[r.number] = r
			list = append(list, r)
		case err == nil || errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF) && len(raw) > 0:
			broken++
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, broken, err
		}
	}
}

// appendLines writes lines behind the others, and to disk. full says that there is no
// room for them: then the file has to be made anew.
func (j *journal) appendLines(lines []byte) (full bool, err error) {
	if j.file == nil || j.size+int64(len(lines)) > j.max {
		return true, nil
	}
	n, err := j.file.Write(lines)
	j.size += int64(n)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.close()
	}
	return false, err
}

// rewriteFile makes the file anew with the newest of the refusals, which are the oldest
// first. After a crash it is the old file or the new one.
func (j *journal) rewriteFile(list []Refusal) error {
	lines, size, from := make([][]byte, len(list)), int64(0), len(list)
	for from > 0 {
		lines[from-1] = lineOf(&list[from-1])
		if size += int64(len(lines[from-1])); size > j.max/2 {
			break
		}
		from--
	}
	all := bytes.Join(lines[from:], nil)
	j.close()
	tmp := j.path + ".tmp"
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(all); err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(tmp, j.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(j.path))
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	j.file, j.size = file, int64(len(all))
	return nil
}

func (j *journal) close() {
	if j.file != nil {
		_ = j.file.Close() // what counts was synced
		j.file = nil
	}
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

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

// FileName is the name of the file with refusals in the data directory.
const FileName = "refusals.jsonl"

// Limits of the file.
const (
	// DefaultMaxFileBytes is the maximum size. At that size the file is rewritten with
	// the newest refusals of the Trail, up to half of the maximum.
	DefaultMaxFileBytes = 16 << 20
	// MaxTextBytes is the maximum length of each text in a line.
	MaxTextBytes = 1024
	// maxLine exceeds the length of any line with such texts.
	maxLine = 64 << 10
)

// line is a refusal in the file. A later line with the same number replaces it, with
// the number of repetitions.
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
	if err != nil { // a year after 9999 cannot be encoded: skip the refusal
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

// journal is the open file. It is not safe for concurrent use.
type journal struct {
	path string
	max  int64
	file *os.File // nil after a failure, until it is rewritten
	size int64
}

// readAll returns the refusals of the file, oldest first, and the number of invalid
// lines: a line torn by a crash, or a damaged one. Of a file that exceeds the maximum
// size it reads the end.
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

// appendLines appends lines and syncs the file. full reports that they do not fit: the
// file must be rewritten.
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

// rewriteFile atomically replaces the file by the newest of the refusals, which are
// sorted oldest first.
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
		_ = j.file.Close() // the content was synced
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

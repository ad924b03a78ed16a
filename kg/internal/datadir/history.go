package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strconv"

	"koine/kg/base"
)

// historyVersion is the version of history.json.
const historyVersion = 1

// historyFile is the content of history.json.
type historyFile struct {
	// Version is incremented when an older koine can no longer read the file.
	Version  int           `json:"version"`
	Oldest   base.Revision `json:"oldest"`   // the oldest revision that can be read
	Checksum string        `json:"checksum"` // CRC-32C of the number as text, in hexadecimal
}

func historySum(oldest base.Revision) string {
	text := strconv.FormatUint(uint64(oldest), 10)
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// WriteHistory replaces history.json.
func WriteHistory(path string, oldest base.Revision) error {
	raw, err := json.Marshal(historyFile{historyVersion, oldest, historySum(oldest)})
	if err != nil {
		return err
	}
	return WriteFile(path, append(raw, '\n'))
}

// readHistory returns the oldest readable revision, 0 if there is no file and all are
// readable. It refuses a modified file, because reads of pruned revisions would then
// return incomplete results.
func readHistory(path string) (base.Revision, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var f historyFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return 0, base.Errorf(base.CodeFormatUnknown, "%s cannot be read: %v", HistoryName, err)
	}
	if f.Version != historyVersion {
		return 0, base.Errorf(base.CodeFormatUnknown, "%s has version %d, and this koine reads version %d", HistoryName, f.Version, historyVersion)
	}
	if f.Checksum != historySum(f.Oldest) {
		e := base.Errorf(base.CodeFormatUnknown, "%s does not have the checksum that it was written with", HistoryName)
		e.Hint = "restore the file from a backup of the directory"
		return 0, e
	}
	return f.Oldest, nil
}

// ErrRevisionGone returns the CodeRevisionGone error for a revision before the oldest.
func ErrRevisionGone(r base.Revision, oldest base.Position) *base.Error {
	e := base.Errorf(base.CodeRevisionGone, "revision %d is older than the history that is kept: the oldest is %d", r, oldest.Revision)
	e.Oldest = &oldest
	e.Hint = "read revision " + strconv.FormatUint(uint64(oldest.Revision), 10) + " or a newer one"
	return e
}

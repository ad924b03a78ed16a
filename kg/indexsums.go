package kg

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// indexSums are the checksums of the files of an index that was closed in order,
// as the file CLEAN keeps them. Badger believes its tables: a bad byte in one can
// leave rows out without a word, never come back, or end the process, so they are
// read once before it opens them.
type indexSums struct {
	Files map[string]fileSum `json:"files"`
}

type fileSum struct {
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

// maxSummedBytes is the size of an index up to which its files are summed, so
// that opening and closing a large one do not take long. Check verifies any.
const maxSummedBytes = 4 << 30

// sumIndex sums the files in an index directory but for CLEAN itself, none when
// they are too large.
func sumIndex(path string) (indexSums, error) {
	sums := indexSums{Files: make(map[string]fileSum)}
	entries, err := os.ReadDir(path)
	if err != nil {
		return sums, err
	}
	total := int64(0)
	for _, e := range entries {
		if e.Name() == cleanName {
			continue
		}
		sum, err := sumFile(filepath.Join(path, e.Name()), maxSummedBytes-total)
		if err != nil {
			return sums, err
		}
		if total += sum.Bytes; total > maxSummedBytes {
			return indexSums{}, nil
		}
		sums.Files[e.Name()] = sum
	}
	return sums, nil
}

// sumFile reads a file that is not larger than most.
func sumFile(path string, most int64) (s fileSum, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return s, err
	}
	if s.Bytes = st.Size(); s.Bytes > most {
		return s, nil
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 256<<10))
	s.CRC32C = sum.Sum32()
	return s, err
}

// writeClean leaves the sign that the index was closed in order.
func writeClean(path string) error {
	sums, err := sumIndex(path)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(path, cleanName), raw)
}

var errIndexChanged = errors.New("its files are not as they were closed")

// compareClean compares the files of an index with the sign that it was closed in order.
func compareClean(path string) error {
	raw, err := os.ReadFile(filepath.Join(path, cleanName))
	if err != nil {
		return err
	}
	var want indexSums
	if err := json.Unmarshal(raw, &want); err != nil {
		return errIndexChanged
	}
	if want.Files != nil {
		got, err := sumIndex(path)
		if err != nil {
			return err
		}
		for name, sum := range want.Files {
			if got.Files[name] != sum {
				return errIndexChanged
			}
		}
		if len(got.Files) != len(want.Files) {
			return errIndexChanged
		}
	}
	return nil
}

package kg

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
)

// prefixesVersion of the file of kept prefixes.
const prefixesVersion = 1

// prefixesFile is the content of prefixes.json, where directories of format 1 have their
// prefixes.
type prefixesFile struct {
	// Version goes up when an older koine could no longer read the file.
	Version  int               `json:"version"`
	Prefixes map[string]string `json:"prefixes"` // namespaces by name
	Checksum string            `json:"checksum"` // CRC-32C of the prefixes as JSON, in hexadecimal
}

// validKept checks the prefixes of a file.
func validKept(prefixes map[string]string) error {
	if n := len(prefixes); n > MaxKeptPrefixes {
		return Errorf(CodeLimitExceeded, "%d prefixes are more than the %d that a store keeps", n, MaxKeptPrefixes)
	}
	_, err := NewPrefixes(prefixes)
	return err
}

// keepPrefixes writes the file, as a directory of format 1 has it: a backup of such a
// one is restored to what it was.
func (d *directory) keepPrefixes(prefixes map[string]string) error {
	sum, err := prefixesSum(prefixes)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(prefixesFile{prefixesVersion, prefixes, sum}, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(d.join(prefixesName), append(raw, '\n'))
}

// loadPrefixes reads the kept prefixes. None were kept where there is no file;
// one that was changed behind the store's back is refused, because a wrong
// namespace makes other entities of all that is asked for.
func (d *directory) loadPrefixes() error {
	raw, err := os.ReadFile(d.join(prefixesName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var f prefixesFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return Errorf(CodeFormatUnknown, "%s cannot be read: %v", prefixesName, err)
	}
	if f.Version != prefixesVersion {
		return Errorf(CodeFormatUnknown, "%s has version %d, and this koine reads version %d", prefixesName, f.Version, prefixesVersion)
	}
	sum, err := prefixesSum(f.Prefixes)
	if err == nil && sum != f.Checksum {
		e := Errorf(CodeFormatUnknown, "%s does not have the checksum that it was written with", prefixesName)
		e.Hint = "restore the file from a copy, or take it away and register the prefixes again with --prefix"
		return e
	}
	if err == nil {
		err = validKept(f.Prefixes)
	}
	if err != nil {
		return Errorf(CodeFormatUnknown, "%s: %s", prefixesName, AsError(err).Message)
	}
	d.prefixes = f.Prefixes
	return nil
}

// prefixesSum does not depend on the order: JSON sorts the names.
func prefixesSum(prefixes map[string]string) (string, error) {
	raw, err := json.Marshal(prefixes)
	return fmt.Sprintf("%08x", crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))), err
}

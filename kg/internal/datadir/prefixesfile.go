package datadir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"koine/kg/base"
)

// WritePrefixes writes prefixes.json, which belongs to format 1: a backup of format 1 is
// restored to a directory of format 1.
func (d *Directory) WritePrefixes(prefixes map[string]string) error {
	sum, err := base.PrefixesSum(prefixes)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(base.PrefixesFile{Version: base.PrefixesVersion, Prefixes: prefixes, Checksum: sum}, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(d.Join(PrefixesName), append(raw, '\n'))
}

// loadPrefixes reads prefixes.json if it exists. It refuses a modified file, because a
// wrong namespace would change the meaning of every prefixed name.
func (d *Directory) loadPrefixes() error {
	raw, err := os.ReadFile(d.Join(PrefixesName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var f base.PrefixesFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return base.Errorf(base.CodeFormatUnknown, "%s cannot be read: %v", PrefixesName, err)
	}
	if f.Version != base.PrefixesVersion {
		return base.Errorf(base.CodeFormatUnknown, "%s has version %d, and this koine reads version %d", PrefixesName, f.Version, base.PrefixesVersion)
	}
	sum, err := base.PrefixesSum(f.Prefixes)
	if err == nil && sum != f.Checksum {
		e := base.Errorf(base.CodeFormatUnknown, "%s does not have the checksum that it was written with", PrefixesName)
		e.Hint = "restore the file from a copy, or take it away and register the prefixes again with --prefix"
		return e
	}
	if err == nil {
		err = base.ValidPrefixes(f.Prefixes)
	}
	if err != nil {
		return base.Errorf(base.CodeFormatUnknown, "%s: %s", PrefixesName, base.AsError(err).Message)
	}
	d.Prefixes = f.Prefixes
	return nil
}

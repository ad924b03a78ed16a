package datadir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"koine/kg/internal/base"
)

// WritePrefixes writes the file, as a directory of format 1 has it: a backup of such a
// one is restored to what it was.
func (d *Directory) WritePrefixes(prefixes map[string]string) error {
	sum, err := base.PrefixesSum(prefixes)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(base.PrefixesFile{base.PrefixesVersion, prefixes, sum}, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(d.Join(PrefixesName), append(raw, '\n'))
}

// loadPrefixes reads the kept prefixes. None were kept where there is no file;
// one that was changed behind the store's back is refused, because a wrong
// namespace makes other entities of all that is asked for.
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

package kg

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// exchangeFile is the content of erasing.ready: how the new store takes the old
// one's place. From when it is there, opening the directory finishes that.
type exchangeFile struct {
	Names []string `json:"names"` // what the new store consists of
	Keep  bool     `json:"keep"`
}

// storeNames are the files and directories that make up a store; the one that
// makes it one is the last.
var storeNames = []string{logName, indexName, buildingName, checkpointName, secretName, prefixesName, historyName, formatName}

// exchange puts the store in the directory erasing in the place of this one.
func (d *directory) exchange(keep bool, step func() error) error {
	if step == nil {
		step = func() error { return nil }
	}
	f := exchangeFile{Keep: keep}
	for _, name := range storeNames {
		if exists(d.join(filepath.Join(erasingName, name))) {
			f.Names = append(f.Names, name)
		}
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := syncDir(d.join(erasingName)); err != nil {
		return err
	}
	if err := step(); err != nil {
		return err
	}
	if err := writeFile(d.join(erasedName), raw); err != nil {
		return err
	}
	return d.finish(f, step)
}

// finishExchange does what is left of an exchange; it may be cut short and done
// again. Without one under way it removes what was being made for one.
func (d *directory) finishExchange() error {
	raw, err := os.ReadFile(d.join(erasedName))
	if os.IsNotExist(err) {
		return os.RemoveAll(d.join(erasingName))
	}
	if err != nil {
		return err
	}
	var f exchangeFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return Errorf(CodeFormatUnknown, "%s cannot be read: %v", erasedName, err)
	}
	return d.finish(f, func() error { return nil })
}

func (d *directory) finish(f exchangeFile, step func() error) error {
	if f.Keep {
		if err := os.MkdirAll(d.join(KeptName), 0o700); err != nil {
			return err
		}
	}
	for _, name := range storeNames {
		if err := d.exchangeOne(name, f, step); err != nil {
			return err
		}
	}
	if err := errors.Join(step(), syncDir(d.path)); err != nil {
		return err
	}
	if err := os.RemoveAll(d.join(erasingName)); err != nil {
		return err
	}
	return removeFile(d.join(erasedName))
}

func (d *directory) exchangeOne(name string, f exchangeFile, step func() error) error {
	if err := step(); err != nil {
		return err
	}
	fresh, here := d.join(filepath.Join(erasingName, name)), d.join(name)
	isNew := slices.Contains(f.Names, name)
	if isNew && !exists(fresh) {
		return nil // done before
	}
	var err error
	switch {
	case !exists(here):
	case f.Keep:
		err = os.Rename(here, d.join(filepath.Join(KeptName, name)))
	default:
		err = os.RemoveAll(here)
	}
	if err == nil {
		err = step()
	}
	if err == nil && isNew {
		err = os.Rename(fresh, here)
	}
	return err
}

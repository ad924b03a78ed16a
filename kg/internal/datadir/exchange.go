package datadir

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"koine/kg/base"
)

// exchangeFile is the content of erasing.ready, which describes the replacement of the
// store. Once the file exists, opening the directory completes the replacement.
type exchangeFile struct {
	Names []string `json:"names"` // the files and directories of the new store
	Keep  bool     `json:"keep"`
}

// storeNames are the files and directories of a store. The last one makes a directory a
// store.
var storeNames = []string{LogName, IndexName, BuildingName, CheckpointName, SecretName, PrefixesName, HistoryName, FormatName}

// Exchange replaces this store by the one in the directory erasing. With keep the previous
// files are retained under KeptName. step, if not nil, is called before each step.
func (d *Directory) Exchange(keep bool, step func() error) error {
	if step == nil {
		step = func() error { return nil }
	}
	f := exchangeFile{Keep: keep}
	for _, name := range storeNames {
		if Exists(d.Join(filepath.Join(ErasingName, name))) {
			f.Names = append(f.Names, name)
		}
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := SyncDir(d.Join(ErasingName)); err != nil {
		return err
	}
	if err := step(); err != nil {
		return err
	}
	if err := WriteFile(d.Join(ErasedName), raw); err != nil {
		return err
	}
	return d.moveFiles(f, step)
}

// finishExchange completes an interrupted Exchange; it may be interrupted and repeated
// itself. If none was begun, it removes an unfinished new store.
func (d *Directory) finishExchange() error {
	raw, err := os.ReadFile(d.Join(ErasedName))
	if os.IsNotExist(err) {
		return os.RemoveAll(d.Join(ErasingName))
	}
	if err != nil {
		return err
	}
	var f exchangeFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return base.Errorf(base.CodeFormatUnknown, "%s cannot be read: %v", ErasedName, err)
	}
	return d.moveFiles(f, func() error { return nil })
}

func (d *Directory) moveFiles(f exchangeFile, step func() error) error {
	if f.Keep {
		if err := os.MkdirAll(d.Join(KeptName), 0o700); err != nil {
			return err
		}
	}
	for _, name := range storeNames {
		if err := d.exchangeOne(name, f, step); err != nil {
			return err
		}
	}
	if err := errors.Join(step(), SyncDir(d.Path)); err != nil {
		return err
	}
	if err := os.RemoveAll(d.Join(ErasingName)); err != nil {
		return err
	}
	return RemoveFile(d.Join(ErasedName))
}

func (d *Directory) exchangeOne(name string, f exchangeFile, step func() error) error {
	if err := step(); err != nil {
		return err
	}
	fresh, here := d.Join(filepath.Join(ErasingName, name)), d.Join(name)
	isNew := slices.Contains(f.Names, name)
	if isNew && !Exists(fresh) {
		return nil // done before
	}
	var err error
	switch {
	case !Exists(here):
	case f.Keep:
		err = os.Rename(here, d.Join(filepath.Join(KeptName, name)))
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

package kg

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"koine/internal/extsort"
)

// A data directory holds
//
//	LOCK            held while the store is open
//	koine.json      format version and epoch
//	secret          seals tokens; 32 random bytes
//	prefixes.json   the prefixes of a directory of format 1, until they are in the log
//	history.json    the oldest revision that can be read, if not all can
//	log/            the truth
//	index/          what the log means now; may be thrown away
//	index/CLEAN     there only while the index is closed in order: checksums of its files;
//	                put back without any when one is found to be damaged later
//	index.building  there while a rebuild writes the index
//	erasing/        there while Erase makes a new store; erasing.ready while that
//	                takes the place of this one
//	checkpoints/    states from which, with the log behind them, to rebuild
//	sorting-….tmp   for a moment, until a check or a load has opened it and taken its name away
const (
	lockName       = "LOCK"
	formatName     = "koine.json"
	secretName     = "secret"
	prefixesName   = "prefixes.json"
	historyName    = "history.json"
	logName        = "log"
	indexName      = "index"
	cleanName      = "CLEAN"
	buildingName   = "index.building"
	checkpointName = "checkpoints"
)

const secretBytes = 32

// directory is a locked data directory.
type directory struct {
	path   string
	lock   *os.File // nil where a read-only one has none
	epoch  Epoch
	secret []byte
	floor  Revision // the oldest readable revision when it was opened; 0 for all

	// upgradingFrom is the older format that the contents still have, 0 for none.
	upgradingFrom int

	prefixes map[string]string // of the file that format 1 has them in; nil without one

	// new is what takes back a store that is being made; nil for one that was there.
	new *newStore
}

func formatSum(epoch Epoch, secret []byte) string {
	sum := crc32.Update(0, crc32.MakeTable(crc32.Castagnoli), epoch[:])
	return fmt.Sprintf("%08x", crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), secret))
}

// ErrNoStore is wrapped by the error of opening a directory that is not that of a
// store, and in which none is to be made: there is none with Options.MustExist, or
// the files there are somebody else's. Its code is CodeFormatUnknown.
var ErrNoStore = errors.New("not the directory of a koine store")

// openDirectory locks the directory without waiting and reads its small files,
// making them where there is no store yet unless one must exist. A directory that it
// refuses with ErrNoStore is left as it was.
func openDirectory(path string, mustExist bool) (_ *directory, err error) {
	made := new(newStore)
	if !mustExist {
		made.dirs = missingDirs(path)
		defer func() {
			if err != nil {
				err = errors.Join(err, made.removeDirs())
			}
		}()
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
	}
	if !exists(filepath.Join(path, lockName)) { // else whoever has the lock may be making a store
		if _, err := holdsStore(path, mustExist); err != nil {
			return nil, err
		}
	}
	locked := exists(filepath.Join(path, lockName))
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if isNotWritable(err) && exists(filepath.Join(path, formatName)) {
		return nil, errNotWritable(path, err)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, errInUse(path)
	}
	if !isAt(lock, filepath.Join(path, lockName)) { // whoever had it took back the store that it was making
		_ = unlock(lock)
		return nil, errInUse(path)
	}
	made.path, made.lock = path, !locked
	d := &directory{path: path, lock: lock, new: made}
	if err := d.load(mustExist); err != nil {
		return nil, errors.Join(d.new.failed(err), d.new.remove(), unlock(lock))
	}
	return d, nil
}

func errInUse(path string) *Error {
	e := Errorf(CodeDataDirInUse, "the data directory %s is in use by another process", path)
	e.Hint = "stop the other process, or talk to its server with --url"
	return e
}

// isAt reports whether a path still leads to the open file.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

func (d *directory) close() error {
	if d.lock == nil {
		return nil
	}
	return unlock(d.lock)
}

// unlock lets a lock go and closes its file. Closing alone is not enough: a child
// process has a copy of the file between its fork and its exec, and with it the
// lock.
func unlock(lock *os.File) error {
	return errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_UN), lock.Close())
}

func (d *directory) join(name string) string { return filepath.Join(d.path, name) }

// holdsStore tells whether there is a store in the directory. It is an error if one
// must exist and does not, or if the directory is not empty and no store.
func holdsStore(path string, mustExist bool) (bool, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, Errorf(CodeFormatUnknown, "%s is %w: it is not there", path, ErrNoStore)
	}
	if errors.Is(err, unix.ENOTDIR) {
		return false, Errorf(CodeFormatUnknown, "%s is %w: it is a file", path, ErrNoStore)
	}
	if err != nil {
		return false, err
	}
	var foreign string
	var log, secret bool
	for _, e := range entries {
		switch name := e.Name(); {
		case name == formatName, name == erasedName:
			return true, nil
		case name == secretName:
			secret = true
		case name != lockName && !strings.HasSuffix(name, ".tmp"):
			foreign = cmp.Or(foreign, name)
			log = log || name == logName
		}
	}
	switch {
	case log && secret: // a store that has lost it
		e := Errorf(CodeFormatUnknown, "%s is missing: without it %s is %v", formatName, path, ErrNoStore)
		e.Hint = smallFilesHint
		return false, e
	case foreign != "":
		return false, Errorf(CodeFormatUnknown, "%s is %w: it holds %s and no %s", path, ErrNoStore, foreign, formatName)
	case mustExist:
		return false, Errorf(CodeFormatUnknown, "%s is %w: it holds no %s", path, ErrNoStore, formatName)
	}
	return false, nil
}

const smallFilesHint = "put both files back from a copy of the directory, or restore a backup"

func (d *directory) load(mustExist bool) error {
	there, err := holdsStore(d.path, mustExist)
	if err == nil && !there {
		return d.create()
	}
	d.new = nil
	if err != nil {
		return err
	}
	if err := d.finishExchange(); err != nil {
		return err
	}
	if err := d.dropSorting(); err != nil {
		return err
	}
	return d.read()
}

// read reads the small files of a store.
func (d *directory) read() error {
	raw, err := os.ReadFile(d.join(formatName))
	if err != nil {
		return err
	}
	f, err := readFormat(raw)
	if err != nil {
		return err
	}
	d.upgradingFrom = f.UpgradingFrom
	if err := f.readEpoch(&d.epoch); err != nil {
		return err
	}
	d.secret, err = os.ReadFile(d.join(secretName))
	if errors.Is(err, fs.ErrNotExist) {
		err = Errorf(CodeFormatUnknown, "%s is missing", secretName)
	}
	if err == nil && len(d.secret) != secretBytes {
		err = Errorf(CodeFormatUnknown, "%s has the wrong length", secretName)
	}
	if err == nil && f.Checksum != "" && f.Checksum != formatSum(d.epoch, d.secret) {
		err = Errorf(CodeFormatUnknown, "%s and %s do not have the checksum that they were written with", formatName, secretName)
	}
	if err != nil {
		e := AsError(err)
		if e.Code == CodeFormatUnknown {
			e.Hint = smallFilesHint
			return e
		}
		return err
	}
	if d.floor, err = readHistory(d.join(historyName)); err != nil {
		return err
	}
	return d.loadPrefixes()
}

// create makes a new store, in a directory that holds nothing else.
func (d *directory) create() (err error) {
	if d.new.before, err = namesOf(d.path); err != nil {
		return err
	}
	d.secret = make([]byte, secretBytes)
	_, _ = rand.Read(d.secret) // never fails
	_, _ = rand.Read(d.epoch[:])
	if err := writeFile(d.join(secretName), d.secret); err != nil {
		return err
	}
	return d.writeFormat(0)
}

// dropSorting removes what a check left that was killed before it took a file's name
// away.
func (d *directory) dropSorting() error {
	left, err := filepath.Glob(d.join(extsort.TempPattern))
	for _, path := range left {
		err = errors.Join(err, removeFile(path))
	}
	return err
}

// writeFile replaces a file so that after a crash it is the old or the new one.
func writeFile(path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func removeFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sprintfTrim(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

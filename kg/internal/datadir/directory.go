package datadir

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
	"syscall"

	"golang.org/x/sys/unix"

	"koine/internal/extsort"
	"koine/kg/internal/base"
	"koine/kg/internal/wal"
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
	LockName       = "LOCK"
	FormatName     = "koine.json"
	SecretName     = "secret"
	PrefixesName   = "prefixes.json"
	HistoryName    = "history.json"
	LogName        = "log"
	IndexName      = "index"
	CleanName      = "CLEAN"
	BuildingName   = "index.building"
	CheckpointName = "checkpoints"
)

const SecretBytes = 32

// Directory is a locked data directory.
type Directory struct {
	Path   string
	Lock   *os.File // nil where a read-only one has none
	Epoch  base.Epoch
	Secret []byte
	Floor  base.Revision // the oldest readable revision when it was opened; 0 for all

	// UpgradingFrom is the older format that the contents still have, 0 for none.
	UpgradingFrom int

	Prefixes map[string]string // of the file that format 1 has them in; nil without one

	// New is what takes back a store that is being made; nil for one that was there.
	New *NewStore
}

func formatSum(epoch base.Epoch, secret []byte) string {
	sum := crc32.Update(0, crc32.MakeTable(crc32.Castagnoli), epoch[:])
	return fmt.Sprintf("%08x", crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), secret))
}

// ErrNoStore is wrapped by the error of opening a directory that is not that of a
// store, and in which none is to be made: there is none with Options.MustExist, or
// the files there are somebody else's. Its code is CodeFormatUnknown.
var ErrNoStore = errors.New("not the directory of a koine store")

// OpenDirectory locks the directory without waiting and reads its small files,
// making them where there is no store yet unless one must exist. A directory that it
// refuses with ErrNoStore is left as it was.
func OpenDirectory(path string, mustExist bool) (_ *Directory, err error) {
	made := new(NewStore)
	if !mustExist {
		made.Dirs = MissingDirs(path)
		defer func() {
			if err != nil {
				err = errors.Join(err, made.RemoveDirs())
			}
		}()
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
	}
	if !Exists(filepath.Join(path, LockName)) { // else whoever has the lock may be making a store
		if _, err := HoldsStore(path, mustExist); err != nil {
			return nil, err
		}
	}
	locked := Exists(filepath.Join(path, LockName))
	lock, err := os.OpenFile(filepath.Join(path, LockName), os.O_CREATE|os.O_RDWR, 0o600)
	if IsNotWritable(err) && Exists(filepath.Join(path, FormatName)) {
		return nil, errNotWritable(path, err)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, ErrInUse(path)
	}
	if !isSameFile(lock, filepath.Join(path, LockName)) { // whoever had it took back the store that it was making
		_ = Unlock(lock)
		return nil, ErrInUse(path)
	}
	made.Path, made.lock = path, !locked
	d := &Directory{Path: path, Lock: lock, New: made}
	if err := d.loadOrCreate(mustExist); err != nil {
		return nil, errors.Join(d.New.WrapError(err), d.New.Remove(), Unlock(lock))
	}
	return d, nil
}

func ErrInUse(path string) *base.Error {
	e := base.Errorf(base.CodeDataDirInUse, "the data directory %s is in use by another process", path)
	e.Hint = "stop the other process, or talk to its server with --url"
	return e
}

// isSameFile reports whether a path still leads to the open file.
func isSameFile(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

func (d *Directory) Close() error {
	if d.Lock == nil {
		return nil
	}
	return Unlock(d.Lock)
}

// Unlock lets a lock go and closes its file. Closing alone is not enough: a child
// process has a copy of the file between its fork and its exec, and with it the
// lock.
func Unlock(lock *os.File) error {
	return errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_UN), lock.Close())
}

func (d *Directory) Join(name string) string { return filepath.Join(d.Path, name) }

// HoldsStore tells whether there is a store in the directory. It is an error if one
// must exist and does not, or if the directory is not empty and no store.
func HoldsStore(path string, mustExist bool) (bool, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, base.Errorf(base.CodeFormatUnknown, "%s is %w: it is not there", path, ErrNoStore)
	}
	if errors.Is(err, unix.ENOTDIR) {
		return false, base.Errorf(base.CodeFormatUnknown, "%s is %w: it is a file", path, ErrNoStore)
	}
	if err != nil {
		return false, err
	}
	var foreign string
	var log, secret bool
	for _, e := range entries {
		switch name := e.Name(); {
		case name == FormatName, name == ErasedName:
			return true, nil
		case name == SecretName:
			secret = true
		case name != LockName && !strings.HasSuffix(name, ".tmp"):
			foreign = cmp.Or(foreign, name)
			log = log || name == LogName
		}
	}
	switch {
	case log && secret: // a store that has lost it
		e := base.Errorf(base.CodeFormatUnknown, "%s is missing: without it %s is %v", FormatName, path, ErrNoStore)
		e.Hint = smallFilesHint
		return false, e
	case foreign != "":
		return false, base.Errorf(base.CodeFormatUnknown, "%s is %w: it holds %s and no %s", path, ErrNoStore, foreign, FormatName)
	case mustExist:
		return false, base.Errorf(base.CodeFormatUnknown, "%s is %w: it holds no %s", path, ErrNoStore, FormatName)
	}
	return false, nil
}

const smallFilesHint = "put both files back from a copy of the directory, or restore a backup"

func (d *Directory) loadOrCreate(mustExist bool) error {
	there, err := HoldsStore(d.Path, mustExist)
	if err == nil && !there {
		return d.createStore()
	}
	d.New = nil
	if err != nil {
		return err
	}
	if err := d.finishExchange(); err != nil {
		return err
	}
	if err := d.removeSortFiles(); err != nil {
		return err
	}
	return d.Read()
}

// Read reads the small files of a store.
func (d *Directory) Read() error {
	raw, err := os.ReadFile(d.Join(FormatName))
	if err != nil {
		return err
	}
	f, err := ReadFormat(raw)
	if err != nil {
		return err
	}
	d.UpgradingFrom = f.UpgradingFrom
	if err := f.readEpoch(&d.Epoch); err != nil {
		return err
	}
	d.Secret, err = os.ReadFile(d.Join(SecretName))
	if errors.Is(err, fs.ErrNotExist) {
		err = base.Errorf(base.CodeFormatUnknown, "%s is missing", SecretName)
	}
	if err == nil && len(d.Secret) != SecretBytes {
		err = base.Errorf(base.CodeFormatUnknown, "%s has the wrong length", SecretName)
	}
	if err == nil && f.Checksum != "" && f.Checksum != formatSum(d.Epoch, d.Secret) {
		err = base.Errorf(base.CodeFormatUnknown, "%s and %s do not have the checksum that they were written with", FormatName, SecretName)
	}
	if err != nil {
		e := base.AsError(err)
		if e.Code == base.CodeFormatUnknown {
			e.Hint = smallFilesHint
			return e
		}
		return err
	}
	if d.Floor, err = readHistory(d.Join(HistoryName)); err != nil {
		return err
	}
	return d.loadPrefixes()
}

// createStore makes a new store, in a directory that holds nothing else.
func (d *Directory) createStore() (err error) {
	if d.New.before, err = namesOf(d.Path); err != nil {
		return err
	}
	d.Secret = make([]byte, SecretBytes)
	_, _ = rand.Read(d.Secret) // never fails
	_, _ = rand.Read(d.Epoch[:])
	if err := WriteFile(d.Join(SecretName), d.Secret); err != nil {
		return err
	}
	return d.WriteFormat(0)
}

// removeSortFiles removes what a check left that was killed before it took a file's name
// away.
func (d *Directory) removeSortFiles() error {
	left, err := filepath.Glob(d.Join(extsort.TempPattern))
	for _, path := range left {
		err = errors.Join(err, RemoveFile(path))
	}
	return err
}

// WriteFile replaces a file so that after a crash it is the old or the new one.
func WriteFile(path string, data []byte) error {
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
	return SyncDir(filepath.Dir(path))
}

func RemoveFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Names in a data directory while something is erased.
const (
	ErasingName = "erasing"       // the new store, while it is made
	ErasedName  = "erasing.ready" // there while it takes the old one's place
	// KeptName is where EraseOptions.Keep leaves the files of before.
	KeptName = "before-erasing"
)

func FreeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// A full volume is no fault of the store: it goes on to be read, and takes updates again
// when there is room. Three things keep it from failing.
//
//   - Updates are refused below a reserve of free space, but for the entry by which what an
//     unfinished replacement wrote is given up: it is small, and lets that be removed.
//   - The log allocates what an append needs before it writes anything of it, so that a
//     group for which there is no room is refused as a whole.
//   - The index writes to memory and makes tables of that in the background. A table for
//     which there is no room is tried again; until then its keys stay in memory, and the
//     log has them.

// IsNoSpace tells that something failed because the volume, or the share of it that the
// process may have, is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, wal.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsNotWritable reports whether an error says that files are not to be written, because
// the volume is mounted read-only or the process may not.
func IsNotWritable(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
}

// errNotWritable is the error of opening a directory that cannot be written.
func errNotWritable(path string, cause error) *base.Error {
	e := base.Errorf(base.CodeReadOnly, "the data directory %s cannot be written", path)
	e.Err = cause
	if errors.Is(cause, unix.EROFS) {
		e.Message += ": its volume is mounted read-only"
	} else {
		e.Message += " by this user"
	}
	e.Hint = "koine check, export and backup read it as it is; anything else needs a directory that can be written"
	return e
}

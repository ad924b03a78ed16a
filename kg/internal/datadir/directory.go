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
	"koine/kg/base"
	"koine/kg/internal/wal"
)

// A data directory holds
//
//	LOCK            held while the store is open
//	koine.json      format version and epoch
//	secret          seals tokens; 32 random bytes
//	prefixes.json   the prefixes of a directory of format 1, until they are in the log
//	history.json    the oldest revision that can be read, if not all can
//	log/            the log, the source of truth
//	index/          the index, derived from the log; may be deleted
//	index/CLEAN     checksums of the index files after a clean close; without checksums
//	                if a file was found damaged later
//	index.building  exists while a rebuild writes the index
//	erasing/        the new store while Erase writes it
//	erasing.ready   exists while the new store replaces this one
//	checkpoints/    states from which the index is rebuilt with the log after them
//	sorting-….tmp   temporary files of a check or a load, unlinked once they are open
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

// SecretBytes is the length of the secret.
const SecretBytes = 32

// Directory is a locked data directory.
type Directory struct {
	Path   string
	Lock   *os.File // nil if a read-only directory has no lock file
	Epoch  base.Epoch
	Secret []byte
	Floor  base.Revision // the oldest readable revision at the time of opening; 0 for all

	// UpgradingFrom is the older format of the contents during an upgrade, otherwise 0.
	UpgradingFrom int

	Prefixes map[string]string // from prefixes.json of format 1; nil without the file

	// New removes a store whose creation fails; nil for an existing store.
	New *NewStore
}

func formatSum(epoch base.Epoch, secret []byte) string {
	sum := crc32.Update(0, crc32.MakeTable(crc32.Castagnoli), epoch[:])
	return fmt.Sprintf("%08x", crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), secret))
}

// ErrNoStore is wrapped by the error of opening a directory that is not a store and in
// which none is created: Options.MustExist is set, or the directory holds foreign files.
// The code is CodeFormatUnknown.
var ErrNoStore = errors.New("not the directory of a koine store")

// OpenDirectory locks the directory without waiting and reads its small files. It creates
// a store if there is none, unless mustExist is set. A directory that it refuses with
// ErrNoStore is unchanged.
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
	if !Exists(filepath.Join(path, LockName)) { // otherwise the holder of the lock may be creating a store
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
	if !isSameFile(lock, filepath.Join(path, LockName)) { // its holder removed the store that it was creating
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

// ErrInUse returns the CodeDataDirInUse error for a directory.
func ErrInUse(path string) *base.Error {
	e := base.Errorf(base.CodeDataDirInUse, "the data directory %s is in use by another process", path)
	e.Hint = "stop the other process, or use its server with --url"
	return e
}

// isSameFile reports whether path still refers to the open file.
func isSameFile(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

// Close unlocks the directory.
func (d *Directory) Close() error {
	if d.Lock == nil {
		return nil
	}
	return Unlock(d.Lock)
}

// Unlock releases a lock and closes its file. Closing alone is not enough: a child process
// holds a copy of the file, and with it the lock, between its fork and its exec.
func Unlock(lock *os.File) error {
	return errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_UN), lock.Close())
}

// Join returns the path of a file in the directory.
func (d *Directory) Join(name string) string { return filepath.Join(d.Path, name) }

// HoldsStore reports whether the directory holds a store. It returns an error if mustExist
// is set and it does not, or if the directory is neither empty nor a store.
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
	case log && secret: // a store without its format file
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

// Read reads the small files of a store. It returns CodeFormatUnknown if one is missing or
// damaged.
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

// createStore creates a new store in a directory that holds nothing else.
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

// removeSortFiles removes temporary files of a process that was killed before it unlinked
// them.
func (d *Directory) removeSortFiles() error {
	left, err := filepath.Glob(d.Join(extsort.TempPattern))
	for _, path := range left {
		err = errors.Join(err, RemoveFile(path))
	}
	return err
}

// WriteFile replaces a file atomically: after a crash it has the old or the new content.
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

// RemoveFile removes a file durably. It is not an error if the file does not exist.
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

// SyncDir syncs a directory, which makes renames and removals in it durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// IsOwnName reports whether a name in a data directory is that of a file or folder of the store.
func IsOwnName(name string) bool {
	switch name {
	case LockName, FormatName, SecretName, PrefixesName, HistoryName, LogName, IndexName, CleanName, BuildingName, CheckpointName, ErasingName, ErasedName, KeptName:
		return true
	}
	return false
}

// Exists reports whether a file or directory exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Names in a data directory while something is erased.
const (
	ErasingName = "erasing"       // the new store while it is written
	ErasedName  = "erasing.ready" // exists while the new store replaces the old one
	// KeptName is the directory of the previous files with EraseOptions.Keep.
	KeptName = "before-erasing"
)

// FreeBytes returns the free space of the volume for an unprivileged process.
func FreeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// A full volume does not fail the store: reads continue, and updates resume when there is
// space. It relies on three things.
//
//   - Updates are refused below a reserve of free space, except the entry that gives up an
//     unfinished replacement: it is small, and lets the written part be removed.
//   - The log allocates the space of an append before it writes, so that a group that does
//     not fit is refused as a whole.
//   - The index writes to memory and flushes tables in the background. A table that does
//     not fit is retried; until then its keys stay in memory, and the log has them.

// IsNoSpace reports whether an error was caused by a full volume or an exhausted disk
// quota.
func IsNoSpace(err error) bool {
	return errors.Is(err, wal.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsNotWritable reports whether an error was caused by a volume that is mounted read-only
// or by missing permissions.
func IsNotWritable(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
}

// errNotWritable returns the error of opening a directory that is not writable.
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

package kg

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"koine/kg/internal/wal"
)

// EraseOptions says what is erased: what fits all that is set. Something must be.
type EraseOptions struct {
	// Pattern is of the statements. Those in graphs of koine's own are erased only
	// if the graph is named. Entries of a journal keep their numbers (Sequence), and
	// that they are Evicted: by these entries are counted.
	Pattern Pattern
	// Text is that of a literal object, of any datatype and language; "" for any.
	Text string
	// Source leaves the statements and erases what this agent asserted of them; a
	// statement that nobody else backed goes with it.
	Source AgentID
	// DryRun counts and changes nothing.
	DryRun bool
	// Keep leaves the files of before in the directory, under KeptName.
	Keep   bool
	Logger *slog.Logger // discards when nil
	// Progress is called now and then with how many log entries have been
	// rewritten; may be nil.
	Progress func(done, total uint64)

	// step is called before each step of the exchange; for fault tests.
	step func() error
}

// EraseReport says what was erased.
type EraseReport struct {
	Changes  uint64 // of the log that were taken out or altered
	Commits  uint64 // in which they were
	Rows     uint64 // of the checkpoint, where the log's head was cut
	Revision Revision
	Epoch    Epoch // of the new log; the old one when nothing was erased
}

// Names in a data directory while something is erased.
const (
	erasingName = "erasing"       // the new store, while it is made
	erasedName  = "erasing.ready" // there while it takes the old one's place
	// KeptName is where EraseOptions.Keep leaves the files of before.
	KeptName = "before-erasing"
)

// Erase writes the log of a data directory anew, with the same revisions and
// without what is to be erased, under another epoch, and builds the index from
// it; positions and cursors of before are not of this store any more. Commits of
// which something was erased also lose their justification, and their idempotency
// keys refuse to be used again. The files of before are removed when the new ones
// have been checked. A stop at any time leaves the one or the other; to erase the
// same again changes nothing. Backups are out of its reach.
func Erase(ctx context.Context, dir string, o EraseOptions) (r EraseReport, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.valid(); err != nil {
		return r, err
	}
	if err := sound(dir, o.Logger); err != nil {
		return r, err
	}
	d, err := openDirectory(dir, true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if o.Keep && exists(d.join(KeptName)) {
		e := Errorf(CodeInvalid, "%s is there already", d.join(KeptName))
		e.Hint = "take it away first: it holds what was erased before"
		return r, e
	}
	e := &erase{dir: d, options: o}
	if r, err = e.rewrite(ctx); err != nil || o.DryRun || r.Changes+r.Rows == 0 {
		r.Epoch = d.epoch
		return r, errors.Join(err, os.RemoveAll(d.join(erasingName)))
	}
	if err = e.check(ctx, r.Revision); err != nil {
		return r, errors.Join(err, os.RemoveAll(d.join(erasingName)))
	}
	r.Epoch = e.epoch
	return r, d.exchange(o.Keep, o.step)
}

// sound opens the store once, which compares its index with its log: of a log that
// lost its end nothing would tell any more afterwards.
func sound(dir string, log *slog.Logger) error {
	s, err := Open(dir, Options{Logger: log, MustExist: true})
	if err != nil {
		return err
	}
	return errors.Join(s.Sound(), s.Close())
}

func (o *EraseOptions) valid() error {
	p := o.Pattern
	if p == (Pattern{}) && o.Source == "" && o.Text == "" {
		return Errorf(CodeInvalid, "say what is to be erased: a part of a statement, or a source")
	}
	if o.Source != "" {
		o.Source = CanonicalAgent(string(o.Source))
		return o.Source.Valid()
	}
	return nil
}

// covers tells whether a statement is one of those that are asked for.
func (o *EraseOptions) covers(q *Quad) bool {
	p := &o.Pattern
	if IsOwnGraph(q.Graph) && (p.Graph != q.Graph || counted(q)) || o.Text != "" && (q.Object.Kind() != KindLiteral || q.Object.value != o.Text) {
		return false
	}
	return (p.Subject.IsZero() || p.Subject == q.Subject) && (p.Predicate.IsZero() || p.Predicate == q.Predicate) &&
		(p.Object.IsZero() || p.Object == q.Object) && (p.Graph.IsZero() || p.Graph == q.Graph)
}

// counted tells whether statements of a journal are counted by which this is: the
// number of an entry, and that it is no longer kept. They say nothing else, and
// without one of them numbers would be given twice.
func counted(q *Quad) bool {
	return strings.HasPrefix(q.Graph.value, JournalGraphPrefix) && (q.Predicate == Sequence || q.Predicate == Evicted)
}

// erase is one under way.
type erase struct {
	dir     *directory
	options EraseOptions
	epoch   Epoch
}

// rewrite makes the new store's files beside the old ones.
func (e *erase) rewrite(ctx context.Context) (r EraseReport, err error) {
	old, err := wal.Open(e.dir.join(logName), wal.Options{Logger: e.options.Logger})
	if err != nil {
		return r, errLog(err)
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	to := filepath.Join(e.dir.path, erasingName)
	if err := os.RemoveAll(to); err != nil {
		return r, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return r, err
	}
	_, _ = rand.Read(e.epoch[:]) // never fails
	first := max(old.First(), 1)
	x := newEraser(&e.options)
	var checkpoint *erasedCheckpoint
	if first > 1 {
		path, m, err := (&Store{dir: e.dir, log: e.options.Logger}).newestCheckpoint()
		if err != nil {
			return r, err
		}
		if checkpoint, err = readErasedCheckpoint(path, m, x, Revision(first)); err != nil {
			return r, err
		}
		r.Rows = checkpoint.rows
	}
	fresh, err := wal.Open(filepath.Join(to, logName), wal.Options{Logger: e.options.Logger, Begin: first})
	if err != nil {
		return r, err
	}
	err = e.copyLog(ctx, old, fresh, x)
	r.Changes, r.Commits, r.Revision = x.changes, x.commits, Revision(old.Last())
	if err == nil && checkpoint != nil && !e.options.DryRun {
		err = checkpoint.write(filepath.Join(to, checkpointName), e.epoch, fresh)
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return r, err
	}
	return r, e.smallFiles(to)
}

// eraseGroup is how many bytes of entries share an fsync.
const eraseGroup = 8 << 20

func (e *erase) copyLog(ctx context.Context, from, to *wal.Log, x *eraser) error {
	if from.Last() == 0 {
		return nil
	}
	first, total := from.First(), from.Last()-from.First()+1
	var batch []wal.Prepared
	next, size := first, 0
	flush := func() error {
		err := to.AppendPrepared(next, batch)
		next, size, batch = next+uint64(len(batch)), 0, nil
		return err
	}
	for entry, err := range from.Entries(first, from.Last()) {
		if err != nil {
			return errLog(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := parseEntry(entry.Payload, Revision(entry.Index))
		if err != nil {
			return err
		}
		payload := entry.Payload
		if x.redact(c) {
			payload = appendEntry(nil, c)
		}
		if done := entry.Index - first + 1; e.options.Progress != nil && (done%backupSays == 0 || done == total) {
			e.options.Progress(done, total)
		}
		if e.options.DryRun {
			continue
		}
		p, err := wal.Prepare(payload)
		if err != nil {
			return err
		}
		batch, size = append(batch, p), size+p.Bytes()
		if size >= eraseGroup {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// smallFiles writes those beside the log; the one that makes a store of the
// directory is the last.
func (e *erase) smallFiles(to string) error {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	if err := writeFile(filepath.Join(to, secretName), secret); err != nil {
		return err
	}
	if e.dir.floor > 0 {
		if err := writeHistory(filepath.Join(to, historyName), e.dir.floor); err != nil {
			return err
		}
	}
	return writeFormat(filepath.Join(to, formatName), e.epoch, secret, 0)
}

// check opens the new store, which builds its index, and compares everything in
// it.
func (e *erase) check(ctx context.Context, head Revision) (err error) {
	s, err := Open(filepath.Join(e.dir.path, erasingName), Options{Logger: e.options.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Sound(); err != nil {
		return err
	}
	report, err := s.Check(ctx, CheckOptions{Checkpoints: true})
	if err != nil {
		return err
	}
	if !report.Clean() {
		return Errorf(CodeInternal, "what was written anew does not agree with itself: %s", report.Problems[0])
	}
	if report.Revision != head {
		return Errorf(CodeInternal, "what was written anew ends with revision %d, and the store with %d", report.Revision, head)
	}
	return nil
}

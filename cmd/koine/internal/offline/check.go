package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/cli"
	"koine/internal/garbage"
	"koine/internal/memory"
	"koine/kg"
)

// CheckCommand verifies the integrity of a store.
type CheckCommand struct {
	cli.Target
	Repair  bool `help:"Rebuild damaged data that follows from the log: the index and checkpoints. Requires --data."`
	Rebuild bool `help:"Rebuild the index from the newest checkpoint and the log before the check. Requires --data."`

	Memory *memory.Size `help:"Target memory of a check of --data (default: three quarters of the limit of the control group; without a limit 384M)." placeholder:"SIZE"`
}

// Help is shown by --help.
func (CheckCommand) Help() string {
	return `Compares the orders of the index, the dictionary, the counts, the history and the log with each other. The exit code is 4 if anything is damaged: --repair then rebuilds the index and the checkpoints where they are wrong, reports what it did, and exits with 0 if the store is sound afterwards. It never changes the log. A damaged log (LOG_DAMAGED) requires a backup: see koine restore. The exit code is 2 if the directory contains no store. --rebuild rebuilds the index in any case.

Examples:
  koine check --data ./koine-data
  koine check --data ./koine-data --repair
  koine check --data ./koine-data --rebuild
  koine check --url http://127.0.0.1:8080`
}

// Run verifies the store and prints the report.
func (c *CheckCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	offline, err := c.IsOffline(command)
	if err != nil {
		return err
	}
	shares, err := c.shares()
	if err != nil {
		return err
	}
	var report *kg.CheckReport
	switch {
	case c.Repair && c.Rebuild:
		return cli.Usagef("--repair and --rebuild are mutually exclusive: a repair rebuilds the index if necessary")
	case c.Repair && !offline:
		return cli.Usagef("--repair requires --data: stop the server first")
	case c.Repair:
		report, err = c.repairDirectory(ctx, t, log, shares)
	case offline:
		report, err = c.checkDirectory(ctx, t, log, shares)
	case c.Rebuild:
		return cli.Usagef("--rebuild requires --data: stop the server first")
	default:
		report, err = c.checkServer(ctx)
	}
	if err != nil {
		return err
	}
	return sayReport(t, report)
}

// Bounds of the memory of a check beside the shares of --memory. A check reads nearly every block
// once, so that a larger cache has no effect, and sorts in files what does not fit.
const (
	maxCheckCache = 64 << 20
	maxCheckSort  = 32 << 20
	// sortShare is the part of the heap that one of the three sorts of a check may have.
	sortShare = 8
)

// shares divides the memory.
func (c *CheckCommand) shares() (memory.Shares, error) {
	if c.Memory == nil {
		return memory.Divide(memory.Available()), nil
	}
	if *c.Memory < memory.Min || *c.Memory > memory.Max {
		return memory.Shares{}, cli.Usagef("--memory must be between %s and %s", memory.Size(memory.Min), memory.Size(memory.Max))
	}
	return memory.Divide(int64(*c.Memory)), nil
}

// storeOptions returns the options of the store that take memory.
func storeOptions(s memory.Shares) kg.Options {
	return kg.Options{
		BlockCacheBytes: min(s.Blocks, maxCheckCache), IndexBytes: s.Indexes, TermCache: s.Terms / 2, // in each direction
		MemTableBytes: s.Memtable, MemTables: s.Memtables, TableBytes: s.Table,
	}
}

func sortBytes(s memory.Shares) int { return int(min(s.Heap/sortShare, maxCheckSort)) }

func (c *CheckCommand) checkDirectory(ctx context.Context, t cli.Terminal, log *slog.Logger, s memory.Shares) (*kg.CheckReport, error) {
	garbage.Limit(s.Heap)
	open := c.OpenToRead
	if c.Rebuild {
		open = c.OpenExisting
	}
	options := storeOptions(s)
	options.Rebuild = c.Rebuild
	store, err := open(log, options)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if c.Rebuild {
		t.Notef("The index was rebuilt.")
	}
	if err := store.Maintenance().Sound(); err != nil {
		return nil, err
	}
	return store.Maintenance().Check(ctx, CheckOptions(store, s))
}

// CheckOptions returns the options of a check that stays within the shares of the memory.
func CheckOptions(store *kg.Store, s memory.Shares) kg.CheckOptions {
	return kg.CheckOptions{
		Checkpoints: true, SortBytes: sortBytes(s),
		Progress: func(string, uint64) { memory.ReleaseBeyond(s.Mapped, store.Maintenance().ReleasePages) },
	}
}

// repairDirectory rebuilds the damaged parts of a store and prints the repairs.
func (c *CheckCommand) repairDirectory(ctx context.Context, t cli.Terminal, log *slog.Logger, s memory.Shares) (*kg.CheckReport, error) {
	if err := c.RequireDirectory(); err != nil {
		return nil, err
	}
	garbage.Limit(s.Heap)
	options := storeOptions(s)
	options.Logger = log
	r, err := kg.Repair(ctx, c.Data, options, kg.CheckOptions{SortBytes: sortBytes(s)})
	for _, done := range r.Done {
		t.Notef("repaired: %s", done)
	}
	if err != nil {
		return nil, cli.HintInUse(err)
	}
	if len(r.Done) == 0 {
		t.Notef("Nothing to repair.")
	}
	return r.Check, nil
}

func (c *CheckCommand) checkServer(ctx context.Context) (*kg.CheckReport, error) {
	server, err := c.ServerFlags().OpenUnbounded(ctx)
	if err != nil {
		return nil, err
	}
	response, err := server.Do(ctx, http.MethodPost, CheckPath, nil, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	report := new(kg.CheckReport)
	if err := json.NewDecoder(io.LimitReader(response.Body, cli.MaxAnswerBytes)).Decode(report); err != nil {
		return nil, cli.InvalidResponse(err)
	}
	return report, nil
}

func sayReport(t cli.Terminal, r *kg.CheckReport) error {
	fmt.Fprintf(t.Out, "revision %d: %s statements, %s history intervals, %s terms, %s log entries\n",
		r.Revision, cli.FormatCount(r.Statements), cli.FormatCount(r.Past), cli.FormatCount(r.Terms), cli.FormatCount(r.Entries))
	if r.Clean() {
		_, err := fmt.Fprintln(t.Out, "no damage found")
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintln(t.Out, "fault:", p)
	}
	return cli.WithCode(fmt.Errorf("%s faults found: run koine check --data DIR --repair", cli.FormatCount(uint64(r.Total))), cli.ExitDamaged)
}

// CheckPath is the path at which a server verifies its store.
const CheckPath = "/admin/check"

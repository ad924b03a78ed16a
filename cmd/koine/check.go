package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/alecthomas/kong"

	"koine/kg"
)

// checkCommand verifies the integrity of a store.
type checkCommand struct {
	target
	Repair  bool `help:"Rebuild damaged data that follows from the log: the index and checkpoints. Requires --data."`
	Rebuild bool `help:"Rebuild the index from the newest checkpoint and the log before the check. Requires --data."`
}

// Help is shown by --help.
func (checkCommand) Help() string {
	return `Compares the orders of the index, the dictionary, the counts, the history and the log with each other. The exit code is 4 if anything is damaged: --repair then rebuilds the index and the checkpoints where they are wrong, reports what it did, and exits with 0 if the store is sound afterwards. It never changes the log. A damaged log (LOG_DAMAGED) requires a backup: see koine restore. The exit code is 2 if the directory contains no store. --rebuild rebuilds the index in any case.

Examples:
  koine check --data ./koine-data
  koine check --data ./koine-data --repair
  koine check --data ./koine-data --rebuild
  koine check --url http://127.0.0.1:8080`
}

// Run verifies the store and prints the report.
func (c *checkCommand) Run(ctx context.Context, command *kong.Context, t terminal, log *slog.Logger) error {
	offline, err := c.isOffline(command)
	if err != nil {
		return err
	}
	var report *kg.CheckReport
	switch {
	case c.Repair && c.Rebuild:
		return usageError{errors.New("--repair and --rebuild are mutually exclusive: a repair rebuilds the index if necessary")}
	case c.Repair && !offline:
		return usageError{errors.New("--repair requires --data: stop the server first")}
	case c.Repair:
		report, err = c.repairDirectory(ctx, t, log)
	case offline:
		report, err = c.checkDirectory(ctx, t, log)
	case c.Rebuild:
		return usageError{errors.New("--rebuild requires --data: stop the server first")}
	default:
		report, err = c.checkServer(ctx)
	}
	if err != nil {
		return err
	}
	return sayReport(t, report)
}

// checkCacheBytes is the block cache of a check. A check reads nearly every block once, so
// a larger cache has no effect.
const checkCacheBytes = 64 << 20

func (c *checkCommand) checkDirectory(ctx context.Context, t terminal, log *slog.Logger) (*kg.CheckReport, error) {
	open := c.openToRead
	if c.Rebuild {
		open = c.openExisting
	}
	store, err := open(log, kg.Options{Rebuild: c.Rebuild, BlockCacheBytes: checkCacheBytes})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if c.Rebuild {
		t.sayf("The index was rebuilt.")
	}
	if err := store.Sound(); err != nil {
		return nil, err
	}
	return store.Check(ctx, kg.CheckOptions{Checkpoints: true})
}

// repairDirectory rebuilds the damaged parts of a store and prints the repairs.
func (c *checkCommand) repairDirectory(ctx context.Context, t terminal, log *slog.Logger) (*kg.CheckReport, error) {
	if err := c.requireDirectory(); err != nil {
		return nil, err
	}
	r, err := kg.Repair(ctx, c.Data, kg.Options{Logger: log}, kg.CheckOptions{})
	for _, done := range r.Done {
		t.sayf("repaired: %s", done)
	}
	if err != nil {
		return nil, hintInUse(err)
	}
	if len(r.Done) == 0 {
		t.sayf("Nothing to repair.")
	}
	return r.Check, nil
}

func (c *checkCommand) checkServer(ctx context.Context) (*kg.CheckReport, error) {
	server, err := c.serverFlags().openUnbounded(ctx)
	if err != nil {
		return nil, err
	}
	response, err := server.Do(ctx, http.MethodPost, checkPath, nil, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	report := new(kg.CheckReport)
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes)).Decode(report); err != nil {
		return nil, invalidResponse(err)
	}
	return report, nil
}

func sayReport(t terminal, r *kg.CheckReport) error {
	fmt.Fprintf(t.out, "revision %d: %s statements, %s history intervals, %s terms, %s log entries\n",
		r.Revision, countText(r.Statements), countText(r.Past), countText(r.Terms), countText(r.Entries))
	if r.Clean() {
		_, err := fmt.Fprintln(t.out, "no damage found")
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintln(t.out, "fault:", p)
	}
	return exitError{fmt.Errorf("%s faults found: run koine check --data DIR --repair", countText(uint64(r.Total))), exitDamaged}
}

// checkPath is the path at which a server verifies its store.
const checkPath = "/admin/check"

// checkHandler answers POST with the report of a check of the running store.
func checkHandler(store *kg.Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "a check requires method POST", http.StatusMethodNotAllowed)
			return
		}
		report, err := store.Check(r.Context(), kg.CheckOptions{Checkpoints: true})
		if err != nil {
			http.Error(w, kg.AsError(err).Message, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(report) // an encoding error means that the client has disconnected
	})
}

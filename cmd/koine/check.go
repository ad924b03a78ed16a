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
	Repair  bool `help:"Make anew what is wrong and follows from the log: the index, checkpoints. Needs --data."`
	Rebuild bool `help:"First throw the index away and build it again from the newest checkpoint and the log. Needs --data."`
}

// Help is shown by --help.
func (checkCommand) Help() string {
	return `Compares the index's orders, the dictionary, the counts, the past and the log with each other. It ends with exit code 4 if it finds a fault; then try --repair, which makes the index and the checkpoints anew where they are wrong, says what it did, and ends with 0 if all is well then; the log, from which they follow, it never touches. A directory that holds no store is exit code 2. A damaged log (LOG_DAMAGED) takes a backup: koine restore. --rebuild makes the index anew in any case.

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
		return usageError{errors.New("--repair and --rebuild exclude each other: a repair rebuilds if it has to")}
	case c.Repair && !offline:
		return usageError{errors.New("--repair needs --data: stop the server first")}
	case c.Repair:
		report, err = c.repairDirectory(ctx, t, log)
	case offline:
		report, err = c.checkDirectory(ctx, t, log)
	case c.Rebuild:
		return usageError{errors.New("--rebuild needs --data: stop the server first")}
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
		t.sayf("The index was built again.")
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
		t.sayf("There was nothing to repair.")
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
		return nil, fmt.Errorf("the server's answer: %w", err)
	}
	return report, nil
}

func sayReport(t terminal, r *kg.CheckReport) error {
	fmt.Fprintf(t.out, "revision %d: %s statements, %s intervals of the past, %s terms, %s log entries\n",
		r.Revision, countText(r.Statements), countText(r.Past), countText(r.Terms), countText(r.Entries))
	if r.Clean() {
		_, err := fmt.Fprintln(t.out, "everything agrees")
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintln(t.out, "fault:", p)
	}
	return exitError{fmt.Errorf("%s faults; try koine check --data DIR --repair", countText(uint64(r.Total))), exitDamaged}
}

// checkPath is the path at which a server verifies its store.
const checkPath = "/admin/check"

// checkHandler answers POST with the report of a check of the running store.
func checkHandler(store *kg.Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "a check requires the method POST", http.StatusMethodNotAllowed)
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

package main

import (
	"context"
	"log/slog"

	"koine/internal/tasks"
	"koine/kg"
)

// loadTasks begins to keep the tasks of a store. Agents on record take them.
func loadTasks(ctx context.Context, log *slog.Logger, store *kg.Store, who *identity) (*tasks.Service, error) {
	work := tasks.New(tasks.Options{Known: who.knows, Logger: log})
	return work, work.Load(ctx, store)
}

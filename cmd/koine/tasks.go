package main

import (
	"log/slog"

	"koine/internal/tasks"
)

// tasks keeps the tasks of a store, once it is loaded. Agents on record take them.
func (c *serveCommand) tasks(log *slog.Logger, who *identity) *tasks.Service {
	return tasks.New(tasks.Options{Known: who.knows, Logger: log})
}

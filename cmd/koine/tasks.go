package main

import (
	"log/slog"

	"koine/a2a"
	"koine/internal/conformance"
	"koine/internal/tasks"
)

// tasks keeps the tasks of a store, once it is loaded. Agents on record take them.
func (c *serveCommand) tasks(log *slog.Logger, who *identity) *tasks.Service {
	return tasks.New(tasks.Options{Known: who.knows, Logger: log})
}

// self is who answers messages to koine itself.
func (c *serveCommand) self(h *a2a.Handler) tasks.Worker {
	if c.ConformanceAgent {
		return conformance.Agent{}
	}
	return h.Self()
}

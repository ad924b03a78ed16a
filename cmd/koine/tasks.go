package main

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"koine/a2a"
	"koine/a2a/hub"
	"koine/internal/conformance"
	"koine/internal/courier"
	"koine/internal/push"
	"koine/internal/tasks"
	"koine/internal/webhook"
	"koine/kg"
)

// newTasks keeps the tasks of a store, once it is loaded. Agents on record take them.
func (c *serveCommand) newTasks(log *slog.Logger, who *identity) *tasks.Service {
	return tasks.New(tasks.Options{
		Known: who.isAvailable, Limits: func(id kg.AgentID) tasks.Limits { return tasks.Limits(who.agents.Limits(id)) },
		Registered: who.agents.Registered, Unregistered: who.agents.Unregistered, LeaveGrace: c.LeaveGrace, MaxArtifactBytes: c.MaxArtifactMiB << 20,
		Repeats: c.ConformanceAgent, Logger: log,
	})
}

// taskFlags are about tasks.
type taskFlags struct {
	LeaveGrace     time.Duration `help:"How long the tasks of an agent that deregistered wait for it to register again before they fail." default:"1m"`
	MaxArtifactMiB int           `help:"How large an artifact of a task may become, with half a KiB for each chunk of it." default:"64" name:"max-artifact-mib" placeholder:"MIB"`
}

// Validate refuses what no server can keep to.
func (f *taskFlags) Validate() error {
	switch {
	case f.LeaveGrace <= 0:
		return errors.New("--leave-grace is a time, such as 1m")
	case f.MaxArtifactMiB < 1 || f.MaxArtifactMiB > 1<<20:
		return errors.New("--max-artifact-mib is between 1 and 1048576")
	}
	return nil
}

// pushFlags are about web hooks.
type pushFlags struct {
	AllowPrivateWebhooks bool `help:"Call web hooks at private and loopback addresses too: whoever creates a task, or registers an agent, can then have this server call its own network."`
}

// newPushService delivers what happens to tasks, once it is loaded.
func (c *serveCommand) newPushService(log *slog.Logger) *push.Service {
	return push.New(push.Options{Body: a2a.Notification, WantsFullTask: a2a.NotifiesWhole, Options: webhook.Options{AllowPrivate: c.AllowPrivateWebhooks}, Logger: log})
}

// newCourier carries the letters of agents behind the hub to their web hooks, once it is
// loaded.
func (c *serveCommand) newCourier(log *slog.Logger, who *identity) *courier.Service {
	return courier.New(courier.Options{Options: webhook.Options{AllowPrivate: c.AllowPrivateWebhooks}, Body: hub.Letter, MayDeliver: who.isAvailable, Logger: log})
}

// cardOptions is what the agent card says of the server.
func (c *serveCommand) cardOptions(who *identity) a2a.CardOptions {
	return a2a.CardOptions{
		Version: versionText(), PublicURL: strings.TrimRight(c.PublicURL, "/"), Keys: who.takesKeys(), Tokens: who.takesTokens(), Channels: true, Push: true, Only: c.cardVersion(),
	}
}

// cardVersion is the version of A2A that agent cards are of.
func (c *serveCommand) cardVersion() a2a.CardVersion {
	if c.Card == "both" {
		return a2a.AnyVersion
	}
	return a2a.CardVersion(c.Card)
}

// selfWorker is who answers messages to koine itself.
func (c *serveCommand) selfWorker(h *a2a.Handler) tasks.Worker {
	if c.ConformanceAgent {
		return conformance.Agent{}
	}
	return h.Self()
}

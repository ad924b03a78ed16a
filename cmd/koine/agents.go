package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"koine/a2a"
	"koine/a2a/hub"
	"koine/channels"
	"koine/cmd/koine/internal/buildinfo"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/conformance"
	"koine/internal/delivery"
	"koine/internal/delivery/forward"
	"koine/internal/delivery/inboxhook"
	"koine/internal/delivery/mailhook"
	"koine/internal/delivery/push"
	"koine/internal/dialect/openintent"
	follows "koine/internal/following"
	"koine/internal/intents"
	"koine/internal/presence"
	"koine/internal/tasks"
	"koine/kg"
)

// newTasks creates the task service. Only registered agents receive tasks.
func (c *serveCommand) newTasks(log *slog.Logger, who *identity) *tasks.Service {
	return tasks.New(tasks.Options{
		Known: who.isAvailable, CurrentRights: who.currentRights(), Limits: func(id kg.AgentID) tasks.Limits { return tasks.Limits(who.agents.Limits(id)) },
		Registered: who.agents.Registered, Unregistered: who.agents.Unregistered, LeaveGrace: c.LeaveGrace, MaxArtifactBytes: c.MaxArtifactMiB << 20,
		Repeats: c.ConformanceAgent, DeleteTx: push.Forget, Logger: log,
	})
}

// taskFlags configure tasks.
type taskFlags struct {
	LeaveGrace     time.Duration `help:"How long the tasks of a deregistered agent wait for it to register again before they fail." default:"1m"`
	MaxArtifactMiB int           `help:"Maximum size of a task's artifact, counting half a KiB for each of its chunks." default:"64" name:"max-artifact-mib" placeholder:"MIB"`
}

// Validate checks the bounds of the flags.
func (f *taskFlags) Validate() error {
	switch {
	case f.LeaveGrace <= 0:
		return errors.New("--leave-grace must be positive, such as 1m")
	case f.MaxArtifactMiB < 1 || f.MaxArtifactMiB > 1<<20:
		return errors.New("--max-artifact-mib must be between 1 and 1048576")
	}
	return nil
}

// pushFlags configure web hooks.
type pushFlags struct {
	AllowPrivateWebhooks bool `help:"Allow webhooks at private and loopback addresses. Whoever creates a task or registers an agent can then make this server call its own network."`
}

// newPushService creates the service that delivers task events to push configurations. The
// creator of a task need not be registered, so only a suspension stops them.
func (c *serveCommand) newPushService(log *slog.Logger, who *identity) *push.Service {
	mayDeliver := func(creator kg.AgentID) bool { return !who.agents.Suspended(creator) }
	return push.New(push.Options{Body: a2a.Notification, WantsFullTask: a2a.NotifiesWhole, MayDeliver: mayDeliver, Options: delivery.Options{AllowPrivate: c.AllowPrivateWebhooks}, Logger: log})
}

// newMailHooks creates the service that delivers messages to the web hooks of agents behind
// the hub.
func (c *serveCommand) newMailHooks(log *slog.Logger, who *identity) *mailhook.Service {
	return mailhook.New(mailhook.Options{Options: delivery.Options{AllowPrivate: c.AllowPrivateWebhooks}, Body: hub.Letter, MayDeliver: who.isAvailable, Logger: log})
}

// newForwarding creates the service that forwards messages to agents behind the hub that
// are servers themselves.
func (c *serveCommand) newForwarding(log *slog.Logger, who *identity) *forward.Service {
	return forward.New(forward.Options{AllowPrivate: c.AllowPrivateWebhooks, Wire: hub.Wire{}, MayForward: who.isAvailable, Logger: log})
}

// newInboxHooks creates the service that delivers messages of channels to the endpoints of
// agents that registered over OpenIntent.
func (c *serveCommand) newInboxHooks(log *slog.Logger, who *identity, h *openintent.Handler) *inboxhook.Service {
	return inboxhook.New(inboxhook.Options{Options: delivery.Options{AllowPrivate: c.AllowPrivateWebhooks}, Endpoint: openintent.EndpointOf, Body: h.Notification, MayDeliver: who.isAvailable, Logger: log})
}

// cardOptions returns the server's data for the agent card.
func (c *serveCommand) cardOptions(who *identity) a2a.CardOptions {
	return a2a.CardOptions{
		Version: buildinfo.Version(), PublicURL: strings.TrimRight(c.PublicURL, "/"), Keys: who.acceptsKeys(), Tokens: who.acceptsTokens(), Channels: true, Push: true, Only: c.cardVersion(),
	}
}

// cardVersion returns the A2A version of the agent cards.
func (c *serveCommand) cardVersion() a2a.CardVersion {
	if c.Card == "both" {
		return a2a.AnyVersion
	}
	return a2a.CardVersion(c.Card)
}

// selfWorker returns the worker for messages to koine itself.
func (c *serveCommand) selfWorker(h *a2a.Handler) tasks.Worker {
	if c.ConformanceAgent {
		return conformance.Agent{}
	}
	return h.Self()
}

// newDirectory returns the directory of registered agents. Deregistering an agent removes
// it from all channels and deletes its presence and its web hook. Then gone is called.
func (t *trust) newDirectory(store *kg.Store, gone func(kg.AgentID)) *agents.Directory {
	return agents.NewDirectory(store, agents.DirectoryOptions{
		Self:     koineRecord(),
		Presence: func(id kg.AgentID) string { return string(t.presence.Get(id).Status) },
		DeregisterTx: func(tx *kg.Tx, id kg.AgentID) error {
			return errors.Join(presence.Forget(tx, id), mailhook.Forget(tx, id), inboxhook.Forget(tx, id), forward.Forget(tx, id), follows.Forget(tx, id), tasks.RecordDeparture(tx, id))
		},
		BeforeDeregister: func(ctx context.Context, id kg.AgentID) error {
			_, err := t.channels.Members().RemoveAgent(ctx, channels.Caller{Principal: kg.SystemPrincipal()}, id)
			return errors.Join(err, intents.New(store, t.channels, intents.Options{}).Leases().ReleaseAgent(ctx, id))
		},
		AfterDeregister: gone,
	})
}

// koineRecord returns the record of koine itself as an agent.
func koineRecord() *agents.Record {
	card := a2a.NewCard(a2a.CardOptions{Version: buildinfo.Version(), Channels: true}, "")
	var tags []string
	for _, skill := range card.Skills {
		tags = append(tags, skill.Tags...)
	}
	slices.Sort(tags)
	return &agents.Record{
		ID: kg.System, Name: card.Name, Status: agents.Active,
		Registration: &agents.Registration{Description: card.Description, Version: card.Version, Capabilities: slices.Compact(tags)},
	}
}

// admitStream wraps admit so that an admitted stream counts as a connection of its agent. A
// WebSocket that authenticates later is counted by its handler.
func (t *trust) admitStream(admit func(context.Context) (func(), error)) func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) {
		release, err := admit(ctx)
		if err != nil {
			return nil, err
		}
		who := caller.From(ctx)
		if who.Principal.Method == caller.MethodNone || who.Principal.CheckWrite() != nil {
			return release, nil
		}
		leave := t.presence.Connect(who.Acting())
		return func() {
			leave()
			release()
		}, nil
	}
}

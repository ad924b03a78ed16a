package main

import (
	"context"
	"errors"
	"slices"

	"koine/a2a"
	"koine/channels"
	"koine/internal/agents"
	"koine/internal/courier"
	"koine/internal/presence"
	"koine/internal/tasks"
	"koine/kg"
)

// newDirectory returns the directory of registered agents. Deregistering an agent removes
// it from all channels and deletes its presence and its web hook. Then gone is called.
func (t *trust) newDirectory(store *kg.Store, gone func(kg.AgentID)) *agents.Directory {
	return agents.NewDirectory(store, agents.DirectoryOptions{
		Self:     koineRecord(),
		Presence: func(id kg.AgentID) string { return string(t.presence.Get(id).Status) },
		DeregisterTx: func(tx *kg.Tx, id kg.AgentID) error {
			return errors.Join(presence.Forget(tx, id), courier.Forget(tx, id), tasks.RecordDeparture(tx, id))
		},
		BeforeDeregister: func(ctx context.Context, id kg.AgentID) error {
			_, err := t.channels.RemoveAgent(ctx, channels.Caller{Principal: kg.SystemPrincipal()}, id)
			return err
		},
		AfterDeregister: gone,
	})
}

// koineRecord returns the record of koine itself as an agent.
func koineRecord() *agents.Record {
	card := a2a.NewCard(a2a.CardOptions{Version: versionText(), Channels: true}, "")
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

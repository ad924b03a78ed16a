package main

import (
	"cmp"
	"context"
	"iter"
	"log/slog"

	"koine/channels"
	"koine/internal/celrules"
	"koine/internal/delivery/push"
	"koine/internal/dialect/agentchat"
	"koine/internal/policy"
	"koine/internal/presence"
	"koine/internal/proposals"
	"koine/internal/provenance"
	"koine/internal/shapes"
	"koine/internal/tasks"
	"koine/internal/throttle"
	"koine/kg"
)

// trust decides about access and updates, in this order: authentication, policies and rules
// for reads and writes, shapes and rules for updates, approval of held updates, and
// quarantine of agents. Except for the rules, its state is kept in system graphs and follows
// their commits.
type trust struct {
	identity    *identity
	policies    *policy.Policies
	rules       *celrules.File // may be nil
	shapes      *shapes.Set
	reviews     *proposals.Service
	quarantines *provenance.Quarantines
	channels    *channels.Service
	presence    *presence.Tracker
}

// newTrust creates the services from the flags and opens the rules. loadState must follow.
func (c *serveCommand) newTrust(log *slog.Logger, who *identity) (*trust, error) {
	_, graphs, err := c.principalQuotas(!who.requiresCredentials())
	if err != nil {
		return nil, err
	}
	policies, err := c.newPolicies(int(graphs))
	if err != nil {
		return nil, err
	}
	reviews := proposals.New(proposals.Options{CurrentRights: who.currentRights(), HeldMessages: c.HeldMessages, HeldPerAgent: c.HeldPerAgent})
	present := presence.New(presence.Options{Logger: log})
	hook, err := c.newContentHook(log)
	if err != nil {
		return nil, err
	}
	overseers, err := c.overseers(!who.requiresCredentials())
	if err != nil {
		return nil, err
	}
	scanner := new(lateScanner)
	options, err := c.applyTiers(channels.Options{
		Agents: who.eachAgent, Presence: changesOf(present), WithdrawProposal: reviews.WithdrawIn, Scanner: scanner, Reviews: reviews, OneAdmission: throttle.WithOneAdmission,
		OverseerRole: overseers, KeepEnded: c.OpenintentKeep,
	})
	if err != nil {
		return nil, err
	}
	for role, usual := range map[string]channels.Tier{agentchat.Role: chatTier, agentchat.RoleGuest: agentchat.GuestTier} {
		if _, said := options.Tiers[role]; !said {
			options.Tiers[role] = usual
		}
	}
	conversations := channels.New(options)
	reviews.SetMessages(channels.NewHeld(conversations))
	file, err := c.openRules(log, conversations)
	if err != nil {
		return nil, err
	}
	scanner.Scanner = newScanner(file, hook)
	return &trust{
		identity: who, policies: policies, rules: file, shapes: &shapes.Set{Logger: log},
		reviews: reviews, quarantines: new(provenance.Quarantines),
		channels: conversations, presence: present,
	}, nil
}

// changesOf returns the function by which channels follow the presence of agents.
func changesOf(present *presence.Tracker) func(context.Context) (iter.Seq[channels.PresenceChange], error) {
	return func(ctx context.Context) (iter.Seq[channels.PresenceChange], error) {
		changes, err := present.Changes(ctx)
		if err != nil {
			return nil, err
		}
		return func(yield func(channels.PresenceChange) bool) {
			for tr := range changes {
				if !yield(channels.PresenceChange{Agent: tr.Agent, Status: string(tr.Status), Since: tr.Since}) {
					return
				}
			}
		}, nil
	}
}

// govern sets the deciding parts of a store's governor.
func (t *trust) govern(o *kg.Governor) {
	o.Access, o.Verifier = t.policies, t.shapes
	if t.rules != nil {
		o.Access, o.AdmitRead, o.RulesVersion = ruledAccess{t.policies, t.rules}, t.admitRead, t.rules.Reloads
		o.Verifier = kg.Verifiers(t.rules, t.shapes)
	}
	o.Access, o.Holder = push.NewGuard(tasks.NewGuard(t.channels.Guard(t.reviews.Guard(o.Access)))), t.reviews
	o.Distrust = t.quarantines
	o.OnSystemChange = func(c *kg.Commit) {
		t.identity.applyCommit(c)
		t.policies.Follow(c)
		t.shapes.Follow(c)
		t.reviews.Follow(c)
		t.quarantines.Follow(c)
		t.channels.Follow(c)
		t.presence.Follow(c)
	}
	admit := o.Admit
	o.Admit = func(ctx context.Context, m kg.Meta) error {
		if admit != nil {
			if err := admit(ctx, m); err != nil {
				return err
			}
		}
		t.presence.NoteActivity(cmp.Or(m.Actor, m.Principal.ID))
		return nil
	}
}

// loadState loads the state from the opened store.
func (t *trust) loadState(ctx context.Context, store *kg.Store) error {
	if err := t.identity.load(ctx, store); err != nil {
		return err
	}
	if err := t.policies.Load(ctx, store); err != nil {
		return err
	}
	if err := t.shapes.Load(ctx, store); err != nil {
		return err
	}
	if err := t.reviews.Open(ctx, store); err != nil {
		return err
	}
	if err := t.quarantines.Load(ctx, store); err != nil {
		return err
	}
	if err := t.channels.Load(ctx, store); err != nil {
		return err
	}
	return t.presence.Load(ctx, store)
}

// close ends the services that write to the store. It must come before the store closes.
func (t *trust) close() {
	t.identity.close()
	t.channels.Close()
	t.presence.Close()
}

package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"koine/graph"
	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/review"
	"koine/internal/rules"
	"koine/kg"
)

// rulesFlags say by which rules the server judges.
type rulesFlags struct {
	Policy string `help:"Judge updates, queries and reads by the rules in this YAML file. It is read again when it changes." placeholder:"FILE" type:"path"`
}

// judging is what an update, a query and a read have to pass: the operator's
// rules, and the review of what they hold.
type judging struct {
	file    *rules.File // nil without rules
	reviews *review.Service
}

// judging reads the rules. A broken file is a mistake in the configuration.
func (f *rulesFlags) judging(log *slog.Logger, who *identity) (*judging, error) {
	j := &judging{reviews: review.New(review.Options{Standing: who.standing()})}
	if f.Policy == "" {
		return j, nil
	}
	var err error
	if j.file, err = rules.Open(f.Policy, rules.Options{}, log); err != nil {
		return nil, usageError{err}
	}
	log.Info("rules in force", "file", f.Policy, "rules", len(j.file.Set().Rules()))
	return j, nil
}

// configure makes them part of a store that is about to be opened.
func (j *judging) configure(o *kg.Options) {
	if o.Access == nil {
		o.Access = kg.AllowAll{}
	}
	if j.file != nil {
		o.Access = ruledAccess{o.Access, j.file}
		o.AdmitRead = j.admitRead
		verifiers := []kg.Verifier{j.file}
		if o.Verifier != nil {
			verifiers = append(verifiers, o.Verifier)
		}
		o.Verifier = kg.Verifiers(verifiers...)
	}
	o.Access = j.reviews.Guard(o.Access)
	o.Holder = j.reviews
	before := o.OnSystemChange
	o.OnSystemChange = func(c *kg.Commit) {
		j.reviews.Follow(c)
		if before != nil {
			before(c)
		}
	}
}

// load reads the proposals of a store that has been opened.
func (j *judging) load(ctx context.Context, store *kg.Store) error { return j.reviews.Open(ctx, store) }

// ruledAccess is an access that hides what the rules hide.
type ruledAccess struct {
	kg.Access
	*rules.File
}

// Version is that of the access behind it: what the rules hide is no graph.
func (a ruledAccess) Version() *atomic.Uint64 { return kg.VersionOf(a.Access) }

// Unwrap is the access behind it.
func (a ruledAccess) Unwrap() kg.Access { return a.Access }

// follow reads the rules again when their file changes, and on SIGHUP.
func (j *judging) follow(ctx context.Context) (stop func()) {
	if j.file == nil {
		return func() {}
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { j.file.Follow(ctx, rules.DefaultPoll, hup) })
	return func() {
		signal.Stop(hup)
		cancel()
		following.Wait()
	}
}

// admitRead asks the rules about a read of which they were not told as a query or
// subscription: /changes, GET /data, and whatever comes beside them.
func (j *judging) admitRead(ctx context.Context, p kg.Principal, follow bool) error {
	if operation.Asked(ctx) {
		return nil
	}
	c := caller.From(ctx)
	return j.file.Refuses(ctx, rules.Query{
		Principal: p, Actor: c.Actor, Subscription: follow, Fields: []string{}, Call: rules.Call{Method: http.MethodGet + " " + c.Path},
	})
}

// Refuses asks the rules about a query or a subscription (graph.Rules).
func (j *judging) Refuses(ctx context.Context, a graph.Ask) error {
	if j.file == nil {
		return nil
	}
	r := a.Request
	return j.file.Refuses(ctx, rules.Query{
		Principal: r.Principal, Actor: r.Actor, Subscription: a.Subscription, Text: a.Text, OperationName: r.OperationName, Fields: a.Fields,
		Call: rules.Call{Method: cmp.Or(r.Method, "graphql"), TaskID: r.TaskID, SessionID: r.SessionID, Metadata: r.Metadata},
	})
}

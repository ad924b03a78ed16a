package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"koine/channels"
	"koine/graph"
	"koine/internal/caller"
	"koine/internal/celrules"
	"koine/internal/operation"
	"koine/kg"
)

// rulesFlags name the file of rules.
type rulesFlags struct {
	Policy string `help:"YAML file of rules for updates, queries and reads. It is reloaded when it changes." placeholder:"FILE" type:"path"`
}

// openRules opens the rules file; nil without --policy. A broken file is a usage error. The
// channels service supplies the messages that rules refer to.
func (f *rulesFlags) openRules(log *slog.Logger, of *channels.Service) (*celrules.File, error) {
	if f.Policy == "" {
		return nil, nil
	}
	file, err := celrules.Open(f.Policy, celrules.Options{Messages: of.JudgedMessages}, log)
	if err != nil {
		return nil, usageError{err}
	}
	log.Info("rules loaded", "file", f.Policy, "rules", len(file.Set().Rules()))
	return file, nil
}

// ruledAccess is an access that also hides statements by rules.
type ruledAccess struct {
	kg.Access
	*celrules.File
}

// Version returns the version of the wrapped access: rules hide statements, never whole
// graphs.
func (a ruledAccess) Version() *atomic.Uint64 { return kg.VersionOf(a.Access) }

// Unwrap returns the wrapped access.
func (a ruledAccess) Unwrap() kg.Access { return a.Access }

// followRules reloads the rules when their file changes, and on SIGHUP.
func followRules(ctx context.Context, file *celrules.File) (stop func()) {
	if file == nil {
		return func() {}
	}
	return runWithHangup(ctx, celrules.DefaultPoll, file.Follow)
}

// admitRead checks a read against the rules that was not checked as a query or subscription
// before: /changes, GET /data and the like.
func (t *trust) admitRead(ctx context.Context, p kg.Principal, follow bool) error {
	if operation.Judged(ctx) {
		return nil
	}
	c := caller.From(ctx)
	return t.rules.CheckQuery(ctx, celrules.Query{
		Principal: p, Actor: c.Actor, Subscription: follow, Fields: []string{}, Call: celrules.Call{Method: http.MethodGet + " " + c.Path},
	})
}

// CheckOperation checks a query or a subscription against the rules (graph.Rules).
func (t *trust) CheckOperation(ctx context.Context, a graph.OperationInfo) error {
	if t.rules == nil {
		return nil
	}
	r := a.Request
	return t.rules.CheckQuery(ctx, celrules.Query{
		Principal: r.Principal, Actor: r.Actor, Subscription: a.Subscription, Text: a.Text, OperationName: r.OperationName, Fields: a.Fields,
		Call: celrules.Call{Method: cmp.Or(r.Method, "graphql"), TaskID: r.TaskID, SessionID: r.SessionID, Metadata: r.Metadata},
	})
}

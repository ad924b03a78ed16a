package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"

	"koine/channels"
	"koine/cmd/koine/internal/cli"
	"koine/graph"
	"koine/graph/documents"
	"koine/internal/caller"
	"koine/internal/celrules"
	"koine/internal/httpd"
	"koine/internal/operation"
	"koine/internal/policy"
	"koine/kg"
)

// policyFlags set the rights on graphs without a policy.
type policyFlags struct {
	DefaultGraph string `help:"Access of all authenticated callers to the default graph while it has no policy: read-write, read-only or private." default:"read-write" name:"default-graph" placeholder:"MODE" completes:"read-write,read-only,private"`
	NewGraphs    string `help:"Access of all authenticated callers to other graphs without a policy, and to new graphs by default: private, read-only or read-write." default:"private" name:"new-graphs" placeholder:"MODE" completes:"private,read-only,read-write"`
}

// newPolicies returns the policies with these defaults; made is the number of graphs that a
// principal may create.
func (f policyFlags) newPolicies(made int) (*policy.Policies, error) {
	o := policy.Options{MaxGraphs: made}
	for _, flag := range []struct {
		name, text string
		mode       *policy.Mode
	}{{"default-graph", f.DefaultGraph, &o.DefaultGraph}, {"new-graphs", f.NewGraphs, &o.NewGraphs}} {
		mode, err := policy.ParseMode(flag.text)
		if err != nil {
			return nil, cli.Usagef("--%s: %w", flag.name, err)
		}
		*flag.mode = mode
	}
	return policy.New(o), nil
}

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
		return nil, cli.AsUsage(err)
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

// trustedFlags select the GraphQL documents that may be executed.
type trustedFlags struct {
	TrustedDocuments     string `help:"Manifest of GraphQL documents that requests may name by id or SHA-256: a JSON object from id to text, or the operations manifest of Apollo's tools." placeholder:"FILE" type:"path"`
	OnlyTrustedDocuments bool   `help:"Execute only the documents of --trusted-documents, on /graphql and in knowledge/query and knowledge/subscribe."`
}

// trustedDocuments reads the manifest; nil without one.
func (f trustedFlags) trustedDocuments() (*documents.Trusted, error) {
	if f.TrustedDocuments == "" {
		if f.OnlyTrustedDocuments {
			return nil, cli.Usagef("--only-trusted-documents requires --trusted-documents FILE")
		}
		return nil, nil
	}
	file, err := os.Open(f.TrustedDocuments)
	if err != nil {
		return nil, cli.Usagef("--trusted-documents: %w", err)
	}
	defer file.Close()
	trusted, err := documents.ReadTrusted(file)
	if err != nil {
		return nil, cli.Usagef("--trusted-documents: %s: %w", f.TrustedDocuments, err)
	}
	return trusted, nil
}

// reportedDocuments bounds the invalid documents that are logged one by one.
const reportedDocuments = 10

// reportDocuments logs the invalid trusted documents. They do not prevent the start, since
// clients of the valid ones still work.
func reportDocuments(log *slog.Logger, engine *graph.Engine, trusted *documents.Trusted) {
	if trusted == nil {
		return
	}
	invalid := engine.InvalidDocuments()
	for i, d := range invalid {
		if i == reportedDocuments {
			break
		}
		log.Warn("a trusted document is invalid", "id", d.ID, "err", d.Errors[0].Message)
	}
	log.Info("trusted documents", "documents", trusted.Len(), "invalid ids", len(invalid))
}

// originFlags list the web origins that may use the server.
type originFlags struct {
	AllowOrigin []string `help:"Origin whose pages may use the server, such as https://app.example, or * for all; may be repeated. The server's own pages are always allowed. Requires --auth." placeholder:"ORIGIN"`
}

// checkOrigins validates the list. Open mode allows none: every local process is trusted
// there, and pages of other origins must not inherit that.
func (f originFlags) checkOrigins(open bool) ([]string, error) {
	if open && len(f.AllowOrigin) > 0 {
		return nil, cli.Usagef("--allow-origin requires --auth: in open mode, every allowed page may do anything")
	}
	list, err := httpd.ParseOrigins(f.AllowOrigin)
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	return list, nil
}

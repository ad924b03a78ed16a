package graph

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"time"

	"koine/channels/actions"
	"koine/channels/channel"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/internal/audit"
	"koine/internal/operation"
	"koine/kg"
)

// AuditKind is the kind of an audit entry.
type AuditKind = audit.Kind

// auditQuery holds the arguments of Query.audit.
type auditQuery struct {
	principal, actor *string
	since, until     *time.Time
	kinds            []audit.Kind
	channel          *string
}

// Audit answers Query.audit.
func (*queryRoot) Audit(ctx context.Context, principal, actor *string, since, until *time.Time, kinds []AuditKind, channelID *string, first *int, after *Cursor) (*AuditConnection, error) {
	r := runOf(ctx)
	asked := auditQuery{principal, actor, since, until, kinds, channelID}
	if !r.request.Principal.IsAdmin() {
		return nil, kg.Errorf(kg.CodePermissionDenied, "the audit list requires an administrator")
	}
	p, err := r.openRange("audit", knowledge.PageArgs{First: first, After: after}, limit.DefaultPageSize, math.MaxInt)
	if err != nil {
		return nil, err
	}
	q := asked.toQuery()
	q.First, q.After = p.size, p.key
	found := &audit.Page{}
	if q.First > 0 {
		if found, err = audit.List(ctx, r.engine.deps.Store, r.engine.deps.Trail, q); err != nil {
			return nil, err
		}
	}
	page := newListPage(p, found.Entries, found.More, found.End, func(e *audit.Entry) string { return e.Cursor }, auditEntry)
	page.count = func(ctx context.Context) (int64, bool, error) {
		q.First, q.After = audit.MaxScanned, ""
		all, err := audit.List(ctx, r.engine.deps.Store, r.engine.deps.Trail, q)
		if err != nil {
			return 0, false, err
		}
		return int64(len(all.Entries)), !all.More, nil
	}
	return page, nil
}

func (asked auditQuery) toQuery() (q audit.Query) {
	for _, agent := range []struct {
		text *string
		to   *kg.AgentID
	}{{asked.principal, &q.Principal}, {asked.actor, &q.Actor}} {
		if agent.text != nil {
			*agent.to = kg.CanonicalAgent(*agent.text)
		}
	}
	if asked.since != nil {
		q.Since = *asked.since
	}
	if asked.until != nil {
		q.Until = *asked.until
	}
	q.Kinds = asked.kinds
	if asked.channel != nil {
		q.Channel = channel.ID(*asked.channel)
	}
	return q
}

func auditEntry(e *audit.Entry) AuditEntry {
	out := AuditEntry{
		Time: e.Time, Kind: e.Kind, Accepted: e.Commit != nil, Principal: agentIfAny(e.Principal), PrincipalID: unlessEmpty(string(e.Principal)),
		Actor: agentIfAny(e.Actor), ActorID: unlessEmpty(string(e.Actor)),
	}
	if c := e.Commit; c != nil {
		out.Revision, out.Added, out.Removed = &c.Revision, &e.Added, &e.Removed
		for i := range e.Channels {
			out.ChannelActions = append(out.ChannelActions, auditChannel(&e.Channels[i]))
		}
		out.Justification, out.ProposalID = unlessEmpty(c.Justification), unlessEmpty(c.ProposalID)
	}
	if r := e.Refusal; r != nil {
		out.Reason, out.Path, out.RequestID = &r.Reason, unlessEmpty(r.Path), unlessEmpty(r.RequestID)
		out.Count, out.LastTime = &r.Count, &r.Last
		if r.Address != (netip.Addr{}) {
			address := r.Address.String()
			out.Address = &address
		}
	}
	return out
}

// auditActions maps the kinds of channel actions to the schema's enum.
var auditActions = map[actions.Kind]AuditAction{
	actions.Created: AuditActionCreate, actions.Updated: AuditActionUpdate, actions.Deleted: AuditActionDelete,
	actions.MemberAdded: AuditActionAddMember, actions.MemberRemoved: AuditActionRemoveMember, actions.Overseen: AuditActionOversee,
	actions.Published: AuditActionPublish, actions.MessageStateChanged: AuditActionUpdateMessage,
}

func auditChannel(a *actions.Action) AuditChannelAction {
	return AuditChannelAction{
		Action: auditActions[a.Kind], ChannelID: string(a.Channel), MessageID: unlessEmpty(string(a.Message)),
		Member: agentIfAny(a.Member), MemberID: unlessEmpty(string(a.Member)),
	}
}

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// noteRefusals records each distinct refusal of an operation in the audit
// trail.
func (e *Engine) noteRefusals(ctx context.Context, result *operation.Result) {
	var told []string
	for _, err := range result.Errors {
		code, _ := err.Extensions["code"].(string)
		if code != "" && !slices.Contains(told, code) {
			told = append(told, code)
			e.deps.Trail.RecordDenied(ctx, kg.Code(code))
		}
	}
}

// firstFailure returns the first error of an operation for its trace span, nil if
// there is none.
func firstFailure(result *operation.Result) error {
	if len(result.Errors) == 0 {
		return nil
	}
	code, _ := result.Errors[0].Extensions["code"].(string)
	return &kg.Error{Code: kg.Code(code)}
}

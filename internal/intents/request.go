package intents

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of access requests.
const (
	MaxRequests       = 1000 // of an intent that are pending
	MaxCallerRequests = 100  // of these, made by one agent
	MaxListedRequests = 2000
	MaxRequestTexts   = 100  // capabilities of a request
	MaxRequestReasons = 1024 // characters of a reason
)

// Types of the events that Requests appends.
const (
	EventAccessRequested = "access_requested"
	EventAccessApproved  = "access_request_approved"
	EventAccessDenied    = "access_request_denied"
)

// RequestStatus is the status of an access request.
type RequestStatus string

// States of access requests. Approved and Denied are final.
const (
	Pending  RequestStatus = "pending"
	Approved RequestStatus = "approved"
	Denied   RequestStatus = "denied"
)

// AccessRequest asks the managers of an intent for a level of access.
type AccessRequest struct {
	ID           string // a UUID
	Intent       scope.ID
	Agent        kg.AgentID // would get access
	Level        scope.Level
	Reason       string
	Capabilities []string
	RequestedBy  kg.AgentID
	CreatedAt    time.Time
	Status       RequestStatus
	// The following are set once the request is decided.
	DecidedBy      kg.AgentID
	DecidedAt      time.Time
	DecisionReason string
	Grant          string // the id of the grant, if approved
}

// Decision approves or denies an access request.
type Decision struct {
	Approve bool
	// Level is the level that is granted; the requested one if "".
	Level     scope.Level
	ExpiresAt time.Time // of the grant; the zero time means never
	Reason    string
}

const (
	requestsPart  = "requests"
	requestPrefix = "urn:koine:access-request:"
	requestClass  = "AccessRequest"
)

// Entity returns the request as an entity of the graph.
func (q *AccessRequest) Entity() kg.Term { return kg.IRI(requestPrefix + q.ID) }

func (q *AccessRequest) toRecord() systemgraph.Record {
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class(requestClass), "requestAgent": {kg.IRI(string(q.Agent))}, "requestLevel": systemgraph.Values(string(q.Level)),
		"requestReason": systemgraph.Text(q.Reason), "requestCapability": systemgraph.Values(q.Capabilities...), "requestedBy": {kg.IRI(string(q.RequestedBy))},
		"requestedAt": {kg.DateTime(q.CreatedAt)}, "requestStatus": systemgraph.Values(string(q.Status)), "decisionReason": systemgraph.Text(q.DecisionReason),
		"decisionGrant": systemgraph.Text(q.Grant), "decidedBy": nil, "decidedAt": nil,
	}
	if q.Status != Pending {
		r["decidedBy"], r["decidedAt"] = []kg.Term{kg.IRI(string(q.DecidedBy))}, []kg.Term{kg.DateTime(q.DecidedAt)}
	}
	return r
}

func requestOf(intent scope.ID, subject kg.Term, r systemgraph.Record) *AccessRequest {
	return &AccessRequest{
		ID: strings.TrimPrefix(subject.Value(), requestPrefix), Intent: intent, Agent: kg.AgentID(r.Text("requestAgent")), Level: scope.Level(r.Text("requestLevel")),
		Reason: r.Text("requestReason"), Capabilities: r.Texts("requestCapability"), RequestedBy: kg.AgentID(r.Text("requestedBy")), CreatedAt: r.Time("requestedAt"),
		Status: RequestStatus(r.Text("requestStatus")), DecidedBy: kg.AgentID(r.Text("decidedBy")), DecidedAt: r.Time("decidedAt"),
		DecisionReason: r.Text("decisionReason"), Grant: r.Text("decisionGrant"),
	}
}

// Requests manages access requests. Its methods may be called concurrently.
type Requests struct {
	store  *kg.Store
	scopes *channels.Scopes
	bounds *bounds
}

// Create asks for a level of access for an agent. It requires the level scope.Read: an agent
// that may not see the intent is told that there is none, and one that may ask for more.
// Pending requests of the same agent for the same level are one.
//
// Errors: CodeInvalid; CodeLimitExceeded above MaxRequests and MaxCallerRequests;
// CodeScopeEnded; those of channels.Scopes.Change.
func (s *Requests) Create(ctx context.Context, by channels.Caller, q AccessRequest) (*AccessRequest, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if q.Agent == "" {
		q.Agent = agent
	}
	if q.Agent, err = scope.ParseCoordinator(q.Agent); err != nil { // any agent's id
		return nil, kg.Errorf(kg.CodeInvalid, "agent %.60q is no agent's id", q.Agent).At("agent")
	}
	if !q.Level.Includes(scope.Read) {
		return nil, kg.Errorf(kg.CodeInvalid, "level must be read, write or admin, not %.60q", q.Level).At("level")
	}
	if err := checkText("reason", q.Reason, MaxRequestReasons); err != nil {
		return nil, err
	}
	if n := len(q.Capabilities); n > MaxRequestTexts {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "request has %d capabilities; the limit is %d", n, MaxRequestTexts).At("capabilities")
	}
	for _, c := range q.Capabilities {
		if err := checkText("capabilities", c, MaxTaskTextRunes); err != nil {
			return nil, err
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	made := &AccessRequest{ID: id.String(), Intent: q.Intent, Agent: q.Agent, Level: q.Level, Reason: q.Reason, Capabilities: q.Capabilities, RequestedBy: agent, Status: Pending}
	result := made
	_, err = s.scopes.Change(ctx, by, q.Intent, scope.Read, "accessRequests/create", func(tx *kg.Tx, sc *scope.Scope) error {
		if sc.Ended() {
			return scope.ErrEnded(sc.Status)
		}
		waiting, err := readRequests(tx.MatchOwn, q.Intent, Pending, s.bounds.Requests)
		if err != nil {
			return err
		}
		result = made
		own := 0 // q.Agent is any id, so a reader could make all requests that an intent may have
		for _, r := range waiting {
			if r.Agent == made.Agent && r.Level == made.Level {
				result = r
				return nil
			}
			if r.RequestedBy == agent {
				own++
			}
		}
		if own >= s.bounds.CallerRequests {
			e := kg.Errorf(kg.CodeLimitExceeded, "agent has made the maximum of %d access requests of an intent that are pending", s.bounds.CallerRequests)
			e.Hint = "Wait until a manager of the intent decides on them."
			return e
		}
		if len(waiting) >= s.bounds.Requests {
			return kg.Errorf(kg.CodeLimitExceeded, "intent has the maximum of %d pending access requests", s.bounds.Requests)
		}
		made.CreatedAt = tx.Time()
		if err := systemgraph.WriteOver(tx, q.Intent.PartGraph(requestsPart), made.Entity(), nil, made.toRecord()); err != nil {
			return err
		}
		return appendEvent(tx, q.Intent, EventAccessRequested, agent, map[string]any{"request_id": made.ID, "principal_id": bareName(made.Agent), "permission": string(made.Level)})
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// readRequests returns the newest access requests of an intent with a status, or of all for "", by
// time of creation.
func readRequests(match systemgraph.Matcher, intent scope.ID, status RequestStatus, most int) (list []*AccessRequest, err error) {
	graph := intent.PartGraph(requestsPart)
	p := kg.Pattern{Predicate: systemgraph.Property("requestStatus"), Graph: graph}
	if status != "" {
		p.Object = kg.String(string(status))
	}
	subjects, err := systemgraph.Subjects(match, p)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(subjects, func(a, b kg.Term) int { return strings.Compare(a.Value(), b.Value()) }) // UUIDs of version 7
	if n := len(subjects); n > most {
		subjects = subjects[n-most:]
	}
	for _, subject := range subjects {
		r, err := systemgraph.Read(match, graph, subject)
		if err != nil {
			return nil, err
		}
		list = append(list, requestOf(intent, subject, r))
	}
	return list, nil
}

// List returns the newest access requests of an intent by time of creation, decided ones
// included; at most MaxListedRequests.
//
// Errors: CodeScopeNotFound.
func (s *Requests) List(ctx context.Context, by channels.Caller, intent scope.ID) (list []*AccessRequest, err error) {
	if _, err := s.scopes.Get(ctx, by, intent); err != nil {
		return nil, err
	}
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		list, err = readRequests(snapshot.Match, intent, "", s.bounds.ListedRequests)
		return err
	})
	return list, err
}

// Decide approves or denies a pending access request. An approval adds the grant in the same
// commit. It requires the level scope.Admin.
//
// Errors: CodeNotFound for a request that does not exist or is decided; CodeInvalid;
// CodeLimitExceeded above scope.MaxGrants; those of channels.Scopes.Change.
func (s *Requests) Decide(ctx context.Context, by channels.Caller, intent scope.ID, request string, d Decision) (*AccessRequest, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if err := checkText("reason", d.Reason, MaxRequestReasons); err != nil {
		return nil, err
	}
	if d.Level != "" && !d.Level.Includes(scope.Read) {
		return nil, kg.Errorf(kg.CodeInvalid, "level must be read, write or admin, not %.60q", d.Level).At("level")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	var q *AccessRequest
	_, err = s.scopes.Change(ctx, by, intent, scope.Admin, "accessRequests/decide", func(tx *kg.Tx, sc *scope.Scope) error {
		subject := (&AccessRequest{ID: request}).Entity()
		r, err := systemgraph.Read(tx.MatchOwn, intent.PartGraph(requestsPart), subject)
		if err != nil {
			return err
		}
		if q = requestOf(intent, subject, r); r == nil || q.Status != Pending {
			return kg.Errorf(kg.CodeNotFound, "access request not found").At("requestId")
		}
		q.Status, q.DecidedBy, q.DecidedAt, q.DecisionReason = Denied, agent, tx.Time(), d.Reason
		kind := EventAccessDenied
		data := map[string]any{"request_id": q.ID, "principal_id": bareName(q.Agent)}
		if d.Approve {
			level := q.Level
			if d.Level != "" {
				level = d.Level
			}
			g := scope.Grant{ID: id.String(), Agent: q.Agent, Level: level, Reason: d.Reason, GrantedBy: agent, ExpiresAt: d.ExpiresAt}
			if err := channels.AddGrant(tx, sc, &g); err != nil {
				return err
			}
			q.Status, q.Grant, kind = Approved, g.ID, EventAccessApproved
			data["permission"], data["entry_id"] = string(level), g.ID
		}
		if err := systemgraph.Write(tx, intent.PartGraph(requestsPart), q.Entity(), q.toRecord()); err != nil {
			return err
		}
		return appendEvent(tx, intent, kind, agent, data)
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

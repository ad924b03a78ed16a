// Package scope has the data of scopes: intents, the tasks within them, and the event log
// of each. A scope is stored as a record in a graph of its own (ID.RecordGraph), and its
// events in another one (ID.EventsGraph); this package encodes and decodes both. It
// decides nothing: access and changes are up to package channels.
//
// With access to a scope, an agent takes part in its channels whose MemberPolicy is
// ByScope, and learns which channel names are taken. For a request, the roles are those of
// the caller's credential; for the recipients of a message, the roles on record.
//
// Begin with Scope and Access.
package scope

import (
	"slices"
	"strings"
	"time"

	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// ID identifies a scope: a UUID.
type ID string

// Prefixes of entities and graphs.
const (
	scopePrefix       = "urn:koine:scope:"
	eventPrefix       = "urn:koine:event:"
	scopeRecordPrefix = kg.OwnGraphPrefix + "scope:"
	eventsPrefix      = kg.JournalGraphPrefix + "events:"
	partPrefix        = kg.JournalGraphPrefix + "scopepart:"
)

// Entity returns the scope as an entity of the graph.
func (s ID) Entity() kg.Term { return kg.IRI(scopePrefix + string(s)) }

// RecordGraph returns the graph of the scope's record.
func (s ID) RecordGraph() kg.Term { return kg.IRI(scopeRecordPrefix + string(s)) }

// EventsGraph returns the graph of the scope's events.
func (s ID) EventsGraph() kg.Term { return kg.IRI(eventsPrefix + string(s)) }

// PartGraph returns a further graph of the scope, such as "intent" or "leases": a journal
// that is read by the readers of the scope, and written within Scopes.Change by the package
// that owns the part. The name must have no slash.
func (s ID) PartGraph(part string) kg.Term { return kg.IRI(partPrefix + string(s) + "/" + part) }

// IDOf returns the id of a scope entity, or "" for another term.
func IDOf(t kg.Term) ID { return vocab.IDOf[ID](t, scopePrefix) }

// OfGraph returns the scope that a graph belongs to, or "", and whether the graph is
// its record rather than its events or another part.
func OfGraph(graph kg.Term) (id ID, record bool) {
	if id := vocab.IDOf[ID](graph, scopeRecordPrefix); id != "" {
		return id, true
	}
	if id := vocab.IDOf[ID](graph, eventsPrefix); id != "" {
		return id, false
	}
	id, _ = partOf(graph)
	return id, false
}

// partOf returns the scope and the part of a graph that PartGraph names.
func partOf(graph kg.Term) (ID, string) {
	id, part, _ := strings.Cut(vocab.IDOf[string](graph, partPrefix), "/")
	return ID(id), part
}

// Scope is a group of channels: an intent, or a task within one. Callers must not
// modify it.
type Scope struct {
	ID ID
	// Parent is the intent of a task, or "" for an intent.
	Parent ID
	Title  string
	Status Status
	Access Access
	// Coordinator manages the scope, like its creator; "" for none.
	Coordinator kg.AgentID
	// Grants and Assignments give access in addition to Access, sorted by id. The list may
	// hold grants that have expired (Grant.IsExpired): a commit removes them later. Neither
	// counts for Version.
	Grants      []Grant
	Assignments []Assignment
	// ExternalID is the name that the creator of a task has for it, unique in its intent;
	// "" for none.
	ExternalID string
	CreatedAt  time.Time
	CreatedBy  kg.AgentID
	// EndedAt and EndReason are set once the scope has ended.
	EndedAt   time.Time
	EndReason string
	// Version starts at 1 and increases with each change of title, status, access and
	// coordinator.
	Version int64
	// Replayed means that the service found the scope under its idempotency key.
	Replayed bool
}

// Status is the status of a scope.
type Status string

// Scope states. Completed and Abandoned are final.
const (
	Active    Status = "active"
	Completed Status = "completed"
	Abandoned Status = "abandoned"
)

// Limits of scopes.
const (
	// MaxChannels bounds the channels of an intent including its tasks: they are
	// closed in one commit.
	MaxChannels   = 1000
	MaxTasks      = 100 // per intent
	MaxAgents     = 1000
	MaxRoles      = 64
	MaxRoleRunes  = 128
	MaxTitleRunes = 255 // as other servers of OpenIntent allow

	MaxGrants          = 1000
	MaxAssignments     = 1000
	MaxReasonRunes     = 1024 // of a grant
	MaxExternalIDRunes = 128
)

// Access lists the agents and roles that see a scope and take part in it, in addition to its creator
// and coordinator. Access to a task also requires access to its parent.
type Access struct {
	// Everybody grants access to every authenticated principal.
	Everybody bool
	Agents    []kg.AgentID
	// Roles are matched against the roles of the caller's credential.
	Roles []string
}

// Ended reports whether the scope has ended.
func (s *Scope) Ended() bool { return s.Status != Active }

// ApplyStatement adds one statement of the record to the scope. Its subject is the scope
// or one of its grants or assignments.
func (s *Scope) ApplyStatement(subject, property, object kg.Term) {
	if subject != s.ID.Entity() {
		s.applyPart(subject, property, object)
		return
	}
	text := object.Value()
	switch property {
	case vocab.ScopeTitle:
		s.Title = text
	case vocab.ScopeStatus:
		s.Status = Status(text)
	case vocab.ScopeParent:
		s.Parent = IDOf(object)
	case vocab.ScopeCoordinator:
		s.Coordinator = kg.AgentID(text)
	case vocab.ScopeEverybody:
		s.Access.Everybody = true
	case vocab.ScopeAgent:
		at, had := slices.BinarySearch(s.Access.Agents, kg.AgentID(text))
		if !had {
			s.Access.Agents = slices.Insert(s.Access.Agents, at, kg.AgentID(text))
		}
	case vocab.ScopeRole:
		at, had := slices.BinarySearch(s.Access.Roles, text)
		if !had {
			s.Access.Roles = slices.Insert(s.Access.Roles, at, text)
		}
	case vocab.ScopeCreated:
		s.CreatedAt, _ = object.DateTimeValue()
	case vocab.ScopeCreator:
		s.CreatedBy = kg.AgentID(text)
	case vocab.ScopeEnded:
		s.EndedAt, _ = object.DateTimeValue()
	case vocab.ScopeReason:
		s.EndReason = text
	case vocab.ScopeVersion:
		s.Version = vocab.IntegerOf(object)
	case vocab.ScopeExternal:
		s.ExternalID = text
	}
}

// RemoveStatement removes one statement of the record from the scope.
func (s *Scope) RemoveStatement(subject, property, object kg.Term) {
	if subject != s.ID.Entity() {
		s.removePart(subject)
		return
	}
	text := object.Value()
	switch property {
	case vocab.ScopeTitle:
		if s.Title == text {
			s.Title = ""
		}
	case vocab.ScopeCoordinator:
		if s.Coordinator == kg.AgentID(text) {
			s.Coordinator = ""
		}
	case vocab.ScopeEverybody:
		s.Access.Everybody = false
	case vocab.ScopeAgent:
		s.Access.Agents = slices.DeleteFunc(s.Access.Agents, func(a kg.AgentID) bool { return a == kg.AgentID(text) })
	case vocab.ScopeRole:
		s.Access.Roles = slices.DeleteFunc(s.Access.Roles, func(r string) bool { return r == text })
	}
}

// Clone returns a deep copy.
func (s *Scope) Clone() *Scope {
	c := *s
	c.Access.Agents, c.Access.Roles = slices.Clone(s.Access.Agents), slices.Clone(s.Access.Roles)
	c.Grants, c.Assignments = slices.Clone(s.Grants), slices.Clone(s.Assignments)
	return &c
}

// Draft describes a scope to create.
type Draft struct {
	// Parent makes the scope a task of that intent. Tasks cannot have tasks.
	Parent      ID
	Title       string
	Access      Access
	Coordinator kg.AgentID
	// Grants give access from the beginning. Their ids are set by Create.
	Grants []Grant
	// ExternalID is the creator's own name of a task, unique in its intent.
	ExternalID string
	// Content has the writes of CreateWith's function, in any form: a request with the same
	// idempotency key and other content is a different one.
	Content string
	// IdempotencyKey works as in channel.Draft.
	IdempotencyKey string
}

// ListQuery selects the scopes to list.
type ListQuery struct {
	// PageSize is clamped to 1…MaxPage; DefaultPage if 0.
	PageSize  int
	PageToken string
	// Behind is the id of the scope behind which the page of ListPage begins, "" for
	// the first page. With Backward the newest scopes come first. List sets Behind from
	// PageToken.
	Behind   ID
	Backward bool
	// Parent and Status, if set, exclude other scopes.
	Parent ID
	Status Status
}

// Update is a change of a scope. Nil fields are unchanged.
type Update struct {
	// ExpectedVersion must be the current version of the scope.
	ExpectedVersion int64
	Title           *string
	Access          *Access
	Coordinator     *kg.AgentID // "" for none
}

// EventQuery selects events of a scope.
type EventQuery struct {
	// Types, if set, excludes events of other types. Since, if set, excludes earlier ones.
	Types []string
	Since time.Time
	// After and Before exclude events up to and from a sequence; 0 for none. A page
	// continues the one before with the next that ListEvents returned: After, or Before if
	// Descending, which begins with the newest event.
	After, Before int64
	Descending    bool
	// PageSize is clamped to 1…MaxEvents; MaxEvents if 0.
	PageSize int
}

// ToRecord returns the stored form of a scope without its grants and assignments.
func (s *Scope) ToRecord() systemgraph.Record {
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class("Scope"), "scopeStatus": systemgraph.Values(string(s.Status)), "scopeTitle": systemgraph.Text(s.Title), "scopeParent": nil, "scopeCoordinator": nil,
		"scopeEverybody": nil, "scopeRole": systemgraph.Values(s.Access.Roles...), "scopeAgent": nil, "scopeCreatedAt": {kg.DateTime(s.CreatedAt)},
		"scopeCreatedBy": {kg.IRI(string(s.CreatedBy))}, "scopeVersion": {kg.Integer(s.Version)}, "scopeEndedAt": nil, "scopeEndReason": systemgraph.Text(s.EndReason),
		"scopeExternalId": systemgraph.Text(s.ExternalID),
	}
	if s.Parent != "" {
		r["scopeParent"] = []kg.Term{s.Parent.Entity()}
	}
	if s.Coordinator != "" {
		r["scopeCoordinator"] = []kg.Term{kg.IRI(string(s.Coordinator))}
	}
	if s.Access.Everybody {
		r["scopeEverybody"] = []kg.Term{kg.Boolean(true)}
	}
	for _, a := range s.Access.Agents {
		r["scopeAgent"] = append(r["scopeAgent"], kg.IRI(string(a)))
	}
	if !s.EndedAt.IsZero() {
		r["scopeEndedAt"] = []kg.Term{kg.DateTime(s.EndedAt)}
	}
	return r
}

// Normalized validates the lists and returns them in canonical form.
func (a Access) Normalized() (Access, error) {
	if n := len(a.Agents); n > MaxAgents {
		return a, check.TooMuch("access.agents", "access has %d agents; the limit is %d", n, MaxAgents)
	}
	if n := len(a.Roles); n > MaxRoles {
		return a, check.TooMuch("access.roles", "access has %d roles; the limit is %d", n, MaxRoles)
	}
	a.Agents = check.SortedAgents(a.Agents)
	for _, agent := range a.Agents {
		if err := agent.Valid(); err != nil {
			return a, kg.AsError(err).At("access.agents")
		}
	}
	a.Roles = sortedTexts(a.Roles)
	for _, role := range a.Roles {
		if err := checkRole("access.roles", role); err != nil {
			return a, err
		}
	}
	return a, nil
}

// ParseCoordinator canonicalizes a coordinator; "" means none.
func ParseCoordinator(agent kg.AgentID) (kg.AgentID, error) {
	if agent == "" {
		return "", nil
	}
	agent = kg.CanonicalAgent(string(agent))
	if err := agent.Valid(); err != nil {
		return "", kg.AsError(err).At("coordinator")
	}
	return agent, nil
}

// sortedTexts returns the sorted list without duplicates.
func sortedTexts(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

// ErrNotFound is the same for a scope that does not exist and for one that the caller
// has no access to.
func ErrNotFound() *kg.Error {
	return kg.Errorf(kg.CodeScopeNotFound, "there is no such scope").At("scopeId")
}

func ErrEnded(status Status) *kg.Error {
	return kg.Errorf(kg.CodeScopeEnded, "scope is %s", status).At("scopeId")
}

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
	"time"
	"unicode/utf8"

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
)

// Entity returns the scope as an entity of the graph.
func (s ID) Entity() kg.Term { return kg.IRI(scopePrefix + string(s)) }

// RecordGraph returns the graph of the scope's record.
func (s ID) RecordGraph() kg.Term { return kg.IRI(scopeRecordPrefix + string(s)) }

// EventsGraph returns the graph of the scope's events.
func (s ID) EventsGraph() kg.Term { return kg.IRI(eventsPrefix + string(s)) }

// IDOf returns the id of a scope entity, or "" for another term.
func IDOf(t kg.Term) ID { return vocab.IDOf[ID](t, scopePrefix) }

// OfGraph returns the scope that a graph belongs to, or "", and whether the graph is
// its record rather than its events.
func OfGraph(graph kg.Term) (id ID, record bool) {
	if id := vocab.IDOf[ID](graph, scopeRecordPrefix); id != "" {
		return id, true
	}
	return vocab.IDOf[ID](graph, eventsPrefix), false
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
	CreatedAt   time.Time
	CreatedBy   kg.AgentID
	// EndedAt and EndReason are set once the scope has ended.
	EndedAt   time.Time
	EndReason string
	// Version starts at 1 and increases with each change.
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
	MaxTitleRunes = 128
)

// Access lists who can see a scope and take part in it, in addition to its creator
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

// ApplyStatement adds one statement of the record to the scope.
func (s *Scope) ApplyStatement(property, object kg.Term) {
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
	}
}

// RemoveStatement removes one statement of the record from the scope.
func (s *Scope) RemoveStatement(property, object kg.Term) {
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
	return &c
}

// Draft describes a scope to create.
type Draft struct {
	// Parent makes the scope a task of that intent. Tasks cannot have tasks.
	Parent      ID
	Title       string
	Access      Access
	Coordinator kg.AgentID
	// IdempotencyKey works as in Draft.
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

// ToRecord returns the stored form of a scope.
func (s *Scope) ToRecord() systemgraph.Record {
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class("Scope"), "scopeStatus": systemgraph.Values(string(s.Status)), "scopeTitle": systemgraph.Text(s.Title), "scopeParent": nil, "scopeCoordinator": nil,
		"scopeEverybody": nil, "scopeRole": systemgraph.Values(s.Access.Roles...), "scopeAgent": nil, "scopeCreatedAt": {kg.DateTime(s.CreatedAt)},
		"scopeCreatedBy": {kg.IRI(string(s.CreatedBy))}, "scopeVersion": {kg.Integer(s.Version)}, "scopeEndedAt": nil, "scopeEndReason": systemgraph.Text(s.EndReason),
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
		if role == "" || !utf8.ValidString(role) || utf8.RuneCountInString(role) > MaxRoleRunes {
			return a, kg.Errorf(kg.CodeInvalid, "role must be non-empty valid UTF-8 of at most %d characters", MaxRoleRunes).At("access.roles")
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

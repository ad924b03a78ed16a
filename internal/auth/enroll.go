package auth

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"koine/internal/agents"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of agents that register themselves.
const (
	// ReservedKeys is the number of active keys that only administrators can create:
	// agents that register themselves, and rotate their keys with an overlap, cannot use
	// up MaxKeys.
	ReservedKeys = 1000
	// MaxOwnOverlap is the maximum validity of a key after its agent has rotated it.
	MaxOwnOverlap = 24 * time.Hour
	// MaxOwnKeys is the number of active keys of one agent from which on the agent
	// cannot rotate: it has to wait for the end of an overlap.
	MaxOwnKeys = 10
	// MaxEndedKeys is the number of rotated keys of one agent whose records are kept
	// after their end. A rotation by the agent removes the oldest above it.
	MaxEndedKeys = 100
)

// Enrollment describes an agent that registers, and its key.
type Enrollment struct {
	// Agent is the id of the new agent. If it is "", the server chooses one: Prefix and
	// 20 random letters and digits.
	Agent  kg.AgentID
	Prefix string
	// Name, Owner, Capabilities, Metadata (a JSON object, or nil) and the rest are its
	// record and card.
	Record agents.Record
	// Roles, Mode and Lifetime are those of the key. No role may be kg.RoleAdmin.
	Roles    []string
	Mode     Mode // Live if empty
	Lifetime time.Duration
	Label    string
}

// Enrolled is a registered agent with its key, whose secret is not available later.
type Enrolled struct {
	Record agents.Record
	Key    CreatedKey
}

// enrolledLength is the number of random characters in a chosen id.
const enrolledLength = 20

// Enroll creates the record, the card and a key of a new agent in one commit. Unlike the
// other methods it does not ask who calls: whether the caller may register agents is
// decided before. Without a principal in m, the commit is made by the agent itself.
//
// The agent must be unknown to the store, so that nobody gets a key of an agent that
// exists.
//
// Errors: CodeInvalid; CodeLimitExceeded for too many agents or keys, or a card that is
// too large; CodePermissionDenied for an agent that has a record, and for the role admin.
func (k *Keys) Enroll(ctx context.Context, m kg.Meta, directory *agents.Directory, e Enrollment) (done Enrolled, err error) {
	if e.Agent == "" {
		e.Agent = kg.AgentID(e.Prefix + randomText(enrolledLength))
	}
	request := KeyRequest{Agent: e.Agent, Label: e.Label, Roles: slices.Clone(e.Roles), Mode: e.Mode, Lifetime: e.Lifetime}
	if err := request.normalize(); err != nil {
		return done, err
	}
	if slices.Contains(request.Roles, kg.RoleAdmin) {
		return done, kg.Errorf(kg.CodePermissionDenied, "an agent that registers itself cannot have the role %s", kg.RoleAdmin).At("roles")
	}
	if m.Principal.ID == "" {
		m.Principal = kg.Principal{ID: request.Agent, Roles: request.Roles, Method: methodKey}
	}
	m.Method, m.Justification = cmp.Or(m.Method, "agents/enroll"), cmp.Or(m.Justification, "agent registered with a key")
	e.Record.ID, e.Record.Roles = request.Agent, request.Roles
	err = systemgraph.Update(ctx, k.store, m, func(tx *kg.Tx) error {
		done = Enrolled{}
		if err := checkCapacity(tx, MaxKeys-ReservedKeys); err != nil {
			return err
		}
		record, err := directory.CreateTx(tx, e.Record)
		if err != nil {
			return err
		}
		created, err := request.create(tx)
		done = Enrolled{record, created}
		return err
	})
	if err != nil {
		return Enrolled{}, err
	}
	return done, nil
}

// RotateOwn is Rotate of the key that the caller has authenticated with, by its agent. The
// old key stays valid for the overlap, of at most MaxOwnOverlap, and the streams that it
// opened end with it.
//
// Errors: CodePermissionDenied for a caller without a key, or with fewer rights than its
// key; CodeInvalid; CodeLimitExceeded for MaxOwnKeys active keys, and with an overlap when only
// ReservedKeys are left.
func (k *Keys) RotateOwn(ctx context.Context, m kg.Meta, overlap time.Duration) (created CreatedKey, old Key, err error) {
	if overlap < 0 || overlap > MaxOwnOverlap {
		return created, old, kg.Errorf(kg.CodeInvalid, "overlap must be between 0 and %s", MaxOwnOverlap).At("overlap")
	}
	p := m.Principal
	if p.Method != methodKey || p.Key == "" {
		return created, old, kg.Errorf(kg.CodePermissionDenied, "caller has no key to rotate: authenticate with the key itself")
	}
	if err := p.CheckWrite(); err != nil {
		return created, old, err
	}
	m.Method, m.Justification = cmp.Or(m.Method, "keys/rotate"), cmp.Or(m.Justification, "API key rotated by its agent")
	err = systemgraph.Update(ctx, k.store, m, func(tx *kg.Tx) error {
		found, err := readKey(tx.MatchOwn, p.Key)
		if err != nil {
			return err
		}
		if found.Agent != p.ID || len(kg.CommonRoles(p, kg.Principal{Roles: found.Roles})) != len(found.Roles) {
			return kg.Errorf(kg.CodePermissionDenied, "caller has fewer rights than its key: authenticate with the key alone")
		}
		if err := tidyOwn(tx, p.ID); err != nil {
			return err
		}
		if overlap > 0 { // until its end there is one key more
			if err := checkOverlapCapacity(tx); err != nil {
				return err
			}
		}
		created, old, err = rotate(tx, found, overlap, MaxKeys)
		return err
	})
	if err != nil {
		return CreatedKey{}, Key{}, err
	}
	return created, old, nil
}

// checkOverlapCapacity returns an error if an agent's own rotation with an overlap would use a key
// of ReservedKeys.
func checkOverlapCapacity(tx *kg.Tx) error {
	err := checkCapacity(tx, MaxKeys-ReservedKeys)
	if kg.CodeOf(err) != kg.CodeLimitExceeded {
		return err
	}
	return kg.Errorf(kg.CodeLimitExceeded, "store has few keys left, and %d are reserved for administrators: rotate without an overlap", ReservedKeys).At("overlap")
}

// tidyOwn checks MaxOwnKeys and removes the records of the agent's oldest rotated keys above
// MaxEndedKeys.
func tidyOwn(tx *kg.Tx, agent kg.AgentID) error {
	subjects, err := systemgraph.Subjects(tx.MatchOwn, kg.Pattern{Predicate: systemgraph.Property(propAgent), Object: kg.String(string(agent)), Graph: kg.SystemGraph})
	if err != nil {
		return err
	}
	active := 0
	var ended []*Key
	for _, subject := range subjects {
		r, err := systemgraph.Read(tx.MatchOwn, kg.SystemGraph, subject)
		if err != nil {
			return err
		}
		switch key := keyOf(subject, r); {
		case key == nil:
		case key.StateAt(tx.Time()) == Active:
			active++
		case key.StateAt(tx.Time()) == Expired && key.ReplacedBy != "":
			ended = append(ended, key)
		}
	}
	if active >= MaxOwnKeys {
		return kg.Errorf(kg.CodeLimitExceeded, "agent has %d active keys, which is the limit: wait for the end of an overlap, or rotate without one", active)
	}
	slices.SortFunc(ended, func(a, b *Key) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name)) })
	for len(ended) > MaxEndedKeys-1 { // the one that is rotated now may end at once
		if err := systemgraph.Remove(tx, kg.Pattern{Subject: subjectOf(ended[0].Name), Graph: kg.SystemGraph}); err != nil {
			return err
		}
		ended = ended[1:]
	}
	return nil
}

package auth

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"koine/internal/agents"
	"koine/internal/records"
	"koine/kg"
)

// Keys is the administrators' side of the keys. Its methods may be called
// concurrently; each fails with CodePermissionDenied unless the caller is an
// administrator.
type Keys struct{ store records.Store }

// NewKeys works on the keys in the store.
func NewKeys(store records.Store) *Keys { return &Keys{store} }

// Bounds on keys.
const (
	MaxKeys       = 10_000 // that have not ended, in one store
	MaxLabelBytes = 256
	MaxRoles      = 32
	MaxRoleBytes  = 128
	MaxActFor     = 100
	// MaxOverlap is how long a key may go on at most after it was rotated.
	MaxOverlap = 30 * 24 * time.Hour
)

// KeyRequest is what a key is to be.
type KeyRequest struct {
	Agent  kg.AgentID
	Label  string
	Roles  []string
	ActFor []kg.AgentID
	Mode   Mode // Live when empty
	// Lifetime is how long it is good; 0 is for ever.
	Lifetime time.Duration
}

// CreatedKey is a key with its text, which is told this once.
type CreatedKey struct {
	Key
	Secret string
}

// Create makes a key, and the record of its agent if there is none.
func (k *Keys) Create(ctx context.Context, m kg.Meta, wish KeyRequest) (made CreatedKey, err error) {
	if err := wish.normalise(); err != nil {
		return made, err
	}
	text, name := newSecret(wish.Mode)
	m.Justification = cmp.Or(m.Justification, "API key created")
	err = k.updateAsAdmin(ctx, m, func(tx *kg.Tx) error {
		for _, agent := range wish.ActFor {
			if agent != kg.Anybody && tx.CheckAgent(agent) != nil {
				return kg.AsError(tx.CheckAgent(agent)).At("actFor")
			}
		}
		if err := roomForKey(tx); err != nil {
			return err
		}
		made = CreatedKey{Key{
			Name: name, Mode: wish.Mode, Label: wish.Label, Agent: wish.Agent, Roles: wish.Roles, ActFor: wish.ActFor,
			Created: tx.Time(), CreatedBy: tx.Meta().Principal.ID, hash: hashOf(text),
		}, text}
		if wish.Lifetime > 0 {
			made.Expires = tx.Time().Add(wish.Lifetime)
		}
		if err := records.Write(tx, kg.SystemGraph, subjectOf(name), made.toRecord()); err != nil {
			return err
		}
		return agents.Ensure(tx, agents.Record{ID: wish.Agent, Roles: wish.Roles})
	})
	if err != nil {
		return CreatedKey{}, err
	}
	return made, nil
}

// Rotate makes a key like the named one, which stays good for the overlap and no
// longer than it would have been. The new key lives as long as the old one was
// made to.
func (k *Keys) Rotate(ctx context.Context, m kg.Meta, name string, overlap time.Duration) (made CreatedKey, old Key, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return made, old, kg.Errorf(kg.CodeInvalid, "an overlap is between 0 and %s", MaxOverlap).At("overlap")
	}
	m.Justification = cmp.Or(m.Justification, "API key rotated")
	err = k.updateAsAdmin(ctx, m, func(tx *kg.Tx) error {
		found, err := readKey(tx.MatchOwn, name)
		if err != nil {
			return err
		}
		if state := found.StateAt(tx.Time()); state != Active {
			return kg.Errorf(kg.CodeInvalid, "the key has ended already (%s)", strings.ToLower(string(state))).At("id")
		}
		if found.ReplacedBy != "" {
			return kg.Errorf(kg.CodeInvalid, "the key was rotated already: rotate %s", found.ReplacedBy).At("id")
		}
		if err := roomForKey(tx); err != nil {
			return err
		}
		text, newName := newSecret(found.Mode)
		made = CreatedKey{*found, text}
		made.Name, made.hash, made.Created, made.CreatedBy = newName, hashOf(text), tx.Time(), tx.Meta().Principal.ID
		if !found.Expires.IsZero() {
			made.Expires = tx.Time().Add(found.Expires.Sub(found.Created))
		}
		old = *found
		if ends := tx.Time().Add(overlap); old.Expires.IsZero() || ends.Before(old.Expires) {
			old.Expires = ends
		}
		old.ReplacedBy = newName
		if err := records.Write(tx, kg.SystemGraph, subjectOf(newName), made.toRecord()); err != nil {
			return err
		}
		return records.Write(tx, kg.SystemGraph, subjectOf(name), records.Record{
			propExpires: {kg.DateTime(old.Expires)}, propReplacedBy: records.Values(newName)})
	})
	if err != nil {
		return CreatedKey{}, Key{}, err
	}
	return made, old, nil
}

// Revoke ends a key at once, and what was admitted with it. A key that was
// revoked stays so.
func (k *Keys) Revoke(ctx context.Context, m kg.Meta, name string) (gone Key, err error) {
	m.Justification = cmp.Or(m.Justification, "API key revoked")
	err = k.updateAsAdmin(ctx, m, func(tx *kg.Tx) error {
		found, err := readKey(tx.MatchOwn, name)
		if err != nil {
			return err
		}
		gone = *found
		if !gone.Revoked.IsZero() {
			return nil
		}
		gone.Revoked = tx.Time()
		return records.Write(tx, kg.SystemGraph, subjectOf(name), records.Record{propRevoked: {kg.DateTime(gone.Revoked)}})
	})
	return gone, err
}

// List gives the keys, the oldest first: those of one agent, or all when agent is
// empty. Ended ones are left out unless ended is set.
func (k *Keys) List(ctx context.Context, p kg.Principal, agent kg.AgentID, ended bool) ([]Key, error) {
	if err := checkAdmin(p); err != nil {
		return nil, err
	}
	s, err := k.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{kg.SystemGraph}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	agent = kg.CanonicalAgent(string(agent))
	var out []Key
	for key, err := range allKeys(s.Match) {
		if err != nil {
			return nil, err
		}
		if (agent == "" || key.Agent == agent) && (ended || key.StateAt(s.View().Now) == Active) {
			out = append(out, *key)
		}
	}
	slices.SortFunc(out, func(a, b Key) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name)) })
	return out, nil
}

// Get gives the key of a name, ended or not.
func (k *Keys) Get(ctx context.Context, p kg.Principal, name string) (Key, error) {
	if err := checkAdmin(p); err != nil {
		return Key{}, err
	}
	s, err := k.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{kg.SystemGraph}})
	if err != nil {
		return Key{}, err
	}
	defer s.Close()
	key, err := readKey(s.Match, name)
	if err != nil {
		return Key{}, err
	}
	return *key, nil
}

// updateAsAdmin makes an update of an administrator's.
func (k *Keys) updateAsAdmin(ctx context.Context, m kg.Meta, do func(*kg.Tx) error) error {
	if err := checkAdmin(m.Principal); err != nil {
		return err
	}
	return records.Update(ctx, k.store, m, do)
}

func checkAdmin(p kg.Principal) error {
	if p.IsAdmin() {
		return nil
	}
	return kg.Errorf(kg.CodePermissionDenied, "keys are the business of administrators")
}

// readKey finds a key.
func readKey(match records.Matcher, name string) (*Key, error) {
	if len(name) == nameLength && !strings.ContainsFunc(name, notInKey) {
		r, err := records.Read(match, kg.SystemGraph, subjectOf(name))
		if err != nil {
			return nil, err
		}
		if k := keyOf(subjectOf(name), r); k != nil {
			return k, nil
		}
	}
	return nil, kg.Errorf(kg.CodeNotFound, "there is no such key").At("id")
}

func notInKey(r rune) bool { return !strings.ContainsRune(alphabet, r) }

// allKeys yields the keys.
func allKeys(match records.Matcher) iter.Seq2[*Key, error] {
	return func(yield func(*Key, error) bool) {
		subjects, err := records.Subjects(match, kg.SystemGraph, keyClass)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, subject := range subjects {
			r, err := records.Read(match, kg.SystemGraph, subject)
			if err != nil {
				yield(nil, err)
				return
			}
			if key := keyOf(subject, r); key != nil && !yield(key, nil) {
				return
			}
		}
	}
}

// roomForKey refuses one key too many. Only a store that has seen very many looks
// at each of them.
func roomForKey(tx *kg.Tx) error {
	subjects, err := records.Subjects(tx.MatchOwn, kg.SystemGraph, keyClass)
	if err != nil || len(subjects) < MaxKeys {
		return err
	}
	n := 0
	for key, err := range allKeys(tx.MatchOwn) {
		if err != nil {
			return err
		}
		if key.StateAt(tx.Time()) == Active {
			n++
		}
	}
	if n >= MaxKeys {
		return kg.Errorf(kg.CodeLimitExceeded, "there are %d keys already, as many as a store keeps: revoke some", MaxKeys)
	}
	return nil
}

// normalise checks what a key is to be, and spells it out.
func (n *KeyRequest) normalise() error {
	n.Agent = kg.CanonicalAgent(string(n.Agent))
	if n.Agent == "" {
		return kg.Errorf(kg.CodeInvalid, "a key belongs to an agent").At("agent")
	}
	if err := n.Agent.Valid(); err != nil {
		return kg.AsError(err).At("agent")
	}
	if err := mayHaveCredential(n.Agent); err != nil {
		return err
	}
	if n.Mode == "" {
		n.Mode = Live
	}
	switch {
	case n.Mode != Live && n.Mode != Test:
		return kg.Errorf(kg.CodeInvalid, "a key is live or test").At("mode")
	case len(n.Label) > MaxLabelBytes || !utf8.ValidString(n.Label) || strings.ContainsFunc(n.Label, unicode.IsControl):
		return kg.Errorf(kg.CodeInvalid, "a name is plain text of at most %d bytes", MaxLabelBytes).At("name")
	case len(n.Roles) > MaxRoles:
		return kg.Errorf(kg.CodeLimitExceeded, "a key has at most %d roles", MaxRoles).At("roles")
	case len(n.ActFor) > MaxActFor:
		return kg.Errorf(kg.CodeLimitExceeded, "a key acts for at most %d agents, or for *", MaxActFor).At("actFor")
	case n.Lifetime < 0:
		return kg.Errorf(kg.CodeInvalid, "a lifetime cannot be negative").At("lifetime")
	}
	for _, role := range n.Roles {
		if !ValidRole(role) {
			return kg.Errorf(kg.CodeInvalid, "a role is a word of letters, digits and - _ . : / of at most %d bytes", MaxRoleBytes).At("roles")
		}
	}
	slices.Sort(n.Roles)
	n.Roles = slices.Compact(n.Roles)
	var err error
	n.ActFor, err = normalizeActFor(n.ActFor)
	return err
}

// ValidRole tells whether a text can be the name of a role.
func ValidRole(role string) bool {
	return role != "" && len(role) <= MaxRoleBytes && !strings.ContainsFunc(role, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/", r))
	})
}

// normalizeActFor spells a list of agents out, each once.
func normalizeActFor(list []kg.AgentID) ([]kg.AgentID, error) {
	out := make([]kg.AgentID, 0, len(list))
	for _, agent := range list {
		if agent != kg.Anybody {
			agent = kg.CanonicalAgent(string(agent))
			if err := agent.Valid(); err != nil || agent == "" {
				return nil, kg.Errorf(kg.CodeInvalid, "actFor lists agents, or *").At("actFor")
			}
		}
		out = append(out, agent)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// mayHaveCredential refuses the two agents that nobody is.
func mayHaveCredential(agent kg.AgentID) error {
	if agent == kg.System || agent == kg.Anonymous {
		return kg.Errorf(kg.CodeInvalid, "nobody can be %s", agent).At("agent")
	}
	return nil
}

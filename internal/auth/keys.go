package auth

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"koine/internal/agents"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Keys manages API keys. Its methods may be called concurrently. Each but Enroll and
// RotateOwn fails with CodePermissionDenied unless the caller is an administrator.
type Keys struct{ store systemgraph.Store }

// NewKeys returns a manager of the keys in the store.
func NewKeys(store systemgraph.Store) *Keys { return &Keys{store} }

// Limits of keys.
const (
	MaxKeys       = 10_000 // active keys per store
	MaxLabelBytes = 256
	MaxRoles      = 32
	MaxRoleBytes  = 128
	MaxActFor     = 100
	// MaxOverlap is the maximum validity of a key after its rotation.
	MaxOverlap = 30 * 24 * time.Hour
)

// KeyRequest describes a key to create.
type KeyRequest struct {
	Agent  kg.AgentID
	Label  string
	Roles  []string
	ActFor []kg.AgentID
	Mode   Mode // Live if empty
	// Lifetime is the validity of the key; 0 means unlimited.
	Lifetime time.Duration
	// Secret is the whole text of the key, in the form and of the mode of generated ones,
	// or "" to generate it.
	Secret string
}

// CreatedKey is a key with its secret text, which is not available later.
type CreatedKey struct {
	Key
	Secret string
}

// Create creates a key, and the record of its agent if there is none.
func (k *Keys) Create(ctx context.Context, m kg.Meta, request KeyRequest) (created CreatedKey, err error) {
	if err := request.normalize(); err != nil {
		return created, err
	}
	m.Justification = cmp.Or(m.Justification, "API key created")
	err = k.updateAsAdmin(ctx, m, func(tx *kg.Tx) (err error) {
		for _, agent := range request.ActFor {
			if agent != kg.Anybody && tx.CheckAgent(agent) != nil {
				return kg.AsError(tx.CheckAgent(agent)).At("actFor")
			}
		}
		if err := checkCapacity(tx, MaxKeys); err != nil {
			return err
		}
		created, err = request.create(tx)
		return err
	})
	if err != nil {
		return CreatedKey{}, err
	}
	return created, nil
}

// create writes the key of a normalized request, and the record of its agent if there is
// none.
func (n *KeyRequest) create(tx *kg.Tx) (created CreatedKey, err error) {
	text, name := n.Secret, ""
	if text == "" {
		text, name = newSecret(n.Mode)
	} else {
		name, _ = nameOf(text) // checked before
		stands, err := systemgraph.Read(tx.MatchOwn, kg.SystemGraph, subjectOf(name))
		if err != nil {
			return created, err
		}
		if len(stands) > 0 {
			return created, kg.Errorf(kg.CodeInvalid, "a key with the id %s exists already: generate another secret", name).At("secret")
		}
	}
	created = CreatedKey{Key{
		Name: name, Mode: n.Mode, Label: n.Label, Agent: n.Agent, Roles: n.Roles, ActFor: n.ActFor,
		Created: tx.Time(), CreatedBy: tx.Meta().Principal.ID, hash: hashOf(text),
	}, text}
	if n.Lifetime > 0 {
		created.Expires = tx.Time().Add(n.Lifetime)
	}
	if err := systemgraph.Write(tx, kg.SystemGraph, subjectOf(name), created.toRecord()); err != nil {
		return created, err
	}
	return created, agents.Ensure(tx, agents.Record{ID: n.Agent, Roles: n.Roles})
}

// Rotate creates a key with the properties of the named one, which stays valid for the
// overlap but not beyond its own expiry. The new key gets the lifetime that the old one
// was created with.
func (k *Keys) Rotate(ctx context.Context, m kg.Meta, name string, overlap time.Duration) (created CreatedKey, old Key, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return created, old, kg.Errorf(kg.CodeInvalid, "overlap must be between 0 and %s", MaxOverlap).At("overlap")
	}
	m.Justification = cmp.Or(m.Justification, "API key rotated")
	err = k.updateAsAdmin(ctx, m, func(tx *kg.Tx) error {
		found, err := readKey(tx.MatchOwn, name)
		if err != nil {
			return err
		}
		created, old, err = rotate(tx, found, overlap, MaxKeys)
		return err
	})
	if err != nil {
		return CreatedKey{}, Key{}, err
	}
	return created, old, nil
}

// rotate replaces an active key by a new one with the same rights.
func rotate(tx *kg.Tx, found *Key, overlap time.Duration, most int) (created CreatedKey, old Key, err error) {
	if state := found.StateAt(tx.Time()); state != Active {
		return created, old, kg.Errorf(kg.CodeInvalid, "key is no longer active (%s)", strings.ToLower(string(state))).At("id")
	}
	if found.ReplacedBy != "" {
		return created, old, kg.Errorf(kg.CodeInvalid, "key was rotated already: rotate %s instead", found.ReplacedBy).At("id")
	}
	if err := checkCapacity(tx, most); err != nil {
		return created, old, err
	}
	text, newName := newSecret(found.Mode)
	created = CreatedKey{*found, text}
	created.Name, created.hash, created.Created, created.CreatedBy = newName, hashOf(text), tx.Time(), tx.Meta().Principal.ID
	if !found.Expires.IsZero() {
		created.Expires = tx.Time().Add(found.Expires.Sub(found.Created))
	}
	old = *found
	if ends := tx.Time().Add(overlap); old.Expires.IsZero() || ends.Before(old.Expires) {
		old.Expires = ends
	}
	old.ReplacedBy = newName
	if err := systemgraph.Write(tx, kg.SystemGraph, subjectOf(newName), created.toRecord()); err != nil {
		return created, old, err
	}
	return created, old, systemgraph.Write(tx, kg.SystemGraph, subjectOf(found.Name), systemgraph.Record{
		propExpires: {kg.DateTime(old.Expires)}, propReplacedBy: systemgraph.Values(newName)})
}

// Revoke invalidates a key immediately and ends its sessions. A revoked key stays
// revoked.
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
		return systemgraph.Write(tx, kg.SystemGraph, subjectOf(name), systemgraph.Record{propRevoked: {kg.DateTime(gone.Revoked)}})
	})
	return gone, err
}

// List returns the keys of one agent, or of all if agent is empty, oldest first. With
// ended, it includes expired and revoked keys.
func (k *Keys) List(ctx context.Context, p kg.Principal, agent kg.AgentID, ended bool) ([]Key, error) {
	s, err := k.openView(ctx, p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	agent = kg.CanonicalAgent(string(agent))
	out, err := allKeys(s.Match)
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(k Key) bool {
		return agent != "" && k.Agent != agent || !ended && k.StateAt(s.View().Now) != Active
	})
	slices.SortFunc(out, func(a, b Key) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name)) })
	return out, nil
}

// Get returns a key by name, even if it has ended.
func (k *Keys) Get(ctx context.Context, p kg.Principal, name string) (Key, error) {
	s, err := k.openView(ctx, p)
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

// openView returns a snapshot of the keys if the caller is an administrator.
func (k *Keys) openView(ctx context.Context, p kg.Principal) (*kg.Snapshot, error) {
	if err := checkAdmin(p); err != nil {
		return nil, err
	}
	return k.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{kg.SystemGraph}})
}

// updateAsAdmin makes an update if the caller is an administrator.
func (k *Keys) updateAsAdmin(ctx context.Context, m kg.Meta, do func(*kg.Tx) error) error {
	if err := checkAdmin(m.Principal); err != nil {
		return err
	}
	return systemgraph.Update(ctx, k.store, m, do)
}

func checkAdmin(p kg.Principal) error {
	if p.IsAdmin() {
		return nil
	}
	return kg.Errorf(kg.CodePermissionDenied, "only administrators can manage keys")
}

func readKey(match systemgraph.Matcher, name string) (*Key, error) {
	if len(name) == nameLength && !strings.ContainsFunc(name, notInKey) {
		r, err := systemgraph.Read(match, kg.SystemGraph, subjectOf(name))
		if err != nil {
			return nil, err
		}
		if k := keyOf(subjectOf(name), r); k != nil {
			return k, nil
		}
	}
	return nil, kg.Errorf(kg.CodeNotFound, "key not found").At("id")
}

func notInKey(r rune) bool { return !strings.ContainsRune(alphabet, r) }

func allKeys(match systemgraph.Matcher) (keys []Key, err error) {
	subjects, err := systemgraph.Instances(match, kg.SystemGraph, keyClass)
	if err != nil {
		return nil, err
	}
	for _, subject := range subjects {
		r, err := systemgraph.Read(match, kg.SystemGraph, subject)
		if err != nil {
			return nil, err
		}
		if key := keyOf(subject, r); key != nil {
			keys = append(keys, *key)
		}
	}
	return keys, nil
}

// checkCapacity returns an error if there are most active keys or more. It examines each key
// only in a store with very many keys.
func checkCapacity(tx *kg.Tx, most int) error {
	subjects, err := systemgraph.Instances(tx.MatchOwn, kg.SystemGraph, keyClass)
	if err != nil || len(subjects) < most {
		return err
	}
	keys, err := allKeys(tx.MatchOwn)
	keys = slices.DeleteFunc(keys, func(k Key) bool { return k.StateAt(tx.Time()) != Active })
	if err == nil && len(keys) >= most {
		err = kg.Errorf(kg.CodeLimitExceeded, "store has %d active keys, which is the limit: revoke one first", len(keys))
	}
	return err
}

// normalize validates the request and brings it into canonical form.
func (n *KeyRequest) normalize() error {
	n.Agent = kg.CanonicalAgent(string(n.Agent))
	if n.Agent == "" {
		return kg.Errorf(kg.CodeInvalid, "agent is required").At("agent")
	}
	if err := n.Agent.Valid(); err != nil {
		return kg.AsError(err).At("agent")
	}
	if err := mayHaveCredential(n.Agent); err != nil {
		return err
	}
	n.Mode = cmp.Or(n.Mode, Live)
	switch {
	case n.Mode != Live && n.Mode != Test:
		return kg.Errorf(kg.CodeInvalid, "mode must be live or test").At("mode")
	case len(n.Label) > MaxLabelBytes || !utf8.ValidString(n.Label) || strings.ContainsFunc(n.Label, unicode.IsControl):
		return kg.Errorf(kg.CodeInvalid, "name must be plain text of at most %d bytes", MaxLabelBytes).At("name")
	case len(n.Roles) > MaxRoles:
		return kg.Errorf(kg.CodeLimitExceeded, "key has more than %d roles", MaxRoles).At("roles")
	case len(n.ActFor) > MaxActFor:
		return kg.Errorf(kg.CodeLimitExceeded, "actFor has more than %d agents: use *", MaxActFor).At("actFor")
	case n.Lifetime < 0:
		return kg.Errorf(kg.CodeInvalid, "lifetime must not be negative").At("lifetime")
	}
	if n.Secret != "" {
		if err := checkSecret(n.Secret, n.Mode); err != nil {
			return err
		}
	}
	for _, role := range n.Roles {
		if !ValidRole(role) {
			return kg.Errorf(kg.CodeInvalid, "role must consist of letters, digits and - _ . : /, and have at most %d bytes", MaxRoleBytes).At("roles")
		}
	}
	slices.Sort(n.Roles)
	n.Roles = slices.Compact(n.Roles)
	var err error
	n.ActFor, err = normalizeActFor(n.ActFor)
	return err
}

// checkSecret returns an error, without the secret, if a given secret is not one that could
// have been generated: its last part must have the length of 256 random bits.
func checkSecret(text string, mode Mode) error {
	_, ok := nameOf(text)
	rest, right := strings.CutPrefix(text, keyPrefix+string(mode)+"_")
	if name, secret, _ := strings.Cut(rest, "_"); !ok || !right || strings.ContainsFunc(name+secret, notInKey) {
		return kg.Errorf(kg.CodeInvalid, "must be %s%s_, %d letters and digits, _, and %d random letters and digits", keyPrefix, mode, nameLength, secretLength).At("secret")
	}
	return nil
}

// ValidRole reports whether a text is a valid role name.
func ValidRole(role string) bool {
	return role != "" && len(role) <= MaxRoleBytes && !strings.ContainsFunc(role, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/", r))
	})
}

// normalizeActFor returns the canonical list of agents without duplicates.
func normalizeActFor(list []kg.AgentID) ([]kg.AgentID, error) {
	out := make([]kg.AgentID, 0, len(list))
	for _, agent := range list {
		if agent != kg.Anybody {
			agent = kg.CanonicalAgent(string(agent))
			if err := agent.Valid(); err != nil || agent == "" {
				return nil, kg.Errorf(kg.CodeInvalid, "actFor must list agents, or *").At("actFor")
			}
		}
		out = append(out, agent)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// mayHaveCredential returns an error for the two reserved agents.
func mayHaveCredential(agent kg.AgentID) error {
	if agent == kg.System || agent == kg.Anonymous {
		return kg.Errorf(kg.CodeInvalid, "agent %s cannot have credentials", agent).At("agent")
	}
	return nil
}

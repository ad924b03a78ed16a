package channels

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"koine/kg"
)

// creationKey is the idempotency key of a request that creates a channel or a scope. It
// is stored in the record of the created object, so it survives restarts and lives as
// long as the record. The zero creationKey means a request without a key.
type creationKey struct {
	once    kg.Term // identifies the record
	content kg.Term // hash of the request
}

// newCreationKey returns the key of a request by an agent. Requests with the same
// meaning must have content that encodes to the same JSON.
func newCreationKey(method string, agent kg.AgentID, key string, content ...any) (creationKey, error) {
	if key == "" {
		return creationKey{}, nil
	}
	if err := checkKey(key); err != nil {
		return creationKey{}, err
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return creationKey{}, err
	}
	// A channel id has no slash, so this cannot collide with the key of a message.
	once := sha256.Sum256([]byte(method + "\n" + string(agent) + "\n" + key))
	sum := sha256.Sum256(raw)
	return creationKey{kg.String(base64.RawURLEncoding.EncodeToString(once[:])), kg.String(hex.EncodeToString(sum[:]))}, nil
}

func checkKey(key string) error {
	if n := utf8.RuneCountInString(key); n > MaxKeyRunes {
		return errTooMuch("idempotencyKey", "idempotencyKey has %d characters; the limit is %d", n, MaxKeyRunes)
	}
	return nil
}

// findEarlier returns the entity that an earlier request with the key created, or the
// zero term. It fails with CodeIdempotencyConflict if that request had different
// content.
func (c creationKey) findEarlier(tx *kg.Tx) (kg.Term, error) {
	if c.once.IsZero() {
		return kg.Term{}, nil
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: propOnce, Object: c.once}) {
		if err != nil {
			return kg.Term{}, err
		}
		same := false
		for _, err := range tx.MatchOwn(kg.Pattern{Subject: st.Subject, Predicate: propContent, Object: c.content, Graph: st.Graph}) {
			if err != nil {
				return kg.Term{}, err
			}
			same = true
		}
		if !same {
			return kg.Term{}, kg.Errorf(kg.CodeIdempotencyConflict, "idempotencyKey was used for a different request").At("idempotencyKey")
		}
		return st.Subject, nil
	}
	return kg.Term{}, nil
}

// writeTo stores the key in the record of the created entity.
func (c creationKey) writeTo(tx *kg.Tx, graph, subject kg.Term) error {
	if c.once.IsZero() {
		return nil
	}
	for _, q := range []kg.Quad{{Subject: subject, Predicate: propOnce, Object: c.once, Graph: graph}, {Subject: subject, Predicate: propContent, Object: c.content, Graph: graph}} {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}

// creationKey returns the creation key of a new channel.
func (c *Channel) creationKey(key string) (creationKey, error) {
	if key == "" {
		return creationKey{}, nil
	}
	metadata, err := decodeJSON(c.Metadata)
	if err != nil {
		return creationKey{}, err
	}
	members := slices.SortedFunc(slices.Values(c.Members), func(a, b Member) int { return cmp.Compare(a.Agent, b.Agent) })
	return newCreationKey("channels/create", c.CreatedBy, key, c.Scope, c.MemberPolicy, c.Kind, c.Name, c.Topic, c.Visibility, members, metadata,
		c.Rights, c.MaxMembers, c.Limits, c.ExpireAfter, c.KeepMessages, c.Audit)
}

// creationKey returns the creation key of a new scope.
func (s *Scope) creationKey(key string) (creationKey, error) {
	return newCreationKey("scopes/create", s.CreatedBy, key, s.Parent, s.Title, s.Access, s.Coordinator)
}

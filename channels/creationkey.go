package channels

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"koine/channels/internal/vocab"
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

// findEarlier returns the entity that an earlier request with the key created, or the
// zero term. It fails with CodeIdempotencyConflict if that request had different
// content.
func (c creationKey) findEarlier(tx *kg.Tx) (kg.Term, error) {
	if c.once.IsZero() {
		return kg.Term{}, nil
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: vocab.Once, Object: c.once}) {
		if err != nil {
			return kg.Term{}, err
		}
		same := false
		for _, err := range tx.MatchOwn(kg.Pattern{Subject: st.Subject, Predicate: vocab.Content, Object: c.content, Graph: st.Graph}) {
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
	for _, q := range []kg.Quad{{Subject: subject, Predicate: vocab.Once, Object: c.once, Graph: graph}, {Subject: subject, Predicate: vocab.Content, Object: c.content, Graph: graph}} {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}

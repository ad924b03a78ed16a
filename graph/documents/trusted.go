package documents

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Bounds of a manifest of trusted documents.
const (
	MaxTrustedBytes     = 64 << 20
	MaxTrustedDocuments = 50_000
)

// Trusted are documents approved by the operator, by id and by the
// SHA-256 of their text. They are immutable.
type Trusted struct {
	ids    map[string]string // id → text
	hashes map[string]string // SHA-256 in hexadecimal → text
	texts  map[string]struct{}
}

// Len is the number of texts.
func (t *Trusted) Len() int { return len(t.texts) }

// The format of manifests written by Apollo's tools.
const apolloManifest = "apollo-persisted-query-manifest"

// ReadTrusted parses a manifest in one of the two common forms: an
// object from id to document text, or the operations manifest of Apollo's
// tools ({"format": "apollo-persisted-query-manifest", "version": 1,
// "operations": [{"id", "body"}]}).
func ReadTrusted(r io.Reader) (*Trusted, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxTrustedBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxTrustedBytes {
		return nil, fmt.Errorf("the manifest is larger than %d bytes", MaxTrustedBytes)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &members); err != nil {
		return nil, fmt.Errorf("the manifest must be a JSON object: %w", err)
	}
	t := &Trusted{ids: map[string]string{}, hashes: map[string]string{}, texts: map[string]struct{}{}}
	if members["operations"] != nil && members["format"] != nil {
		if err := t.addOperations(text); err != nil {
			return nil, err
		}
		return t, nil
	}
	for id, raw := range members {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("the document of %q must be a string", id)
		}
		if err := t.add(id, text); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Trusted) addOperations(text []byte) error {
	var m struct {
		Format     string
		Version    int
		Operations []struct{ ID, Body string }
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("the operations manifest is invalid: %w", err)
	}
	if m.Format != apolloManifest || m.Version != 1 {
		return fmt.Errorf("the manifest has the format %q, version %d; supported is %s, version 1", m.Format, m.Version, apolloManifest)
	}
	for _, o := range m.Operations {
		if err := t.add(o.ID, o.Body); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trusted) add(id, text string) error {
	hash := hashOf(text)
	switch {
	case id == "" || text == "":
		return fmt.Errorf("the document of %q has no id or no text", id)
	case strings.HasPrefix(id, hashPrefix) && id != hashPrefix+hash:
		return fmt.Errorf("%q is not the hash of its document, which is %s", id, hash)
	case t.ids[id] != "" && t.ids[id] != text:
		return fmt.Errorf("the id %q names two documents", id)
	}
	t.ids[id], t.hashes[hash], t.texts[text] = text, text, struct{}{}
	if len(t.texts) > MaxTrustedDocuments {
		return fmt.Errorf("the manifest has more than %d documents", MaxTrustedDocuments)
	}
	return nil
}

// hashPrefix precedes ids that are the SHA-256 of the text, in lower-case
// hexadecimal (GraphQL over HTTP, appendix A).
const hashPrefix = "sha256:"

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// byHash returns the document with the hash, or with the hash as its id.
func (t *Trusted) byHash(hash string) string {
	if t == nil {
		return ""
	}
	if text := t.hashes[hash]; text != "" {
		return text
	}
	return t.ids[hash]
}

func (t *Trusted) byID(id string) string {
	if t == nil {
		return ""
	}
	if hash, ok := strings.CutPrefix(id, hashPrefix); ok {
		return t.hashes[hash]
	}
	return t.ids[id]
}

func (t *Trusted) has(text string) bool {
	if t == nil {
		return false
	}
	_, ok := t.texts[text]
	return ok
}

// Invalid is a trusted document that is invalid in the schema.
type Invalid struct {
	ID     string
	Errors gqlerror.List
}

// InvalidDocuments returns the trusted documents that are invalid in the
// schema, sorted by id.
func (d *Cache) InvalidDocuments() (invalid []Invalid) {
	if d.trusted == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(d.trusted.ids)) {
		if _, errs := d.parse(d.trusted.ids[id]); len(errs) > 0 {
			invalid = append(invalid, Invalid{id, errs})
		}
	}
	return invalid
}

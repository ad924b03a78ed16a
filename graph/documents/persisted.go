package documents

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/kg"
)

// Bounds of the automatic persisted queries. A longer text is executed but not
// stored.
const (
	DefaultPersistedQueries = 1_000
	DefaultPersistedBytes   = 8 << 20
	MaxPersistedQueryBytes  = 64 << 10
)

// Persisted stores the query texts registered by clients, by their SHA-256. It
// is safe for concurrent use.
type Persisted struct {
	maxQueries, maxBytes int // of one generation

	mu sync.Mutex // guards the fields below
	// Two generations, as in documents.
	young, old map[string]string
	bytes      int // of the young texts
}

// NewPersisted returns a store with these bounds; 0 means the default.
func NewPersisted(maxQueries, maxBytes int) *Persisted {
	if maxQueries <= 0 {
		maxQueries = DefaultPersistedQueries
	}
	if maxBytes <= 0 {
		maxBytes = DefaultPersistedBytes
	}
	return &Persisted{maxQueries: (maxQueries + 1) / 2, maxBytes: maxBytes / 2, young: map[string]string{}}
}

// get returns the text with the hash, "" if there is none.
func (p *Persisted) get(hash string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := p.young[hash]; text != "" {
		return text
	}
	text := p.old[hash]
	if text != "" {
		p.put(hash, text)
	}
	return text
}

// registerText registers a valid text under its hash.
func (p *Persisted) registerText(hash, text string) {
	if len(text) > MaxPersistedQueryBytes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.young[hash] == "" {
		p.put(strings.Clone(hash), strings.Clone(text))
	}
}

// put must be called with p.mu held.
func (p *Persisted) put(hash, text string) {
	if len(text) > p.maxBytes {
		return
	}
	if len(p.young) >= p.maxQueries || p.bytes+len(text) > p.maxBytes {
		p.old, p.young, p.bytes = p.young, map[string]string{}, 0
	}
	p.young[hash] = text
	p.bytes += len(text)
}

// DocumentOf returns the valid document of a request and its text. A request has the
// text, an id (GraphQL over HTTP, appendix A), or a hash (automatic persisted
// queries).
func (d *Cache) DocumentOf(req *operation.Request) (doc *Document, text string, errs gqlerror.List) {
	text, hash, err := d.requestText(req)
	if err != nil {
		return nil, "", gqlerror.List{wrapError(err)}
	}
	if d.onlyTrusted && !d.trusted.has(text) {
		return nil, "", gqlerror.List{wrapError(notTrusted())}
	}
	doc, errs = d.get(text)
	if len(errs) == 0 && hash != "" && req.Query != "" && !d.onlyTrusted {
		d.Persisted.registerText(hash, text)
	}
	return doc, text, errs
}

// wrapError carries a *kg.Error through a list of GraphQL errors.
func wrapError(err error) *gqlerror.Error {
	if g, ok := err.(*gqlerror.Error); ok {
		return g
	}
	return &gqlerror.Error{Message: err.Error(), Err: err}
}

// requestText returns the text of a request. hash is the hash in the extension
// persistedQuery, checked against the text if there is one; "" without the
// extension.
func (d *Cache) requestText(req *operation.Request) (text, hash string, err error) {
	if req.DocumentID != "" {
		text, err = d.byID(req)
		return text, "", err
	}
	extension, ok := req.Extensions["persistedQuery"]
	if !ok || extension == nil {
		return req.Query, "", nil
	}
	if hash, err = readPersistedQuery(extension); err != nil {
		return "", "", err
	}
	if req.Query != "" {
		if hash != hashOf(req.Query) {
			err := kg.Errorf(kg.CodeInvalid, "sha256Hash differs from the hash of the query").At("extensions.persistedQuery.sha256Hash")
			err.Hint = "The hash is the SHA-256 of the query's text in UTF-8, in hexadecimal."
			return "", "", err
		}
		return req.Query, hash, nil
	}
	text = d.trusted.byHash(hash)
	switch {
	case text != "":
	case d.onlyTrusted:
		err = notTrusted()
	default:
		if text = d.Persisted.get(hash); text == "" {
			err = persistedQueryNotFound()
		}
	}
	return text, hash, err
}

func (d *Cache) byID(req *operation.Request) (string, error) {
	if req.Query != "" {
		return "", kg.Errorf(kg.CodeInvalid, "query and documentId are mutually exclusive").At("documentId")
	}
	text := d.trusted.byID(req.DocumentID)
	if hash, ok := strings.CutPrefix(req.DocumentID, hashPrefix); ok && text == "" && !d.onlyTrusted {
		text = d.Persisted.get(hash)
	}
	if text == "" {
		return "", kg.Errorf(kg.CodeNotFound, "no document has this id").At("documentId")
	}
	return text, nil
}

// readPersistedQuery parses {"version": 1, "sha256Hash": "…"}.
func readPersistedQuery(extension any) (hash string, err error) {
	members, _ := extension.(map[string]any)
	version := ""
	switch v := members["version"].(type) {
	case json.Number:
		version = v.String()
	case float64:
		version = strconv.FormatFloat(v, 'g', -1, 64)
	}
	hash, _ = members["sha256Hash"].(string)
	if version != "1" || len(hash) != 2*32 {
		return "", kg.Errorf(kg.CodeInvalid, `the extension persistedQuery must be {"version": 1, "sha256Hash": "<64 hexadecimal digits>"}`).At("extensions.persistedQuery")
	}
	return strings.ToLower(hash), nil
}

// persistedQueryNotFound has the message and the code by which clients know
// that they have to send the text.
func persistedQueryNotFound() error {
	return &gqlerror.Error{Message: "PersistedQueryNotFound", Extensions: map[string]any{
		"code": "PERSISTED_QUERY_NOT_FOUND", "hint": "Send the query's text with its hash once."}}
}

func notTrusted() error {
	err := kg.Errorf(kg.CodePermissionDenied, "this server executes trusted documents only")
	err.Hint = "Send the documentId of one of the operator's trusted documents, or its exact text; new ones are added to the file of --trusted-documents."
	return err
}

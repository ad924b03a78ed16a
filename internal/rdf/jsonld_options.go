package rdf

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"koine/kg"
)

// Limits of reading JSON-LD.
const (
	// DefaultJSONLDMaxBytes bounds the parts of a document that are held in memory: an object
	// that is not in streaming order, or one value.
	DefaultJSONLDMaxBytes = 64 << 20
	// MaxJSONLDMaxBytes is the largest JSONLDOptions.MaxBytes.
	MaxJSONLDMaxBytes = 1 << 30

	// DefaultJSONLDWait is the time that a document waits for permission to hold more.
	DefaultJSONLDWait = time.Minute
	// MaxContextBytes is the largest size of a context file.
	MaxContextBytes = 16 << 20
)

// retryHolder is the retry delay of the error of JSONLDHolders.
const retryHolder = 10 * time.Second

// JSONLDOptions configures the reading of JSON-LD. The zero value has the defaults.
type JSONLDOptions struct {
	// MaxBytes bounds the parts of a document that are held in memory; 0 means
	// DefaultJSONLDMaxBytes.
	MaxBytes int64
	// Holders, if set, bounds the number of documents that hold much memory.
	Holders *JSONLDHolders
	// Contexts replace contexts that would have to be fetched.
	Contexts *JSONLDContexts
	// Context is the IRI of a context that is applied before the document's own, as an HTTP Link
	// header specifies; "" for none.
	Context string
	// Direction is the treatment of @direction, which RDF 1.1 literals lack: "i18n-datatype",
	// "compound-literal", or "" to omit it.
	Direction string
	// Dropped, if set, is called for each entry that the specification drops because its key maps
	// to no IRI.
	Dropped func(*SyntaxError)
}

// JSONLDHolders is a semaphore for documents that hold more than a mebibyte.
type JSONLDHolders struct {
	// Wait bounds the wait for the semaphore; 0 means DefaultJSONLDWait.
	Wait  time.Duration
	slots chan struct{}
}

// NewJSONLDHolders returns a semaphore for n documents.
func NewJSONLDHolders(n int) *JSONLDHolders {
	return &JSONLDHolders{slots: make(chan struct{}, n)}
}

// acquire acquires the semaphore. It returns CodeOverloaded after the wait.
func (h *JSONLDHolders) acquire(ctx context.Context) error {
	if h == nil {
		return nil
	}
	wait := cmp.Or(h.Wait, DefaultJSONLDWait)
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
	}
	e := kg.Errorf(kg.CodeOverloaded, "too many large JSON-LD documents are being read: none ended within %v", wait)
	e.Hint = "Try again later, reorder the document for streaming (in each object @context first, then @type and @id, then the rest), or send N-Quads."
	e.RetryAfter = retryHolder
	return e
}

func (h *JSONLDHolders) release() {
	if h != nil {
		<-h.slots
	}
}

// JSONLDContexts are context documents by IRI. Nothing is ever fetched: a context is in
// the document or among these.
type JSONLDContexts struct {
	documents map[string]val
	digest    string
}

// Add adds the text of a context document.
func (c *JSONLDContexts) Add(iri string, text []byte) error {
	if _, err := kg.ParseIRI(iri); err != nil {
		return err
	}
	if len(text) > MaxContextBytes {
		return tooLong("the context %s has more than %d bytes", iri, MaxContextBytes)
	}
	s := newJSONScanner(context.Background(), bytes.NewReader(text), MaxContextBytes)
	v, err := s.readValue()
	if err == nil {
		v = v.clone()
		err = s.checkEnd()
	}
	if err != nil {
		return kg.Errorf(kg.CodeOf(err), "the context %s, line %d: %s", iri, s.countLines(s.pos), messageOf(err))
	}
	if !v.isObject() {
		return invalid("the context %s is not a JSON object with @context", iri)
	}
	if _, ok := v.lookUpEntry("@context"); !ok {
		return invalid("the context %s has no @context", iri)
	}
	if c.documents == nil {
		c.documents = map[string]val{}
	}
	c.documents[iri] = v
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %x", c.digest, iri, sha256.Sum256(text)))
	c.digest = hex.EncodeToString(sum[:16])
	return nil
}

// Digest returns a digest of the contexts in order of addition; "" for none.
func (c *JSONLDContexts) Digest() string {
	if c == nil {
		return ""
	}
	return c.digest
}

// Has reports whether there is a context with this IRI.
func (c *JSONLDContexts) Has(iri string) bool {
	_, err := c.lookUpDocument(iri)
	return err == nil
}

func (c *JSONLDContexts) lookUpDocument(iri string) (val, error) {
	if c != nil {
		if v, ok := c.documents[iri]; ok {
			return v, nil
		}
	}
	e := invalid("the context %s is unknown, and contexts are never fetched", strings.Trim(excerpt([]byte(iri)), `"`))
	e.Hint = fmt.Sprintf("Put the context into the document, or have koine started with --jsonld-context %s=FILE.", iri)
	return val{}, e
}

func (o *JSONLDOptions) validate() error {
	if o.MaxBytes < 0 || o.MaxBytes > MaxJSONLDMaxBytes {
		return invalid("MaxBytes of JSON-LD must be between 0 and %d", MaxJSONLDMaxBytes)
	}
	switch o.Direction {
	case "", "i18n-datatype", "compound-literal":
		return nil
	}
	return invalid("%q is not a format for directions", o.Direction)
}

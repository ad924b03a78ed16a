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

// Bounds on reading JSON-LD.
const (
	// DefaultJSONLDMaxBytes bounds what has to be held of a JSON-LD document: an
	// object that is not in streaming order, or one value.
	DefaultJSONLDMaxBytes = 64 << 20
	// MaxJSONLDMaxBytes bounds what that bound may be set to.
	MaxJSONLDMaxBytes = 1 << 30
	// DefaultJSONLDHolders bounds how many documents are read at a time of which
	// more than a mebibyte is held.
	DefaultJSONLDHolders = 1
	// DefaultJSONLDWait bounds how long a document waits for a place to hold much.
	DefaultJSONLDWait = time.Minute
	// MaxContextBytes bounds a context file.
	MaxContextBytes = 16 << 20
)

// retryHolder is when it is worth to try again.
const retryHolder = 10 * time.Second

// JSONLDOptions say how JSON-LD is read. The zero JSONLDOptions work.
type JSONLDOptions struct {
	// MaxBytes bounds what has to be held of a document; 0 means
	// DefaultJSONLDMaxBytes.
	MaxBytes int64
	// Holders, if set, bounds how many documents hold much at a time.
	Holders *JSONLDHolders
	// Contexts stand for those that would have to be fetched.
	Contexts *JSONLDContexts
	// Context is the IRI of a context that comes before the document's own, ""
	// for none: that of an HTTP Link header.
	Context string
	// Direction says what becomes of @direction, which RDF 1.1 literals do not
	// have: "i18n-datatype", "compound-literal", or "" to leave it out.
	Direction string
	// Dropped, if set, is told of each entry that the specification leaves out
	// because its key means no IRI.
	Dropped func(*SyntaxError)
}

// JSONLDHolders are places for documents that hold more than a mebibyte.
type JSONLDHolders struct {
	// Wait bounds how long a document waits for a place; 0 means DefaultJSONLDWait.
	Wait   time.Duration
	places chan struct{}
}

// NewJSONLDHolders makes n places.
func NewJSONLDHolders(n int) *JSONLDHolders {
	return &JSONLDHolders{places: make(chan struct{}, n)}
}

// take waits for a place. CodeOverloaded says that none came free in time.
func (h *JSONLDHolders) take(ctx context.Context) error {
	if h == nil {
		return nil
	}
	wait := cmp.Or(h.Wait, DefaultJSONLDWait)
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case h.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
	}
	e := kg.Errorf(kg.CodeOverloaded, "other JSON-LD documents of which much is held are being read, and none ended in %v", wait)
	e.Hint = "Try again later, put the document into streaming order (in each object @context first, then @type and @id, then the rest), or send N-Quads."
	e.RetryAfter = retryHolder
	return e
}

func (h *JSONLDHolders) give() {
	if h != nil {
		<-h.places
	}
}

// JSONLDContexts are documents with contexts, by their IRIs. Nothing is ever
// fetched: a context is in the document or among these.
type JSONLDContexts struct {
	documents map[string]val
	digest    string
}

// Add takes the text of a context document.
func (c *JSONLDContexts) Add(iri string, text []byte) error {
	if _, err := kg.ParseIRI(iri); err != nil {
		return err
	}
	if len(text) > MaxContextBytes {
		return tooLong("the context %s has more than %d bytes", iri, MaxContextBytes)
	}
	s := newJSONScanner(context.Background(), bytes.NewReader(text), MaxContextBytes)
	v, err := s.value()
	if err == nil {
		v = v.clone()
		err = s.ended()
	}
	if err != nil {
		return kg.Errorf(kg.CodeOf(err), "the context %s, line %d: %s", iri, s.countLines(s.pos), message(err))
	}
	if !v.isObject() {
		return invalid("the context %s is not a JSON object with @context", iri)
	}
	if _, ok := v.entry("@context"); !ok {
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

// Digest is a name of the contexts, as they were added; "" for none.
func (c *JSONLDContexts) Digest() string {
	if c == nil {
		return ""
	}
	return c.digest
}

// Has tells whether there is a context of this IRI.
func (c *JSONLDContexts) Has(iri string) bool {
	_, err := c.document(iri)
	return err == nil
}

func (c *JSONLDContexts) document(iri string) (val, error) {
	if c != nil {
		if v, ok := c.documents[iri]; ok {
			return v, nil
		}
	}
	e := invalid("the context %s is not known, and contexts are never fetched", strings.Trim(excerpt([]byte(iri)), `"`))
	e.Hint = fmt.Sprintf("Put the context into the document, or have koine started with --jsonld-context %s=FILE.", iri)
	return val{}, e
}

func (o *JSONLDOptions) valid() error {
	if o.MaxBytes < 0 || o.MaxBytes > MaxJSONLDMaxBytes {
		return invalid("between 0 and %d bytes of a JSON-LD document can be held", MaxJSONLDMaxBytes)
	}
	switch o.Direction {
	case "", "i18n-datatype", "compound-literal":
		return nil
	}
	return invalid("%q is no way to write directions", o.Direction)
}

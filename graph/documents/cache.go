// Package documents turns the document of a request into one that is valid in the
// schema. A request has the text, the id of a trusted document, or the hash of one
// that was sent before. Begin with Cache.DocumentOf.
//
// A document is parsed, checked against the limits, brought into the long form
// (shorthand.go) and validated. Its errors get hints of package hint. Valid
// documents are cached and must not be changed.
package documents

import (
	"koine/graph/internal/fault"
	"koine/graph/internal/hint"
	"koine/graph/limit"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Bounds of the cache of parsed documents. Longer queries are parsed each
// time.
const (
	DefaultCachedDocuments = 500
	maxCachedQueryBytes    = 16 << 10
)

// Cache parses and validates queries and caches the most recently used. It
// is safe for concurrent use. Returned documents must not be changed.
type Cache struct {
	schema    *ast.Schema
	shorthand *shorthand
	rules     *rules.Rules
	limits    limit.Limits
	max       int

	trusted     *Trusted // nil if there are none
	onlyTrusted bool
	Persisted   *Persisted

	mu sync.Mutex // guards young and old
	// The cache has two generations. A hit in the old one moves the document
	// to the young one, and a full young one becomes the old one.
	young, old map[string]*Document
}

// Document is a valid document. It must not be changed.
type Document struct {
	*ast.QueryDocument
	// Derived holds what follows from a field of the document, the schema and the options of the
	// server alone, by its *ast.Field. It is dropped with the document.
	Derived sync.Map
}

// Options say which documents are executed.
type Options struct {
	Cached      int      // parsed documents; 0 means DefaultCachedDocuments
	Trusted     *Trusted // nil if there are none
	OnlyTrusted bool     // refuse every other document
}

// NewCache returns an empty cache of documents for a schema.
func NewCache(schema *ast.Schema, limits limit.Limits, o *Options, persisted *Persisted) *Cache {
	d := &Cache{
		schema: schema, shorthand: newShorthand(schema), rules: rules.NewDefaultRules(), limits: limits, max: o.Cached,
		trusted: o.Trusted, onlyTrusted: o.OnlyTrusted, Persisted: persisted,
		young: map[string]*Document{},
	}
	if d.max <= 0 {
		d.max = DefaultCachedDocuments
	}
	return d
}

// get returns the valid document of a query text, or its errors.
func (d *Cache) get(query string) (*Document, gqlerror.List) {
	if doc := d.lookUp(query); doc != nil {
		return doc, nil
	}
	parsed, errs := d.parse(query)
	doc := &Document{QueryDocument: parsed}
	if len(errs) == 0 && len(query) <= maxCachedQueryBytes {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.addYoung(query, doc)
	}
	return doc, errs
}

func (d *Cache) lookUp(query string) *Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	if doc := d.young[query]; doc != nil {
		return doc
	}
	doc := d.old[query]
	if doc != nil {
		d.addYoung(query, doc)
	}
	return doc
}

// addYoung puts a document into the young generation. d.mu is held.
func (d *Cache) addYoung(query string, doc *Document) {
	if len(d.young) >= (d.max+1)/2 {
		d.old, d.young = d.young, map[string]*Document{}
	}
	d.young[strings.Clone(query)] = doc
}

// parse orders the checks from cheap to expensive: the limits on tokens and
// shape come before the validation rules, some of which compare each field
// with each other.
func (d *Cache) parse(query string) (*ast.QueryDocument, gqlerror.List) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, d.limits.Tokens)
	if err != nil {
		return nil, gqlerror.List{d.parseError(query, err)}
	}
	if len(doc.Operations) == 0 {
		err := gqlerror.Errorf("the document has no operation")
		errcode.Set(err, errcode.ValidationFailed)
		return nil, gqlerror.List{err}
	}
	if err := d.limits.CheckShape(doc); err != nil {
		return nil, gqlerror.List{{Message: err.Message, Err: err}}
	}
	conditions := d.shorthand.expandDocument(doc)
	keepArgumentTexts(doc)
	errs := validator.ValidateWithRules(d.schema, doc, d.rules)
	if len(errs) == 0 {
		d.shorthand.declareVariables(conditions)
	}
	for _, err := range errs {
		errcode.Set(err, errcode.ValidationFailed)
		hint.AddNames(d.schema, doc, err)
	}
	if len(errs) > 0 {
		hint.AddForms(d.schema, doc, errs)
	}
	return doc, errs
}

// ExpandVariables returns the variables of a request in the long form. The
// limits hold for that form, too.
func (d *Cache) ExpandVariables(op *ast.OperationDefinition, given map[string]any) (map[string]any, error) {
	long, changed, err := d.shorthand.expandVariables(op, given)
	if err == nil && changed {
		err = d.limits.CheckVariables(long)
	}
	return long, err
}

func (d *Cache) parseError(query string, err error) *gqlerror.Error {
	g, ok := err.(*gqlerror.Error)
	if !ok {
		g = gqlerror.Errorf("%v", err)
	}
	if strings.HasPrefix(g.Message, "exceeded token limit") {
		return &gqlerror.Error{Message: g.Message, Err: limit.Exceeded("tokens", "the query has more than %d tokens", d.limits.Tokens).
			WithHint("Send the large parts as variables, or split the query.")}
	}
	errcode.Set(g, errcode.ParseFailed)
	if text := hint.OfSyntax(d.schema, query, g.Message); text != "" {
		fault.SetExtension(g, "hint", text)
	}
	return g
}

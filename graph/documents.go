package graph

import (
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

// documents parses and validates queries and caches the most recently used. It
// is safe for concurrent use. Returned documents must not be changed.
type documents struct {
	schema    *ast.Schema
	shorthand *shorthand
	rules     *rules.Rules
	limits    Limits
	max       int

	trusted     *TrustedDocuments // nil if there are none
	onlyTrusted bool
	persisted   *persisted

	mu sync.Mutex // guards young and old
	// The cache has two generations. A hit in the old one moves the document
	// to the young one, and a full young one becomes the old one.
	young, old map[string]*ast.QueryDocument
}

func newDocuments(schema *ast.Schema, limits Limits, o *Options, persisted *persisted) *documents {
	d := &documents{
		schema: schema, shorthand: newShorthand(schema), rules: rules.NewDefaultRules(), limits: limits, max: o.CachedDocuments,
		trusted: o.Trusted, onlyTrusted: o.OnlyTrusted, persisted: persisted,
		young: map[string]*ast.QueryDocument{},
	}
	if d.max <= 0 {
		d.max = DefaultCachedDocuments
	}
	return d
}

// get returns the valid document of a query text, or its errors.
func (d *documents) get(query string) (*ast.QueryDocument, gqlerror.List) {
	if doc := d.lookUp(query); doc != nil {
		return doc, nil
	}
	doc, errs := d.parse(query)
	if len(errs) == 0 && len(query) <= maxCachedQueryBytes {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.addYoung(query, doc)
	}
	return doc, errs
}

func (d *documents) lookUp(query string) *ast.QueryDocument {
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
func (d *documents) addYoung(query string, doc *ast.QueryDocument) {
	if len(d.young) >= (d.max+1)/2 {
		d.old, d.young = d.young, map[string]*ast.QueryDocument{}
	}
	d.young[strings.Clone(query)] = doc
}

// parse orders the checks from cheap to expensive: the limits on tokens and
// shape come before the validation rules, some of which compare each field
// with each other.
func (d *documents) parse(query string) (*ast.QueryDocument, gqlerror.List) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, d.limits.Tokens)
	if err != nil {
		return nil, gqlerror.List{d.parseError(query, err)}
	}
	if len(doc.Operations) == 0 {
		err := gqlerror.Errorf("the document has no operation")
		errcode.Set(err, errcode.ValidationFailed)
		return nil, gqlerror.List{err}
	}
	if err := d.limits.checkShape(doc); err != nil {
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
		hintNames(d.schema, doc, err)
	}
	if len(errs) > 0 {
		hintForms(d.schema, doc, errs)
	}
	return doc, errs
}

// expandVariables returns the variables of a request in the long form. The
// limits hold for that form, too.
func (d *documents) expandVariables(op *ast.OperationDefinition, given map[string]any) (map[string]any, error) {
	long, changed, err := d.shorthand.expandVariables(op, given)
	if err == nil && changed {
		err = d.limits.checkVariables(long)
	}
	return long, err
}

func (d *documents) parseError(query string, err error) *gqlerror.Error {
	g, ok := err.(*gqlerror.Error)
	if !ok {
		g = gqlerror.Errorf("%v", err)
	}
	if strings.HasPrefix(g.Message, "exceeded token limit") {
		return &gqlerror.Error{Message: g.Message, Err: limitError("tokens", "the query has more than %d tokens", d.limits.Tokens).
			withHint("Send the large parts as variables, or split the query.")}
	}
	errcode.Set(g, errcode.ParseFailed)
	if text := syntaxHint(d.schema, query, g.Message); text != "" {
		setExtension(g, "hint", text)
	}
	return g
}

package hint

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/internal/fault"
	"koine/internal/suggest"
)

// A document that is wrong gets, with each error, the form that is right. It
// is made of the schema and of the document alone, which the caller knows;
// nothing is read from the store. The few words that are not in the schema are
// those of other GraphQL servers, and a hint is given only if the schema has
// what it names.

// Bounds of these hints.
const (
	maxFormHints  = 20 // errors of a document that get one
	maxShownBytes = 60 // of a name or value of the document in a hint
	maxShownNames = 40 // fields or members in a hint
	maxLeaves     = 3  // fields in an example of a selection
)

// formHinter finds the right form for the mistakes in a document.
type formHinter struct {
	schema    *ast.Schema
	fields    map[place]fieldAt
	members   map[place]memberAt
	values    map[place]valueAt
	fragments map[string]bool
	doc       *ast.QueryDocument
}

// place is a place in the text. It connects an error and a field or value.
type place struct{ line, column int }

func placeOf(p *ast.Position) place { return place{p.Line, p.Column} }

// fieldAt is a field with the one around it, nil for a root field.
type fieldAt struct {
	field, around *ast.Field
}

// memberAt is a member of an object, which is to be of a type.
type memberAt struct {
	member *ast.ChildValue
	of     *ast.Definition
}

// valueAt is a value with the name of the argument or member that it is given
// for.
type valueAt struct {
	value *ast.Value
	name  string
}

// AddForms adds the right form to the errors of a document that has been
// validated.
func AddForms(schema *ast.Schema, doc *ast.QueryDocument, errs gqlerror.List) {
	h := &formHinter{
		schema: schema, doc: doc, fields: map[place]fieldAt{}, members: map[place]memberAt{}, values: map[place]valueAt{},
		fragments: map[string]bool{},
	}
	for _, op := range doc.Operations {
		for _, v := range op.VariableDefinitions {
			h.noteValue(v.DefaultValue, v.Variable)
		}
		h.noteSet(op.SelectionSet, nil)
	}
	for i, err := range errs {
		if i == maxFormHints {
			return
		}
		if err.Extensions["hint"] != nil || len(err.Locations) == 0 {
			continue
		}
		if text := h.formOf(err); text != "" {
			fault.SetExtension(err, "hint", text)
			dropGuess(err, text)
		}
	}
}

var guesses = regexp.MustCompile(` Did you mean "(\w+)"(?:[^?]*"(\w+)")?\?$`)

// dropGuess takes the library's guess out of a message if the hint names
// something else: it is the name with the nearest letters, such as `after` for
// `filter`.
func dropGuess(err *gqlerror.Error, hint string) {
	guessed := guesses.FindStringSubmatchIndex(err.Message)
	if guessed == nil {
		return
	}
	for i := 2; i < len(guessed); i += 2 {
		if guessed[i] >= 0 && strings.Contains(hint, err.Message[guessed[i]:guessed[i+1]]) {
			return
		}
	}
	err.Message = err.Message[:guessed[0]]
}

// noteSet notes the places of fields and values. The number of fields is
// bounded before validation.
func (h *formHinter) noteSet(set ast.SelectionSet, around *ast.Field) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			h.fields[placeOf(sel.Position)] = fieldAt{sel, around}
			for _, a := range sel.Arguments {
				h.noteValue(a.Value, a.Name)
			}
			h.noteSet(sel.SelectionSet, sel)
		case *ast.InlineFragment:
			h.noteSet(sel.SelectionSet, around)
		case *ast.FragmentSpread:
			if f := h.doc.Fragments.ForName(sel.Name); f != nil && !h.fragments[sel.Name] {
				h.fragments[sel.Name] = true
				h.noteSet(f.SelectionSet, around)
			}
		}
	}
}

func (h *formHinter) noteValue(v *ast.Value, name string) {
	if v == nil {
		return
	}
	if v.Position != nil {
		h.values[placeOf(v.Position)] = valueAt{v, name}
	}
	for _, child := range v.Children {
		inner := name
		if v.Kind == ast.ObjectValue {
			inner = child.Name
			if child.Position != nil {
				h.members[placeOf(child.Position)] = memberAt{child, v.Definition}
			}
		}
		h.noteValue(child.Value, inner)
	}
}

var unknownArgument = regexp.MustCompile(`^Unknown argument "(\w+)" on field`)

// formOf returns the hint for an error of validation, "" for none.
func (h *formHinter) formOf(err *gqlerror.Error) string {
	at := place{err.Locations[0].Line, err.Locations[0].Column}
	field, isField := h.fields[at]
	switch err.Rule {
	case "FieldsOnCorrectType":
		if isField && field.field.ObjectDefinition != nil {
			return h.formOfField(field)
		}
	case "KnownArgumentNames":
		if name := unknownArgument.FindStringSubmatch(err.Message); name != nil && isField && field.field.Definition != nil {
			return h.formOfArgument(field, field.field.Arguments.ForName(name[1]))
		}
	case "ProvidedRequiredArguments":
		if isField && field.field.Definition != nil {
			return "Write " + signatureOf(field.field.Definition) + "."
		}
	case "ScalarLeafs":
		if isField && field.field.Definition != nil {
			return h.formOfSelection(field.field)
		}
	case "ValuesOfCorrectType":
		return h.formOfValue(at, err.Message)
	case "VariablesInAllowedPosition":
		v, ok := h.values[at]
		if ok && v.value.Kind == ast.Variable && v.value.ExpectedType != nil && h.schema.Types[v.value.VariableDefinition.Type.Name()] != nil {
			return fmt.Sprintf("Declare $%s as %s.", shorten(v.value.Raw), v.value.ExpectedType)
		}
	}
	return ""
}

// formOfSelection shows how a field is selected: a leaf without braces, an
// object with some of its fields.
func (h *formHinter) formOfSelection(f *ast.Field) string {
	of := h.schema.Types[f.Definition.Type.Name()]
	if of == nil {
		return ""
	}
	if of.IsLeafType() {
		return fmt.Sprintf("Write %s without { … }: it is a %s.", f.Name, of.Name)
	}
	if id := idBeside(f); id != "" {
		return fmt.Sprintf("Write %s, or %s %s.", id, f.Name, h.exampleOf(of))
	}
	return fmt.Sprintf("Write %s %s.", f.Name, h.exampleOf(of))
}

// idBeside returns the field with the id or the ids of an object, "" for none.
func idBeside(f *ast.Field) string {
	if f.ObjectDefinition == nil {
		return ""
	}
	for _, name := range []string{f.Name + "Id", strings.TrimSuffix(f.Name, "s") + "Ids"} {
		if f.ObjectDefinition.Fields.ForName(name) != nil {
			return name
		}
	}
	return ""
}

// exampleOf returns a selection of a few fields of a type.
func (h *formHinter) exampleOf(of *ast.Definition) string {
	if inner := h.elementsOf(of); inner != nil {
		return "{ nodes " + h.exampleOf(inner) + " }"
	}
	if of.Kind == ast.Union {
		if possible := h.schema.GetPossibleTypes(of); len(possible) > 0 {
			return "{ ... on " + possible[0].Name + " " + h.exampleOf(possible[0]) + " }"
		}
	}
	var leaves []string
	for _, f := range of.Fields {
		if t := h.schema.Types[f.Type.Name()]; t != nil && t.IsLeafType() && !needsArguments(f) && !strings.HasPrefix(f.Name, "__") {
			if leaves = append(leaves, f.Name); len(leaves) == maxLeaves {
				break
			}
		}
	}
	if len(leaves) == 0 {
		return "{ __typename }"
	}
	return "{ " + strings.Join(leaves, " ") + " }"
}

// elementsOf returns the type of the elements of a connection, nil for other
// types.
func (h *formHinter) elementsOf(of *ast.Definition) *ast.Definition {
	if nodes := of.Fields.ForName("nodes"); nodes != nil && of.Fields.ForName("pageInfo") != nil {
		return h.schema.Types[nodes.Type.Name()]
	}
	return nil
}

// formOfField shows where a field is that its type does not have.
func (h *formHinter) formOfField(at fieldAt) string {
	f, of := at.field, at.field.ObjectDefinition
	if at.around == nil && h.isRoot(of) {
		return h.formOfRoot(f, of)
	}
	if to := meant(f.Name, fieldWords, inMembers(of.Fields)); to != "" {
		return "Write " + h.inside(at.around, h.selectedField(of.Fields.ForName(to))) + "."
	}
	if near := suggest.Name(f.Name, fieldNames(of.Fields)); near != "" {
		return "Write " + h.inside(at.around, h.selectedField(of.Fields.ForName(near))) + "."
	}
	if found, on := h.fieldOf(of, f.Name); found != nil {
		return "Write " + h.inside(at.around, "... on "+on.Name+" { "+h.selectedField(found)+" }") + "."
	}
	if value := of.Fields.ForName("value"); value != nil && value.Arguments.ForName("predicate") != nil {
		return fmt.Sprintf("%s has no field for each property of the data: write %s: value(predicate: \"prefix:%s\"). Its fields are %s.",
			of.Name, shorten(f.Name), shorten(f.Name), namesOf(of.Fields))
	}
	if plain(f.Name) == plain(of.Name) && at.around != nil {
		return fmt.Sprintf("%s is the %s: write %s.", at.around.Name, of.Name, h.inside(at.around, "…"))
	}
	if way := h.wayTo(of, f.Name); way != nil {
		form := h.selectedField(way[len(way)-1].field)
		for i := len(way) - 2; i >= 0; i-- {
			if way[i+1].on != nil {
				form = "... on " + way[i+1].on.Name + " { " + form + " }"
			}
			form = way[i].field.Name + " { " + form + " }"
		}
		return "Write " + h.inside(at.around, form) + "."
	}
	if of.Kind == ast.Union {
		var types []string
		for _, possible := range h.schema.GetPossibleTypes(of) {
			types = append(types, "... on "+possible.Name)
		}
		return fmt.Sprintf("%s is a union: select its fields in %s.", of.Name, strings.Join(types, " or "))
	}
	if len(of.Fields) == 0 {
		return ""
	}
	return fmt.Sprintf("The fields of %s are %s.", of.Name, namesOf(of.Fields))
}

// fieldWords are fields of other GraphQL servers, as argumentWords.
var fieldWords = map[string][]string{
	"uri": {"iri", "id"}, "url": {"iri", "id"}, "uid": {"iri", "id"}, "id": {"iri"}, "name": {"label"}, "title": {"label"}, "type": {"types", "kind"}, "class": {"types"}, "classes": {"types"},
	"count": {"totalCount"}, "total": {"totalCount"}, "size": {"totalCount"}, "aggregate": {"totalCount"}, "items": {"nodes"}, "results": {"nodes"}, "data": {"nodes"},
	"confidence": {"certainty"}, "source": {"assertedBy"}, "sources": {"assertedBy"}, "createdat": {"recordedAt"}, "timestamp": {"recordedAt", "time"}, "text": {"content"},
	"outgoing": {"out"}, "incoming": {"in"}, "edges": {"out"}, "relationships": {"out"}, "properties": {"out"}, "statements": {"out"},
}

// selectedField returns a field as it is selected.
func (h *formHinter) selectedField(f *ast.FieldDefinition) string {
	if t := h.schema.Types[f.Type.Name()]; t != nil && t.IsCompositeType() {
		return f.Name + " { … }"
	}
	return f.Name
}

// inside returns a selection with the field around it.
func (h *formHinter) inside(around *ast.Field, form string) string {
	if around == nil {
		return form
	}
	return around.Name + " { " + form + " }"
}

func (h *formHinter) isRoot(of *ast.Definition) bool {
	return of == h.schema.Query || of == h.schema.Mutation || of == h.schema.Subscription
}

// step is a field on the way to another one. on is the type that has it, if
// the field before is of an abstract type without it.
type step struct {
	field *ast.FieldDefinition
	on    *ast.Definition
}

// wayTo returns the shortest way from a type to a field of that name, through
// at most two other fields; `nodes` is preferred.
func (h *formHinter) wayTo(of *ast.Definition, name string) []step {
	for depth := 1; depth <= 2; depth++ {
		if way := h.wayWithin(of, name, depth); way != nil {
			return way
		}
	}
	return nil
}

func (h *formHinter) wayWithin(of *ast.Definition, name string, depth int) []step {
	for _, f := range nodesFirst(of.Fields) {
		inner := h.schema.Types[f.Type.Name()]
		if inner == nil || !inner.IsCompositeType() || needsArguments(f) || strings.HasPrefix(f.Name, "__") || inner == of {
			continue
		}
		if found, on := h.fieldOf(inner, name); found != nil {
			return []step{{f, nil}, {found, on}}
		}
		if depth > 1 && (f.Name == "nodes" || f.Name == "edges") {
			if way := h.wayWithin(inner, name, depth-1); way != nil {
				return append([]step{{f, nil}}, way...)
			}
		}
	}
	return nil
}

// fieldOf returns the field of a type, or of the first type that it may be: the first
// one whose field takes no arguments, which is right as the hint writes it.
func (h *formHinter) fieldOf(of *ast.Definition, name string) (found *ast.FieldDefinition, on *ast.Definition) {
	if found = of.Fields.ForName(name); found != nil || !of.IsAbstractType() {
		return found, nil
	}
	for _, possible := range h.schema.GetPossibleTypes(of) {
		f := possible.Fields.ForName(name)
		if f != nil && (found == nil || len(found.Arguments) > 0 && len(f.Arguments) == 0) {
			found, on = f, possible
		}
	}
	return found, on
}

func nodesFirst(list ast.FieldList) ast.FieldList {
	nodes := list.ForName("nodes")
	if nodes == nil {
		return list
	}
	return append(ast.FieldList{nodes}, list...)
}

func needsArguments(f *ast.FieldDefinition) bool {
	for _, a := range f.Arguments {
		if a.Type.NonNull && a.DefaultValue == nil {
			return true
		}
	}
	return false
}

// otherLanguage finds the first word of a query in SPARQL or Cypher.
var otherLanguage = regexp.MustCompile(`(?i)^Unexpected Name "(SELECT|ASK|CONSTRUCT|DESCRIBE|PREFIX|BASE|MATCH|OPTIONAL|RETURN|WITH|CREATE|MERGE|INSERT|DELETE)"$`)

// OfSyntax returns the hint for a document that is no GraphQL, "" for none.
func OfSyntax(schema *ast.Schema, query, message string) string {
	switch {
	case otherLanguage.MatchString(message) && schema.Query.Fields.ForName("match") != nil:
		return `The language is GraphQL. A pattern as in SPARQL is { match(pattern: {triples: [{s: "?s", p: "prefix:name", o: "?o"}]}) { nodes { values } } }.`
	case strings.HasPrefix(strings.TrimSpace(query), "```"):
		return "Send the document without the lines that begin with ```."
	case message == "Expected Name, found String":
		return "Names of fields, arguments and members are written without quotes: { entities(where: {label: \"Water\"}) { totalCount } }."
	case message == "Unexpected <Invalid>" && strings.Contains(query, "'"):
		return "Texts are written in double quotes."
	case message == "expected at least one definition, found )", message == "expected at least one definition, found }":
		return "Leave ( ) and { } out where nothing is between them."
	}
	return ""
}

// signatureOf returns a field with its arguments and their types.
func signatureOf(f *ast.FieldDefinition) string {
	if len(f.Arguments) == 0 {
		return f.Name
	}
	var list []string
	for _, a := range f.Arguments {
		list = append(list, a.Name+": "+a.Type.String())
	}
	return f.Name + "(" + strings.Join(list, ", ") + ")"
}

func fieldNames(list ast.FieldList) (names []string) {
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func namesOf(list ast.FieldList) string {
	var names []string
	for _, f := range list {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		if len(names) == maxShownNames {
			names = append(names, "…")
			break
		}
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// shorten bounds a name or value of the document.
func shorten(text string) string {
	if len(text) <= maxShownBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxShownBytes], "") + "…"
}

// RequiresMore reports whether an input type has a member other than `eq` that
// must be given.
func RequiresMore(def *ast.Definition) bool {
	for _, f := range def.Fields {
		if f.Type.NonNull && f.DefaultValue == nil && f.Name != "eq" {
			return true
		}
	}
	return false
}

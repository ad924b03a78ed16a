package hint

import (
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/suggest"
)

// argumentWords are arguments of other GraphQL servers, in lower case and
// without underscores, with those that are meant, the likeliest first.
var argumentWords = map[string][]string{
	"filter": {"where"}, "filters": {"where"}, "filterby": {"where"}, "condition": {"where"}, "conditions": {"where"}, "criteria": {"where"}, "matching": {"where"},
	"limit": {"first"}, "take": {"first"}, "top": {"first"}, "count": {"first"}, "size": {"first"}, "pagesize": {"first"}, "perpage": {"first"}, "max": {"first"}, "maxresults": {"first"}, "n": {"first"},
	"cursor": {"after", "resume"}, "startcursor": {"after"}, "endcursor": {"after"}, "pagetoken": {"after"}, "nexttoken": {"after"}, "startafter": {"after"},
	"order": {"orderBy"}, "sort": {"orderBy"}, "sortby": {"orderBy"}, "ordering": {"orderBy"},
	"id": {"iri"}, "ids": {"iri"}, "uri": {"iri", "id"}, "url": {"iri", "id"}, "uid": {"iri", "id"}, "identifier": {"iri", "id"}, "resource": {"iri", "id"}, "iri": {"id"}, "entity": {"iri"}, "name": {"iri", "id"}, "subject": {"iri"},
	"property": {"predicate", "path"}, "attribute": {"predicate", "path"}, "key": {"predicate", "path"}, "field": {"predicate", "path"},
	"source": {"from"}, "start": {"from", "since"}, "target": {"to"}, "end": {"to", "until"},
	"depth": {"depth", "maxDepth"}, "maxhops": {"maxDepth"}, "hops": {"maxDepth"}, "maxlength": {"maxDepth"}, "length": {"maxDepth"},
	"lang": {"language"}, "language": {"lang"},
	"data": {"input"}, "object": {"input"}, "objects": {"input"}, "set": {"input"}, "values": {"input"}, "patch": {"input"},
}

// memberWords are members of the filters and views of other GraphQL servers.
var memberWords = map[string][]string{
	"id": {"iri"}, "uri": {"iri"}, "url": {"iri"}, "uid": {"iri"}, "identifier": {"iri"}, "name": {"label"}, "title": {"label"},
	"class": {"type"}, "types": {"type"}, "kind": {"type"}, "typename": {"type"}, "rdftype": {"type"}, "properties": {"property"}, "all": {"and"}, "any": {"or"}, "none": {"not"},
	"s": {"subject"}, "p": {"predicate"}, "o": {"object"}, "g": {"graph"}, "source": {"assertedBy"}, "confidence": {"certainty"}, "time": {"recordedAt"}, "createdat": {"recordedAt"},
	"asof": {"at"}, "timestamp": {"at"}, "revision": {"at"}, "order": {"direction"}, "key": {"by"}, "field": {"by"}, "column": {"by"},
}

// pageWords are arguments of lists that are read from a number on.
var pageWords = map[string]bool{"offset": true, "skip": true, "page": true, "pagenumber": true, "startindex": true, "from": true}

// textWords are arguments of searches for a text.
var textWords = map[string]bool{"text": true, "query": true, "q": true, "search": true, "term": true, "keyword": true, "keywords": true, "contains": true, "fulltext": true}

// operatorWords are operators of other GraphQL servers, with those that are
// meant.
var operatorWords = map[string][]string{
	"equals": {"eq"}, "equal": {"eq"}, "equalto": {"eq"}, "is": {"eq"}, "value": {"eq"},
	"not": {"ne"}, "neq": {"ne"}, "notequals": {"ne"}, "notequal": {"ne"}, "isnot": {"ne"},
	"notin": {"nin"}, "oneof": {"in"}, "anyof": {"in"},
	"greaterthan": {"gt"}, "greater": {"gt"}, "less": {"lt"}, "after": {"gt"}, "lessthan": {"lt"}, "before": {"lt"},
	"ge": {"gte"}, "greaterthanorequal": {"gte"}, "atleast": {"gte"}, "min": {"gte"}, "since": {"gte"}, "from": {"gte"},
	"le": {"lte"}, "lessthanorequal": {"lte"}, "atmost": {"lte"}, "max": {"lte"}, "until": {"lte"},
	"like": {"contains"}, "ilike": {"contains"}, "icontains": {"contains"}, "includes": {"contains"}, "search": {"contains"},
	"anyofterms": {"contains"}, "allofterms": {"contains"}, "anyoftext": {"contains"}, "alloftext": {"contains"},
	"beginswith": {"startsWith"}, "prefix": {"startsWith"}, "istartswith": {"startsWith"}, "suffix": {"endsWith"}, "iendswith": {"endsWith"},
	"regexp": {"regex"}, "matches": {"regex"}, "match": {"regex"}, "pattern": {"regex"}, "iregex": {"regex"}, "similar": {"regex"},
	"isnull": {"exists"}, "null": {"exists"}, "notnull": {"exists"}, "isset": {"exists"}, "present": {"exists"}, "has": {"exists"},
}

// plain returns a name in the form of the words above.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// meant returns the one of some names that another one stands for: the same
// but for case and underscores, or the first that words has for it.
func meant(name string, words map[string][]string, has func(string) string) string {
	if same := has(plain(name)); same != "" {
		return same
	}
	for _, word := range words[plain(name)] {
		if same := has(plain(word)); same != "" {
			return same
		}
	}
	return ""
}

func inArguments(list ast.ArgumentDefinitionList) func(string) string {
	return func(name string) string {
		for _, a := range list {
			if plain(a.Name) == name {
				return a.Name
			}
		}
		return ""
	}
}

func inMembers(list ast.FieldList) func(string) string {
	return func(name string) string {
		for _, f := range list {
			if plain(f.Name) == name {
				return f.Name
			}
		}
		return ""
	}
}

// formOfArgument shows the argument that a field has for an unknown one.
func (h *formHinter) formOfArgument(at fieldAt, a *ast.Argument) string {
	f := at.field
	if a == nil {
		return ""
	}
	list := f.Definition.Arguments
	if textWords[plain(a.Name)] {
		if form := h.searchIn(f.Definition, a.Value); form != "" {
			return "Write " + form + "."
		}
	}
	if pageWords[plain(a.Name)] && list.ForName("after") != nil {
		return fmt.Sprintf("Write %s(first: 25), then %s(first: 25, after: …) with pageInfo { endCursor } of the page before.", f.Name, f.Name)
	}
	if name := meant(a.Name, argumentWords, inArguments(list)); name != "" {
		to := list.ForName(name)
		return fmt.Sprintf("Write %s(%s: %s).%s", f.Name, name, h.writeValue(a.Value, to.Type), h.membersOf(to.Type))
	}
	if form := h.memberOfArguments(list, a); form != "" {
		return fmt.Sprintf("Write %s(%s).", f.Name, form)
	}
	if around := at.around; around != nil && around.Definition != nil {
		if name := meant(a.Name, argumentWords, inArguments(around.Definition.Arguments)); name != "" {
			to := around.Definition.Arguments.ForName(name)
			return fmt.Sprintf("Write %s(%s: %s) { %s }.", around.Name, name, h.writeValue(a.Value, to.Type), f.Name)
		}
	}
	var names []string
	for _, to := range list {
		names = append(names, to.Name)
	}
	if near := suggest.Name(a.Name, names); near != "" {
		return fmt.Sprintf("Write %s(%s: %s).", f.Name, near, h.writeValue(a.Value, list.ForName(near).Type))
	}
	if len(list) == 0 {
		return f.Name + " has no arguments."
	}
	return "Write " + signatureOf(f.Definition) + "."
}

// memberOfArguments shows an argument that is a member of another one, such as
// a condition of `where`.
func (h *formHinter) memberOfArguments(list ast.ArgumentDefinitionList, a *ast.Argument) string {
	for _, to := range list {
		of := h.schema.Types[to.Type.Name()]
		if of == nil || of.Kind != ast.InputObject {
			continue
		}
		if form := h.memberIn(of, a.Name, a.Value); form != "" {
			return to.Name + ": {" + form + "}"
		}
	}
	return ""
}

// searchIn shows how a field finds a text: by the label of its entities.
func (h *formHinter) searchIn(f *ast.FieldDefinition, v *ast.Value) string {
	where := f.Arguments.ForName("where")
	if where == nil {
		return ""
	}
	of := h.schema.Types[where.Type.Name()]
	if of == nil || of.Fields.ForName("label") == nil {
		return ""
	}
	label := h.schema.Types[of.Fields.ForName("label").Type.Name()]
	if label == nil || label.Fields.ForName("contains") == nil {
		return ""
	}
	return fmt.Sprintf("%s(where: {label: {contains: %s}})", f.Name, h.writeValue(v, label.Fields.ForName("contains").Type))
}

// memberIn shows the member of an input type that an unknown one stands for,
// with its value.
func (h *formHinter) memberIn(of *ast.Definition, name string, v *ast.Value) string {
	words := memberWords
	if of.Fields.ForName("eq") != nil {
		words = operatorWords
	}
	if to := meant(name, words, inMembers(of.Fields)); to != "" {
		return to + ": " + h.writeValue(operand(plain(name), v), of.Fields.ForName(to).Type)
	}
	for _, f := range of.Fields { // label_contains
		rest, ok := strings.CutPrefix(plain(name), plain(f.Name))
		inner := h.schema.Types[f.Type.Name()]
		if !ok || rest == "" || inner == nil || inner.Fields.ForName("eq") == nil {
			continue
		}
		if to := meant(rest, operatorWords, inMembers(inner.Fields)); to != "" {
			return f.Name + ": {" + to + ": " + h.writeValue(operand(rest, v), inner.Fields.ForName(to).Type) + "}"
		}
	}
	if form := h.keyIn(of, name, v); form != "" {
		return form
	}
	for _, f := range of.Fields { // a member of a member that is no condition
		inner := h.schema.Types[f.Type.Name()]
		if inner == nil || inner.Kind != ast.InputObject || inner == of || inner.Fields.ForName("eq") != nil && !RequiresMore(inner) {
			continue
		}
		if to := inner.Fields.ForName(name); to != nil && f.Name != "path" {
			return f.Name + ": {" + name + ": " + h.writeValue(v, to.Type) + "}"
		}
	}
	return ""
}

// operand returns the value for the operator that is meant: a null does
// not exist.
func operand(word string, v *ast.Value) *ast.Value {
	if v != nil && v.Kind == ast.BooleanValue && (word == "isnull" || word == "null") {
		negated := *v
		negated.Raw = fmt.Sprint(v.Raw != "true")
		return &negated
	}
	return v
}

// keyIn shows a sort key: {label: ASC} is {by: LABEL, direction: ASC}.
func (h *formHinter) keyIn(of *ast.Definition, name string, v *ast.Value) string {
	for _, f := range of.Fields {
		keys := h.schema.Types[f.Type.Name()]
		if keys == nil || keys.Kind != ast.Enum {
			continue
		}
		for _, key := range keys.EnumValues {
			if plain(key.Name) != plain(name) {
				continue
			}
			form := f.Name + ": " + key.Name
			if to := of.Fields.ForName("direction"); to != nil && v != nil {
				for _, value := range h.schema.Types[to.Type.Name()].EnumValues {
					if strings.EqualFold(value.Name, v.Raw) {
						form += ", direction: " + value.Name
					}
				}
			}
			return form
		}
	}
	return ""
}

// formOfValue shows the right form of a value or of a member of one.
func (h *formHinter) formOfValue(at place, message string) string {
	if m, ok := h.members[at]; ok && m.of != nil && m.of.Fields.ForName(m.member.Name) == nil && strings.Contains(message, "is not defined by type") {
		return h.formOfMember(m.of, m.member.Name, m.member.Value)
	}
	v, ok := h.values[at]
	if !ok || v.value.Definition == nil || v.value.Definition.Kind != ast.InputObject || v.value.Kind == ast.ObjectValue {
		return ""
	}
	of := v.value.Definition
	if form := h.keyIn(of, v.value.Raw, nil); form != "" {
		return fmt.Sprintf("Write %s: {%s}.", v.name, form)
	}
	return fmt.Sprintf("Write %s: {…}.%s", v.name, h.membersOf(v.value.ExpectedType))
}

// formOfMember shows the right form of an unknown member of an input type.
func (h *formHinter) formOfMember(of *ast.Definition, name string, v *ast.Value) string {
	if form := h.memberIn(of, name, v); form != "" {
		return "Write " + form + "."
	}
	if near := suggest.Name(name, fieldNames(of.Fields)); near != "" {
		return "Write " + near + ": " + h.writeValue(v, of.Fields.ForName(near).Type) + "."
	}
	if f := of.Fields.ForName("property"); f != nil {
		if inner := h.schema.Types[f.Type.Name()]; inner != nil && inner.Fields.ForName("eq") != nil && inner.Fields.ForName("predicate") != nil {
			return fmt.Sprintf("A property of the data is written property: {predicate: \"prefix:%s\", eq: %s}.%s",
				shorten(name), h.writeValue(v, inner.Fields.ForName("eq").Type), h.membersOf(ast.NamedType(of.Name, nil)))
		}
	}
	return strings.TrimSpace(h.membersOf(ast.NamedType(of.Name, nil)))
}

// membersOf names the members of an input type, for the end of a hint.
func (h *formHinter) membersOf(t *ast.Type) string {
	of := h.schema.Types[t.Name()]
	if of == nil || of.Kind != ast.InputObject {
		return ""
	}
	return fmt.Sprintf(" The members of %s are %s.", of.Name, namesOf(of.Fields))
}

// writeValue returns a value of the document where a type is expected.
func (h *formHinter) writeValue(v *ast.Value, t *ast.Type) string {
	of := h.schema.Types[t.Name()]
	isObject := of != nil && of.Kind == ast.InputObject && (of.Fields.ForName("eq") == nil || RequiresMore(of))
	switch {
	case v == nil:
		return "…"
	case v.Kind == ast.ListValue && isObject:
		return "[{…}]"
	case v.Kind == ast.ObjectValue, isObject && v.Kind != ast.Variable:
		if of == nil || of.Kind != ast.InputObject {
			return "…"
		}
		return "{…}"
	case v.Kind == ast.ListValue && t.Elem == nil && !isObject && (of == nil || of.Kind != ast.InputObject):
		return "…"
	}
	if text := v.String(); len(text) <= maxShownBytes {
		return text
	}
	return "…"
}

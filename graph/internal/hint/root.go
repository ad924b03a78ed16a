package hint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/suggest"
)

// rootNoise are words in the names of other servers' root fields that say how
// something is read and not what.
var rootNoise = map[string]bool{
	"get": true, "query": true, "find": true, "list": true, "all": true, "fetch": true, "read": true, "many": true, "one": true, "first": true,
	"unique": true, "by": true, "pk": true, "id": true, "iri": true, "uri": true, "connection": true, "collection": true, "aggregate": true,
	"paginated": true, "my": true, "search": true, "stream": true,
}

// searchWords are root fields of other servers that find a text.
var searchWords = map[string]bool{"find": true, "lookup": true, "fulltext": true, "fulltextsearch": true}

// writeWords are words of mutations, with those that koine's have.
var writeWords = map[string][]string{
	"insert": {"create", "add"}, "create": {"create", "register", "add"}, "add": {"add", "create", "register"}, "update": {"update", "set"}, "upsert": {"update", "set"},
	"set": {"set", "update"}, "merge": {"update"}, "edit": {"update"}, "delete": {"delete", "remove", "revoke"}, "remove": {"remove", "delete", "revoke"},
	"post": {"publish"}, "send": {"send", "publish"}, "write": {"publish"},
	"ban": {"restrict"}, "mute": {"restrict"}, "block": {"restrict"}, "accept": {"answer"}, "decline": {"answer"}, "allow": {"change"}, "forbid": {"change"},
}

// thingWords are words for things that the schema has under another name.
var thingWords = map[string]string{
	"node": "entity", "vertex": "entity", "subject": "entity", "resource": "entity", "thing": "entity", "individual": "entity", "record": "entity", "item": "entity", "concept": "entity",
	"edge": "statement", "triple": "statement", "quad": "statement", "fact": "statement", "relation": "statement", "relationship": "statement", "link": "statement", "assertion": "statement",
	"sparql": "match", "cypher": "match", "pattern": "match", "bgp": "match",
	"viewer": "me", "whoami": "me", "currentuser": "me", "user": "agent", "topic": "channel", "chat": "channel", "thread": "channel", "job": "task",
	"class": "vocabulary", "property": "vocabulary", "predicate": "vocabulary", "ontology": "vocabulary", "prefix": "vocabulary", "namespace": "vocabulary",
	"path": "shortestPaths", "shortestpath": "shortestPaths", "history": "changes", "log": "changes", "commit": "changes", "count": "stats", "statistic": "stats",
}

// formOfRoot shows the root fields that an unknown one may stand for.
func (h *formHinter) formOfRoot(f *ast.Field, of *ast.Definition) string {
	words := wordsOf(f.Name)
	if of == h.schema.Subscription {
		if meant := fieldsSharing(of, words); len(meant) > 0 {
			return "Write " + strings.Join(meant, " or ") + "."
		}
	}
	for _, root := range []struct {
		of   *ast.Definition
		kind string
	}{{h.schema.Query, "query"}, {h.schema.Mutation, "mutation"}, {h.schema.Subscription, "subscription"}} {
		if root.of == nil || root.of == of {
			continue
		}
		if def := root.of.Fields.ForName(f.Name); def != nil {
			return fmt.Sprintf("Write %s { %s }.", root.kind, signatureOf(def))
		}
	}
	if near := suggest.Name(f.Name, fieldNames(of.Fields)); near != "" && singular(near) != singular(f.Name) {
		return "Write " + signatureOf(of.Fields.ForName(near)) + "."
	}
	var meant []string
	switch of {
	case h.schema.Query:
		if searchWords[plain(f.Name)] && of.Fields.ForName("entities") != nil {
			var text *ast.Value
			for _, a := range f.Arguments {
				if text == nil || textWords[plain(a.Name)] {
					text = a.Value
				}
			}
			if form := h.searchIn(of.Fields.ForName("entities"), text); form != "" {
				return "Write " + form + "."
			}
		}
		meant = h.readsOf(f, of, words)
	case h.schema.Mutation:
		meant = h.writesOf(of, words)
	}
	if len(meant) > maxNearest {
		meant = meant[:maxNearest]
	}
	if len(meant) > 0 {
		return "Write " + strings.Join(meant, " or ") + "."
	}
	return fmt.Sprintf("The fields of %s are %s.", of.Name, namesOf(of.Fields))
}

// readsOf returns the root fields of queries for a name, with their arguments.
func (h *formHinter) readsOf(f *ast.Field, of *ast.Definition, words []string) (meant []string) {
	words = slices.DeleteFunc(words, func(word string) bool { return rootNoise[word] })
	whole := strings.Join(words, "")
	for _, def := range of.Fields {
		name := strings.Join(wordsOf(def.Name), "")
		if name == whole || name == plain(thingWords[whole]) || def.Name == thingWords[whole] {
			meant = append(meant, signatureOf(def))
		}
	}
	for _, def := range of.Fields { // a field of the type that a root field returns
		if inner := h.schema.Types[def.Type.Name()]; inner != nil && needsArguments(def) && inner.Fields.ForName(f.Name) != nil {
			meant = append(meant, signatureOf(def)+" { "+h.selectedField(inner.Fields.ForName(f.Name))+" }")
		}
	}
	entities := of.Fields.ForName("entities")
	if len(meant) > 0 || entities == nil || entities.Arguments.ForName("where") == nil || len(f.SelectionSet) == 0 || len(words) == 0 {
		return meant
	}
	if meant = fieldsSharing(of, words); len(meant) > 0 {
		return meant
	}
	class := ""
	for _, word := range words {
		class += strings.ToUpper(word[:1]) + word[1:]
	}
	return []string{fmt.Sprintf("entities(where: {type: \"prefix:%s\"}) { nodes { iri label } }, with a class of the data", shorten(class))}
}

// writesOf returns the mutations for a name: of the same thing, or the one
// that changes the graph.
func (h *formHinter) writesOf(of *ast.Definition, words []string) (meant []string) {
	if len(words) == 0 {
		return nil
	}
	verb, things := words[0], words[1:]
	for _, word := range writeWords[verb] {
		for _, def := range of.Fields {
			if own := wordsOf(def.Name); own[0] == word && shareWord(things, own[1:]) {
				meant = append(meant, signatureOf(def))
			}
		}
	}
	if patches := of.Fields.ForName("applyPatches"); len(meant) == 0 && writeWords[verb] != nil && patches != nil {
		return []string{`applyPatches(input: {patches: [{op: add, statement: {subject: {id: "…"}, predicate: {id: "…"}, object: {value: "…"}}}]})`}
	}
	return meant
}

// fieldsSharing returns the fields that have a word in common with a name.
func fieldsSharing(of *ast.Definition, words []string) (meant []string) {
	for _, def := range of.Fields {
		if shareWord(words, wordsOf(def.Name)) && len(meant) < maxNearest {
			meant = append(meant, signatureOf(def))
		}
	}
	return meant
}

func shareWord(some, others []string) bool {
	return slices.ContainsFunc(some, func(word string) bool { return slices.Contains(others, word) })
}

// wordsOf splits a name into words in lower case and the singular.
func wordsOf(name string) (words []string) {
	name = strings.TrimSuffix(name, "_by_pk")
	for _, part := range strings.Split(name, "_") {
		begin := 0
		for i, r := range part {
			if i > begin && unicode.IsUpper(r) {
				words, begin = append(words, singular(part[begin:i])), i
			}
		}
		if part[begin:] != "" {
			words = append(words, singular(part[begin:]))
		}
	}
	return words
}

func singular(word string) string {
	word = strings.ToLower(word)
	switch {
	case strings.HasSuffix(word, "ies"):
		return word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "ices"):
		return word[:len(word)-4] + "ex"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"):
		return word[:len(word)-2]
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return word[:len(word)-1]
	}
	return word
}

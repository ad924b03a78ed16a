package graph_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/slowtest"
)

func loadSchema(t *testing.T, sdl string) *ast.Schema {
	t.Helper()
	s, err := gqlparser.LoadSchema(&ast.Source{Name: "schema", Input: sdl})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// maxSchemaBytes is half of the schema's size before its descriptions were
// written for models, which read the whole of it and pay for each word.
// Intents came after and cost less than an eighth of it; search and recall
// take 1.3 KB, embeddings 600 bytes, filters and facets of search 1.8 KB,
// texts in patterns and searchChanged 1.1 KB, whole sentences 300 bytes.
const maxSchemaBytes = 151_559/2 + 9_100 + 1_300 + 600 + 1_800 + 1_100 + 300 + rememberBytes

// rememberBytes is for remember, put and define.
const rememberBytes = 2_800

// A model can read the whole schema.
func TestSchemaIsSmall(t *testing.T) {
	if n := len(newBench(t, graph.Options{}).engine.SDL()); n > maxSchemaBytes {
		t.Errorf("the schema has %d bytes, more than %d: say it shorter, or once for all fields in the description of Query, Mutation or Subscription", n, maxSchemaBytes)
	}
}

// What names and types do not explain is described: by a description of its
// own, by its type's, which then names it in backquotes, or once for all types
// in that of Query, Mutation or Subscription.
func TestSchemaIsDescribed(t *testing.T) {
	s := loadSchema(t, newBench(t, graph.Options{}).engine.SDL())
	if len(s.Types) < 40 {
		t.Errorf("the schema has only %d types", len(s.Types))
	}
	for _, missing := range undescribed(s) {
		t.Errorf("%s needs a description", missing)
	}
	for _, stale := range staleNames(s) {
		t.Error(stale)
	}
}

// undescribed returns the parts of a schema that need a description and have
// none.
func undescribed(s *ast.Schema) []string {
	var out []string
	everywhere := quotedNames(s.Query.Description + s.Mutation.Description + s.Subscription.Description)
	for name, def := range s.Types {
		if def.BuiltIn {
			continue
		}
		if def.Description == "" && !describesItself(s, def) {
			out = append(out, name)
		}
		there := quotedNames(def.Description)
		for _, f := range def.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			root := def == s.Query || def == s.Mutation || def == s.Subscription
			if f.Description == "" && (root || measures(f.Type) && !there[f.Name] && !everywhere[f.Name] && !isOperator(def)) {
				out = append(out, name+"."+f.Name)
			}
			here := quotedNames(f.Description)
			for _, a := range f.Arguments {
				if a.Description == "" && measures(a.Type) && !here[a.Name] && !there[a.Name] && !everywhere[a.Name] {
					out = append(out, name+"."+f.Name+"("+a.Name+":)")
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// describesItself reports whether a type's name and members say what it is: a
// page or an element of one, an input or a result of a mutation, the events of a
// subscription, the operators of a filter, or a few members or values.
func describesItself(s *ast.Schema, def *ast.Definition) bool {
	for _, suffix := range []string{"Connection", "Edge", "Payload"} {
		if strings.HasSuffix(def.Name, suffix) {
			return true
		}
	}
	for _, f := range s.Mutation.Fields {
		if a := f.Arguments.ForName("input"); a != nil && a.Type.Name() == def.Name {
			return true
		}
	}
	switch def.Kind {
	case ast.Union:
		return true
	case ast.Enum:
		return len(def.EnumValues) <= 4 || !slices.ContainsFunc(def.EnumValues, func(v *ast.EnumValueDefinition) bool { return v.Description == "" })
	case ast.Object, ast.InputObject:
		return len(def.Fields) <= 5 || isOperator(def)
	}
	return false
}

// measures reports whether values of a type mean nothing without a unit, a
// bound or a form.
func measures(t *ast.Type) bool {
	return slices.Contains([]string{"Int", "Long", "Float", "JSON", "Moment"}, t.Name())
}

// isOperator reports whether the members of an input are operators of its
// value.
func isOperator(def *ast.Definition) bool {
	return def.Kind == ast.InputObject && def.Fields.ForName("eq") != nil
}

var (
	quoted  = regexp.MustCompile("`([A-Za-z]+)`")
	ofType  = regexp.MustCompile(`\b([A-Z][A-Za-z]+)\.([a-z][A-Za-z]*)\b`)
	strange = []string{"x", "admin", "reviewer", "reader", "metrics", "backup", "open", "key", "jwt", "local"} // are no names of the schema
)

// quotedNames returns the names in backquotes of a description.
func quotedNames(description string) map[string]bool {
	names := map[string]bool{}
	for _, m := range quoted.FindAllStringSubmatch(description, -1) {
		names[m[1]] = true
	}
	return names
}

// staleNames returns complaints about names in descriptions that the schema
// does not have.
func staleNames(s *ast.Schema) []string {
	names, texts := map[string]bool{}, map[string]string{}
	for _, d := range s.Directives {
		if !d.Position.Src.BuiltIn {
			texts["@"+d.Name] = d.Description
		}
	}
	for _, def := range s.Types {
		if def.BuiltIn {
			continue
		}
		names[def.Name], texts[def.Name] = true, def.Description
		for _, f := range def.Fields {
			names[f.Name], texts[def.Name+"."+f.Name] = true, f.Description
			for _, a := range f.Arguments {
				names[a.Name], texts[def.Name+"."+f.Name+"("+a.Name+":)"] = true, a.Description
			}
		}
		for _, v := range def.EnumValues {
			names[v.Name], texts[def.Name+"."+v.Name] = true, v.Description
		}
	}
	var out []string
	for at, text := range texts {
		for name := range quotedNames(text) {
			if !names[name] && !slices.Contains(strange, name) {
				out = append(out, fmt.Sprintf("the description of %s names %s, which the schema does not have", at, name))
			}
		}
		for _, m := range ofType.FindAllStringSubmatch(text, -1) {
			if def := s.Types[m[1]]; def == nil || def.Fields.ForName(m[2]) == nil {
				out = append(out, fmt.Sprintf("the description of %s names %s, which the schema does not have", at, m[0]))
			}
		}
	}
	slices.Sort(out)
	return out
}

// The rules of TestSchemaIsDescribed find what they are for.
func TestUndescribedIsFound(t *testing.T) {
	s := loadSchema(t, "\"`first` is the page size.\"\n"+`type Query { "A thing." thing(first: Int, size: Int): Thing bare: Thing }
		"The mutations."
		type Mutation { "Makes a thing." make(input: MakeThingInput!): MakeThingPayload }
		"The subscriptions."
		type Subscription { "Things." made: ThingEvent }
		type Thing { name: String width: Int "In grams." weight: Float kind: Kind few: Few more: Boolean }
		union ThingEvent = Thing
		input MakeThingInput { name: String, size: Long, filter: SizeFilter }
		input SizeFilter { eq: Long, ne: Long, lt: Long, gt: Long, in: [Long] }
		type MakeThingPayload { thing: Thing }
		enum Kind { "Round." ROUND SQUARE OVAL FLAT LONG }
		enum Few { ONE TWO }
		"A whole number."
		scalar Long`)
	want := []string{"Kind", "MakeThingInput.size", "Query.bare", "Query.thing(size:)", "Thing", "Thing.width"}
	if got := undescribed(s); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Types["Thing"].Description = "Has a `width`, a `depth` and a Kind.weight, unlike Thing.weight."
	want = []string{"the description of Thing names Kind.weight, which the schema does not have", "the description of Thing names depth, which the schema does not have"}
	if got := staleNames(s); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if slices.Contains(undescribed(s), "Thing.width") {
		t.Error("a member that its type's description names needs one of its own")
	}
}

// boundedLists are the lists of objects that are no connections, with the constant that
// bounds their length.
var boundedLists = map[string]string{
	"GraphPath.entities": "path.MaxRouteLength", "GraphPath.statements": "path.MaxRouteLength",
	"Neighborhood.entities": "limit.MaxNeighborhood", "Neighborhood.statements": "limit.MaxNeighborhood",
	"Message.recipients": "message.MaxRecipients", "AskPayload.responses": "channels.MaxAnswers",
	"Intent.dependsOn": "intents.MaxDependsOn", "Intent.assignments": "scope.MaxAgents", "Intent.grants": "scope.MaxGrants", "Intent.tasks": "scope.MaxTasks",
	"Intent.portfolios": "intents.MaxIntentPortfolios", "Portfolio.intents": "intents.MaxPortfolioIntents",
	"ScopeAccess.agents": "scope.MaxAgents", "Principal.actFor": "auth.MaxActFor", "ApiKey.actFor": "auth.MaxActFor",
	"RememberPayload.contradictions": "provenance.MaxContradictions",
	"StatementChange.previous":       "kg.MaxChanges: those of one commit",
}

// Every list of objects whose length has no constant bound is a connection of one shape,
// and every connection has the arguments of its pages.
func TestShapeOfLists(t *testing.T) {
	s := loadSchema(t, newBench(t, graph.Options{}).engine.SDL())
	listed := strings.Fields("Entity Statement Agent ApiKey Graph ChannelMember ChannelRestriction ChannelInvitation Channel Message MessageReceipt Task TaskMessage TaskCommit Proposal Scope ScopeEvent Intent IntentAssignment AccessGrant AccessRequest Lease IntentTask Portfolio PortfolioMembership AuditEntry Quarantine Contradiction")
	seen := map[string]bool{}
	for _, def := range s.Types {
		if def.Kind != ast.Object && def.Kind != ast.Interface {
			continue
		}
		connection := strings.HasSuffix(def.Name, "Connection")
		if connection {
			shape := map[string]string{"edges": "", "nodes": "", "pageInfo": "PageInfo!", "totalCount": "Long"}
			for name, want := range shape {
				f := def.Fields.ForName(name)
				if f == nil || want != "" && f.Type.String() != want || want == "" && (f.Type.Elem == nil || !f.Type.NonNull) {
					t.Errorf("%s has no %s: %s", def.Name, name, want)
				}
			}
			edge := s.Types[def.Fields.ForName("edges").Type.Name()]
			if edge.Fields.ForName("cursor").Type.String() != "Cursor!" || edge.Fields.ForName("node").Type.String() != def.Fields.ForName("nodes").Type.Elem.String() {
				t.Errorf("%s is not the edge of %s", edge.Name, def.Name)
			}
		}
		for _, f := range def.Fields {
			place := def.Name + "." + f.Name
			switch kind := f.Type.Name(); {
			case f.Type.Elem != nil && !connection && slices.Contains(listed, kind):
				if seen[place] = true; boundedLists[place] == "" {
					t.Errorf("%s is a list: make it a connection, or name the constant that bounds it", place)
				}
			case strings.HasSuffix(kind, "Connection") && place != "RestrictionPayload.restrictions": // a payload shows the first page
				for name, want := range map[string]string{"first": "Int", "after": "Cursor", "last": "Int", "before": "Cursor"} {
					arg := f.Arguments.ForName(name)
					if arg == nil && (name == "last" || name == "before") && f.Arguments.ForName("last") == f.Arguments.ForName("before") {
						continue
					}
					if arg == nil || arg.Type.String() != want {
						t.Errorf("%s has no %s: %s", place, name, want)
					}
				}
			}
		}
	}
	for place := range boundedLists {
		if !seen[place] {
			t.Errorf("%s is no list", place)
		}
	}
	for _, f := range s.Subscription.Fields {
		for _, arg := range f.Arguments {
			if arg.Type.Name() == "Cursor" {
				t.Errorf("%s resumes at a position, not at a cursor", f.Name)
			}
		}
	}
}

// A mutation takes one input and returns a payload, which may be null.
func TestShapeOfMutations(t *testing.T) {
	s := loadSchema(t, newBench(t, graph.Options{}).engine.SDL())
	for _, m := range s.Mutation.Fields {
		if strings.HasPrefix(m.Name, "__") {
			continue
		}
		input := m.Arguments.ForName("input")
		if len(m.Arguments) != 1 || input == nil || !input.Type.NonNull || input.Type.Elem != nil || input.DefaultValue != nil ||
			s.Types[input.Type.Name()].Kind != ast.InputObject || !strings.HasSuffix(input.Type.Name(), "Input") {
			t.Errorf("%s does not take one input", m.Name)
		}
		if m.Type.NonNull || m.Type.Elem != nil || s.Types[m.Type.Name()].Kind != ast.Object || !strings.HasSuffix(m.Type.Name(), "Payload") {
			t.Errorf("%s returns %s, which is no payload", m.Name, m.Type)
		}
	}
}

// The served schema is the file at the root of the repository.
func TestSDLIsTheFile(t *testing.T) {
	want, err := os.ReadFile("../schema.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	if got := newBench(t, graph.Options{}).engine.SDL(); got != string(want) {
		t.Error("the schema that is served is not the one in schema.graphqls: generate anew")
	}
}

// selectAll selects every field of a type, as deep as there is no cycle, with
// the arguments that it needs.
func selectAll(s *ast.Schema, name string, open map[string]bool) string {
	def := s.Types[name]
	switch {
	case def.IsLeafType():
		return ""
	case open[name]:
		return " { __typename }"
	}
	open[name] = true
	defer delete(open, name)
	b := " { __typename"
	for _, f := range def.Fields {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		b += " " + f.Name
		if f.Arguments.ForName("predicate") != nil {
			b += `(predicate: "ex:p")`
		}
		if f.Name == "follow" {
			b += `(path: "ex:p+", first: 1)`
		} else if f.Arguments.ForName("first") != nil && f.Type.Elem == nil {
			b += "(first: 1)"
		}
		if f.Arguments.ForName("var") != nil {
			b += `(var: "s")`
		}
		if f.Arguments.ForName("as") != nil {
			b += `(as: "count")`
		}
		if f.Name == "node" && strings.HasSuffix(name, "Edge") {
			b += " { __typename }" // its fields are selected in nodes
			continue
		}
		b += selectAll(s, f.Type.Name(), open)
	}
	if def.IsAbstractType() {
		for _, t := range s.GetPossibleTypes(def) {
			b += " ... on " + t.Name + selectAll(s, t.Name, open)
		}
	}
	return b + " }"
}

// Every field of the schema can be requested: none is missing in the plans.
func TestEveryFieldIsAnswered(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{Limits: limit.Limits{Fields: 1 << 20, Depth: 100, Complexity: 1 << 30, Tokens: 1 << 20, Repeats: 1 << 20}})
	b.team()
	s := loadSchema(t, b.engine.SDL())
	for _, q := range []string{
		`{ entity(iri: "ex:ada")` + selectAll(s, "Entity", map[string]bool{}) + ` }`,
		`{ node(id: "https://example.org/ada") { ... on Entity` + selectAll(s, "Entity", map[string]bool{}) + ` ... on Statement { s:__typename } } }`,
		`{ entities` + selectAll(s, "EntityConnection", map[string]bool{}) + ` }`,
		`{ statements` + selectAll(s, "StatementConnection", map[string]bool{}) + ` }`,
		`{ shortestPaths(from: "ex:ada", to: "ex:bob")` + selectAll(s, "GraphPath", map[string]bool{}) + ` }`,
		`{ changes(after: "earliest")` + selectAll(s, "ChangeConnection", map[string]bool{}) + ` }`,
		`{ diff(from: 1)` + selectAll(s, "DiffConnection", map[string]bool{}) + ` }`,
		`{ match(pattern: {triples: [{s: "?s", p: "ex:knows", o: "?o"}]}, explain: true)` + selectAll(s, "MatchConnection", map[string]bool{}) + ` }`,
		`{ vocabulary` + selectAll(s, "Vocabulary", map[string]bool{}) + ` stats` + selectAll(s, "Stats", map[string]bool{}) + ` }`,
		`mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}}}]})` + selectAll(s, "ApplyPatchesPayload", map[string]bool{}) + ` }`,
	} {
		if r := b.execute(q, ""); len(r.Errors) > 0 || len(r.Data) < 100 {
			t.Errorf("%.60s…: got %.200s %v\n%s", q, r.Data, r.Errors, b.log.String())
		}
	}
	f := b.follow(t, `subscription { statementChanged(resume: "earliest")`+selectAll(s, "StatementEvent", map[string]bool{})+` }`, "", operation.Resume{})
	f.event()
	f = b.follow(t, `subscription { matchChanged(pattern: {triples: [{s: "?s", p: "?p", o: "?o"}]}, resume: "earliest")`+selectAll(s, "MatchEvent", map[string]bool{})+` }`, "", operation.Resume{})
	f.event()
	f = b.follow(t, `subscription { entityChanged(iri: "ex:ada", depth: 1, resume: "earliest")`+selectAll(s, "EntityEvent", map[string]bool{})+` }`, "", operation.Resume{})
	f.event()
	if log := b.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// Introspection works, because tools build on it.
func TestIntrospection(t *testing.T) {
	b := newBench(t, graph.Options{})
	var data struct {
		Schema struct {
			QueryType struct{ Name string }
			Types     []struct{ Name, Description string }
		} `json:"__schema"`
	}
	b.data(`{ __schema { queryType { name } types { kind name description fields(includeDeprecated: true) { name args { name type { ...T } } type { ...T } } inputFields { name type { ...T } } enumValues { name } possibleTypes { name } } directives { name locations args { name } } } }
		fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`, "", &data)
	if data.Schema.QueryType.Name != "Query" || len(data.Schema.Types) < 40 {
		t.Errorf("got the query type %q and %d types", data.Schema.QueryType.Name, len(data.Schema.Types))
	}
}

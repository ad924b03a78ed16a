package reference

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// A value is a token, list, object or *variable.
type (
	// token is a value as JSON has it, or the name of an enum's value.
	token string
	enum  string
	list  []any
	// object is an input object.
	object []member
	member struct {
		name  string
		value any
	}
)

const null = token("null")

// memberName is the name of a member of a JSON object.
var memberName = regexp.MustCompile(`"([A-Za-z]+)":`)

// writeLiteral writes a value as GraphQL has it.
func writeLiteral(b *strings.Builder, v any) {
	switch v := v.(type) {
	case token:
		b.WriteString(memberName.ReplaceAllString(string(v), "$1:"))
	case enum:
		b.WriteString(string(v))
	case *variable:
		b.WriteString("$" + v.name)
	case list:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeLiteral(b, e)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(m.name + ": ")
			writeLiteral(b, m.value)
		}
		b.WriteByte('}')
	}
}

func literalOf(v any) string {
	var b strings.Builder
	writeLiteral(&b, v)
	return b.String()
}

// jsonOf is a value as a request's variables have it.
func jsonOf(v any) json.RawMessage {
	switch v := v.(type) {
	case token:
		return json.RawMessage(v)
	case enum:
		return quote(string(v))
	case list:
		out := []json.RawMessage{}
		for _, e := range v {
			out = append(out, jsonOf(e))
		}
		return encode(out)
	case object:
		out := map[string]json.RawMessage{}
		for _, m := range v {
			out[m.name] = jsonOf(m.value)
		}
		return encode(out)
	}
	panic("a variable within a variable")
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func quote(text string) json.RawMessage { return encode(text) }

// pools are the values of a scalar. Those of a place ("Type.field.argument" or "Input.member",
// of which the end counts) come before those of its type. Every tenth value or so is one that
// koine refuses, from refusals.
var pools = map[string][]string{
	"Int":         {`1`, `2`, `3`, `10`},
	"Float":       {`0`, `0.5`, `1`, `0.35`, `5e-1`},
	"Boolean":     {`true`, `false`},
	"String":      {`"a"`, `"b"`, `"Ada"`, `"Bob"`, `"en"`, `"ann"`, `""`, `"Bob \"the\" Builder\n"`},
	"ID":          {`"ex:ada"`, `"@channel@"`, `"@message@"`, `"@task@"`, `"@scope@"`, `"@proposal@"`, `"@key@"`, `"@statement0@"`, `"agent://ann"`, `7`},
	"IRI":         {`"ex:ada"`, `"ex:bob"`, `"ex:cy"`, `"ex:rome"`, `"https://example.org/ada"`, `"ex:italy"`, `"ex:nothing"`, `"urn:koine:channel:@channel@"`, `"urn:koine:message:@message@"`, `"urn:koine:task:@task@"`},
	"Long":        {`0`, `1`, `2`, `5`, `"3"`, `100000`},
	"DateTime":    {`"2026-01-01T00:00:05Z"`, `"2020-01-01T00:00:00Z"`, `"2026-01-01T02:00:10+02:00"`},
	"Revision":    {`1`, `5`, `"7"`, `12`},
	"Cursor":      {`null`},
	"Position":    {`"earliest"`, `"latest"`},
	"Moment":      {`5`, `8`, `12`, `"2026-01-01T00:00:09Z"`, `"20"`},
	"Path":        {`"ex:knows"`, `"ex:knows+"`, `"ex:knows/ex:lives"`, `"^ex:lives"`, `"ex:knows*/rdfs:label"`, `"ex:age|ex:name"`},
	"PatternTerm": {`"?a"`, `"?b"`, `"?c"`, `"ex:ada"`},
	"PatternPath": {`"?p"`, `"ex:knows"`, `"ex:knows+"`, `"ex:lives"`},
	"JSON":        {`36`, `7`, `36.5`, `true`, `"Ada"`, `"Bob"`, `9007199254740993`, `1.0`},

	".predicate": {`"ex:knows"`, `"ex:name"`, `"ex:age"`, `"rdf:type"`, `"rdfs:label"`, `"ex:lives"`}, ".predicates": {`"ex:knows"`, `"ex:lives"`}, ".property": {`"ex:name"`, `"ex:age"`, `"ex:knows"`},
	".graph": {`"agent://ann/notes"`}, ".graphs": {`"agent://ann/notes"`, `null`}, "Query.graph.iri": {`"agent://ann/notes"`}, "GraphFilter.eq": {`"agent://ann/notes"`},
	".datatype": {`"xsd:integer"`, `"xsd:string"`}, ".language": {`"en"`, `"fr"`}, ".lang": {`"en"`, `"fr"`, `"de"`}, ".regex": {`"^A"`, `"o.*t"`, `"(?i)ada"`},
	"Query.agent.id": {`"ann"`, `"agent://bob"`, `"koine"`, `"zoe"`}, ".member": {`"ann"`, `"bob"`}, ".author": {`"bob"`}, ".authors": {`"ann"`, `"agent://bob"`}, ".believedBy": {`"ann"`, `"agent://bob"`},
	"Query.channel.id": {`"@channel@"`, `"@channel@"`, `"@private@"`, `"@work@"`}, "Query.message.id": {`"@message@"`, `"@reply@"`, `"@request@"`, `"@gone@"`, `"@done@"`}, "Query.scope.id": {`"@scope@"`, `"@subscope@"`},
	"Query.task.id": {`"@task@"`, `"@subtask@"`}, "Query.proposal.id": {`"@proposal@"`}, ".scopeId": {`"@scope@"`}, ".channelId": {`"@channel@"`}, "Query.scopes.parentId": {`"@scope@"`}, "Query.tasks.parentId": {`"@task@"`},
	"StatementRef.id": {`"@statement0@"`, `"@statement1@"`, `"@statement2@"`}, "SubjectInput.id": {`"ex:ada"`}, "PredicateInput.id": {`"ex:knows"`}, "ObjectInput.id": {`"ex:bob"`}, ".correlationId": {`"@request@"`},
	"Query.__type.name": {`"Entity"`, `"Term"`, `"StatementFilter"`, `"Direction"`, `"IRI"`, `"Node"`, `"Nothing"`}, ".as": {`"a"`, `"b"`}, ".var": {`"a"`, `"b"`}, ".select": {`"a"`, `"b"`},
	".minRevision": {`1`, `5`}, ".maxDepth": {`1`, `3`}, ".depth": {`1`, `2`}, ".k": {`1`, `2`}, ".eqVar": {`"a"`}, ".neVar": {`"b"`},
	"Entity.in.after": {`null`}, ".shape": {`"ex:FilmShape"`}, ".contextId": {`"c"`}, ".principal": {`"agent://ann"`, `"agent://root"`}, "IRIFilter.eq": {`"ex:Person"`, `"ex:ada"`, `"ex:knows"`},
}

// Pools of the inputs of mutations. A literal keeps 64 bits of a fraction, a variable all its digits:
// there is none here that differs in the plain form.
func init() {
	maps.Copy(pools, map[string][]string{
		".agentId": {`"ann"`, `"bob"`, `"eve"`, `"agent://zoe"`}, ".ownerId": {`"ann"`, `"bob"`}, ".justification": {`"because"`, `"so it is"`}, ".idempotencyKey": {`"once"`, `"again"`},
		"RevertCommitInput.revision": {`6`, `7`, `8`, `9`, `10`, `11`, `12`}, "RegisterPrefixInput.name": {`"ex2"`, `"other"`, `"koine"`}, ".namespace": {`"https://other.example/"`, `"https://two.example/"`},
		"RemovePrefixInput.name": {`"other"`, `"ex2"`, `"koine"`}, ".allow": {`"tel"`, `"geo"`}, ".forbid": {`"tel"`}, ".roles": {`"reader"`, `"reviewer"`}, ".actFor": {`"bob"`},
		".keyId": {`"@key@"`}, ".card": {`{"name": "Zoe", "description": "d", "capabilities": ["weather"]}`, `{"name": "Yan"}`}, "UpdateAgentInput.name": {`"Anna"`}, "CreateApiKeyInput.name": {`"new"`},
		".lifetimeSeconds": {`3600`}, ".overlapSeconds": {`60`},
		"PredicateInput.id": {`"ex:knows"`, `"ex:age"`, `"ex:likes"`, `"ex:pay"`}, "SubjectInput.id": {`"ex:ada"`, `"ex:ada"`, `"ex:bob"`, `"ex:new"`}, "ObjectInput.id": {`"ex:bob"`, `"ex:bob"`, `"ex:rome"`},
		"ObjectInput.type": {`"xsd:string"`, `"xsd:integer"`}, ".provenance": {`{"page": 3}`},
		"CreateGraphInput.iri": {`"agent://ann/more"`, `"agent://bob/own"`, `"agent://root/own"`}, "SetGraphPolicyInput.iri": {`"agent://ann/notes"`, `"agent://ann/more"`}, "ReplaceGraphInput.iri": {`"agent://ann/notes"`, `"agent://ann/more"`},
		"DeleteGraphInput.iri": {`"agent://ann/more"`, `"agent://ann/notes"`}, ".owners": {`"agent://ann"`}, ".writers": {`"agent://ann"`, `"agent://bob"`}, ".readers": {`"agent://bob"`},
		".turtle": {`"<https://example.org/ada> <https://example.org/knows> <https://example.org/bob> , 3 ."`, `"<https://example.org/x> <https://example.org/y> 1.0 ."`, `"no turtle"`}, "SetShapesInput.turtle": {string(quote(shapeOfFilm))},
		".shapes": {`"ex:FilmShape"`}, ".proposalId": {`"@proposal@"`, `"@applied@"`}, ".comment": {`"fine"`}, ".expectedVersion": {`1`, `2`, `3`},
		"DeleteChannelInput.channelId": {`"@closed@"`, `"@private@"`}, "CloseChannelInput.channelId": {`"@work@"`, `"@private@"`}, "JoinChannelInput.channelId": {`"@channel@"`, `"@work@"`, `"@private@"`},
		"AnswerInvitationInput.channelId": {`"@private@"`}, "InvitationInput.channelId": {`"@private@"`, `"@channel@"`}, "InvitationInput.agentId": {`"eve"`, `"agent://zoe"`}, "CreateChannelInput.name": {`"new"`, `"newer"`}, "CreateChannelInput.maxMembers": {`5`, `20`}, ".maxMembers": {`10`, `20`}, ".keepMessages": {`1000`}, ".expireAfterSeconds": {`86400`}, ".messageBytes": {`65536`},
		"MetadataPatchInput.set": {`{"a": 2}`, `{"b": {"c": [1.5]}}`}, "MetadataPatchInput.remove": {`"a"`}, ".metadata": {`{"m": 1}`, `{"n": [1.5, null]}`}, ".until": {`"2030-01-01T00:00:00Z"`}, ".expiresAt": {`"2030-01-01T00:00:00Z"`},
		"ScopeAccessInput.agentIds": {`"bob"`}, ".coordinatorId": {`"ann"`}, ".parentId": {`"@scope@"`}, "SendMessageInput.parentId": {`"@task@"`}, "UpdateScopeInput.scopeId": {`"@scope@"`, `"@subscope@"`}, "EndScopeInput.scopeId": {`"@subscope@"`, `"@scope@"`},
		"PublishMessageInput.parts": {`{"type": "text", "text": "hello"}`, `{"type": "data", "data": {"x": 1.5}}`}, ".recipient": {`"bob"`, `"ann"`}, ".replyToId": {`"@message@"`, `"@request@"`}, ".channelName": {`"named"`}, ".threadId": {`"t"`},
		".messageId": {`"@message@"`, `"@reply@"`, `"@request@"`}, ".messageIds": {`"@request@"`, `"@message@"`}, "SendMessageInput.messageId": {`"m1"`, `"m2"`}, ".taskId": {`"@task@"`, `"@subtask@"`}, ".upToSequence": {`1`, `2`, `3`},
		"SendSignalInput.kind": {`"typing"`}, "PublishMessageInput.to": {`"bob"`, `"ann"`}, "SendMessageInput.to": {`"bob"`, `"ann"`}, "PartInput.data": {`{"x": 1.5}`, `[1, null]`}, ".mediaType": {`"text/plain"`}, "ArtifactInput.id": {`"a/1"`, `"b"`},
		".resume": {`"earliest"`, `"snapshot"`}, "Subscription.entityChanged.iri": {`"ex:ada"`, `"ex:bob"`, `"ex:rome"`}, "Subscription.taskChanged.id": {`"@task@"`, `"@subtask@"`}, "Subscription.proposalChanged.id": {`"@proposal@"`, `"@applied@"`},
		"Subscription.channelChanged.channelId": {`"@channel@"`, `"@channel@"`, `"@private@"`, `"@work@"`, `"@closed@"`}, ".sinceSequence": {`0`, `1`}, ".inbox": {`true`}, ".joined": {`true`}, "MessageFilter.tag": {`"x"`}, "MessageFilter.threadId": {`"t"`},
		"AcknowledgeMessagesInput.channelId": {`"@channel@"`}, "DeleteTaskInput.taskId": {`"@subtask@"`, `"@task@"`}, ".everywhere": {`true`}, ".format": {`"markdown"`},
	})
}

// presets are values of input types that lead to something more often than random ones.
var presets = map[string][]string{
	"PatternInput": {`{"triples": [{"s": "?a", "p": "ex:knows", "o": "?b"}]}`, `{"triples": [{"s": "?a", "p": "ex:name", "o": "?b"}, {"s": "?a", "p": "rdf:type", "o": "ex:Person"}]}`, `{"triples": {"s": "?a", "p": "ex:knows+", "o": "?b"}}`},
	"StatementRef": {`{"subject": {"id": "ex:ada"}, "predicate": {"id": "ex:knows"}, "object": {"id": "ex:bob"}}`, `{"id": "@statement1@"}`, `{"subject": {"id": "ex:glass"}, "predicate": {"id": "ex:made"}, "object": {"value": 3}}`},
	"ViewInput":    {`{"allGraphs": true}`, `{"includePending": true}`},
}

// refusals are values that are of the type, and refused all the same.
var refusals = map[string][]string{
	"Int": {`-1`, `1001`, `2147483647`, `0`}, "Float": {`2`, `-0.5`}, "String": {`"\u0000"`, `"("`}, "ID": {`"nothing"`, `"@alone@"`, `""`}, "IRI": {`"not an iri"`, `"nope:x"`, `""`, `7`}, "Long": {`-1`, `"x"`, `1.5`, `9223372036854775807`, `9223372036854775808`},
	"DateTime": {`"yesterday"`, `5`}, "Revision": {`-1`, `"x"`}, "Cursor": {`"nope"`, `""`}, "Position": {`"nope"`}, "Moment": {`"soon"`, `-1`, `100000`}, "Path": {`"(("`, `"nope:x/"`}, "PatternTerm": {`"?"`, `"?a b"`}, "PatternPath": {`"ex:knows/?p"`}, "JSON": {`null`, `{"a": [1]}`, `[]`},
}

// oneOf are the members of an input, or arguments of a field, of which exactly one is given.
var oneOf = map[string][]string{
	"Entity.value": {"predicate", "path"}, "Entity.values": {"predicate", "path"}, "EntityOrder": {"by", "property", "path"}, "EntityGroupKey": {"property", "path"}, "TriplePattern": {"o", "value"},
}

// together are members of inputs of mutations, or arguments of subscriptions, beside those that must be given, that lead to
// something when they are given together.
var together = map[string][][]string{
	"ObjectInput":    {{"id"}, {"value"}, {"value"}, {"value", "language"}, {"value", "type"}},
	"StatementInput": {{}, {}, {"certainty"}, {"graph"}, {"provenance", "validFrom"}},
	"PartInput":      {{"text"}, {"text", "mediaType"}, {"data"}, {"data", "metadata"}},
	"PublishMessageInput": {{"channelId"}, {"channelId", "messageType", "replyToId"}, {"to"}, {"channelId", "patches", "justification"}, {"channelId", "idempotencyKey", "tags", "threadId"},
		{"channelId", "recipient", "metadata"}, {"channelName", "scopeId"}},
	"SendMessageInput":         {{"to"}, {"taskId"}, {"to", "contextId", "metadata"}, {"to", "parentId", "messageId"}},
	"ReportTaskInput":          {{"state"}, {"message"}, {"artifacts"}, {"state", "message", "artifacts"}, {"state", "failure"}},
	"ArtifactInput":            {{}, {"name", "metadata"}, {"append"}},
	"AcknowledgeMessagesInput": {{"upToSequence"}, {"messageIds"}},
	"RestrictAgentInput":       {{"channelId"}, {"channelId", "until"}, {"everywhere", "until"}},
	"LiftRestrictionInput":     {{"channelId"}, {"everywhere"}},
	"CreateScopeInput":         {{"title"}, {"parentId", "title"}, {"access"}, {}},
	"ScopeAccessInput":         {{"everybody"}, {"agentIds"}},
	"CreateChannelInput":       {{"name"}, {"name", "members", "visibility"}, {"scopeId", "topic"}, {"name", "rights"}, {"limits", "maxMembers", "keepMessages"}, {"metadata", "idempotencyKey"}},
	"UpdateChannelInput":       {{"name"}, {"topic", "maxMembers"}, {"metadataPatch"}, {"rights", "limits"}},
	"CreateGraphInput":         {{"iri"}, {"iri", "visibility"}, {"iri", "owners", "readers"}},
	"SetGraphPolicyInput":      {{"iri", "visibility"}, {"iri", "writers"}},
	"ReplaceGraphInput":        {{"iri"}, {"iri", "justification"}},
	"UpdateAgentInput":         {{"name"}, {"card"}, {"status"}, {"ownerId"}},
	"RegisterAgentInput":       {{"agentId"}},
	"CreateApiKeyInput":        {{"name"}, {"roles", "mode"}, {"lifetimeSeconds"}},
	"ApplyPatchesInput":        {{}, {"justification"}, {"justification", "dryRun"}, {"idempotencyKey"}},
	"ChangeSchemesInput":       {{"allow"}, {"forbid"}},

	"Subscription.statementChanged": {{"resume"}, {"resume", "where"}, {"resume", "ops"}}, "Subscription.entityChanged": {{"resume"}, {"resume", "depth"}}, "Subscription.matchChanged": {{"resume"}, {"resume", "select"}},
	"Subscription.messagePublished": {{"resume"}, {"sinceSequence"}}, "Subscription.taskChanged": {{"resume"}}, "Subscription.channelChanged": {{"resume"}}, "Subscription.proposalChanged": {{"resume"}, {"resume", "id"}},
	"MessageSourceInput": {{"channelId"}, {"channelId"}, {"inbox"}, {"joined"}, {"scopeId"}, {"channelId", "matching"}},
}

// seldom are arguments and members that are given one time in ten of those in which others are:
// most values are refused, or lead to nothing.
var seldom = []string{"after", "at", "graphs", "recordedAt", "validAt", "maxAgeSeconds", "includeQuarantined", "includePending", "groupBy", "aggregate", "having", "sinceMessageId", "beforeMessageId"}

// scalar makes a value of a scalar or an enum.
func (g *generator) scalar(def *ast.Definition, place string) any {
	if def.Kind == ast.Enum {
		return enum(def.EnumValues[g.IntN(len(def.EnumValues))].Name)
	}
	if list := refusals[def.Name]; len(list) > 0 && g.IntN(100) < g.refused {
		return token(list[g.IntN(len(list))])
	}
	pool := pools[place]
	if pool == nil {
		pool = pools[place[strings.LastIndexByte(place, '.'):]]
	}
	if pool == nil {
		pool = pools[def.Name]
	}
	if pool == nil {
		return token(`"?"`)
	}
	return token(pool[g.IntN(len(pool))])
}

// value makes a value without variables unless nested may have them.
func (g *generator) value(t *ast.Type, place string, depth int, variables bool) any {
	if !t.NonNull && g.IntN(25) == 0 {
		return null
	}
	if t.Elem != nil {
		if g.IntN(5) == 0 { // one element, which is coerced to a list; a variable may not be
			one := *t.Elem
			one.NonNull = true
			return g.value(&one, place, depth, variables)
		}
		l := list{}
		for range []int{0, 1, 1, 1, 2, 2, 2, 2, 2, 3}[g.IntN(10)] {
			l = append(l, g.place(t.Elem, place, depth, variables, false))
		}
		return l
	}
	def := g.schema.Types[t.NamedType]
	if def.Kind == ast.InputObject {
		return g.inputObject(def, depth, variables)
	}
	v := g.scalar(def, place)
	if v == null && t.NonNull {
		return token(pools["IRI"][0])
	}
	return v
}

func (g *generator) inputObject(def *ast.Definition, depth int, variables bool) any {
	if list := presets[def.Name]; len(list) > 0 && g.IntN(3) > 0 {
		return token(list[g.IntN(len(list))])
	}
	o := object{}
	for _, f := range g.given(def.Name, def.Fields, depth) {
		o = append(o, member{f.Name, g.place(f.Type, def.Name+"."+f.Name, depth-1, variables, f.DefaultValue != nil)})
	}
	return o
}

// given chooses the members of an input object that are given.
func (g *generator) given(name string, fields ast.FieldList, depth int) (out ast.FieldList) {
	if choice := oneOf[name]; choice != nil && g.IntN(30) > 0 {
		one := choice[g.IntN(len(choice))]
		fields = slices.DeleteFunc(slices.Clone(fields), func(f *ast.FieldDefinition) bool {
			return f.Name != one && slices.Contains(choice, f.Name)
		})
		for _, f := range fields {
			if f.Name == one {
				out = append(out, f)
			}
		}
	}
	if sets := together[name]; sets != nil && g.IntN(5) > 0 {
		set := sets[g.IntN(len(sets))]
		for _, f := range fields {
			if f.Type.NonNull && f.DefaultValue == nil || slices.Contains(set, f.Name) || g.IntN(25) == 0 {
				out = append(out, f)
			}
		}
		g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	for _, f := range fields {
		required := f.Type.NonNull && f.DefaultValue == nil
		nested := g.schema.Types[f.Type.Name()].Kind == ast.InputObject
		odds := max(2, len(fields)/2)
		if slices.Contains(seldom, f.Name) {
			odds *= 10
		}
		if (required || g.IntN(odds) == 0 && (!nested || depth > 0) && (f.Type.Name() != "BudgetInput" || g.budgets)) && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// place makes what stands at a place of a type: a value, or a variable.
func (g *generator) place(t *ast.Type, at string, depth int, variables, hasDefault bool) any {
	if !variables || g.IntN(4) > 0 {
		return g.value(t, at, depth, variables && depth > 0)
	}
	return g.variable(t, at, hasDefault)
}

// variable is a variable of the operation, with its value in the request.
type variable struct {
	name     string
	typ      string
	fallback any // nil without a default
	given    any // nil if absent
	at       string
	of       string // the type of its place
}

func (g *generator) variable(t *ast.Type, at string, hasDefault bool) *variable {
	for _, v := range g.variables {
		if v.at == at && v.of == t.String() && g.IntN(3) == 0 {
			return v
		}
	}
	v := &variable{name: "v" + itoa(len(g.variables)), at: at, of: t.String()}
	typ := *t
	switch {
	case !t.NonNull && g.IntN(4) == 0:
		typ.NonNull = true
	case t.NonNull && (hasDefault || g.IntN(6) == 0):
		typ.NonNull = false
		if !hasDefault || g.IntN(2) == 0 {
			v.fallback = g.value(t, at, 1, false)
		}
	}
	if v.fallback == nil && g.IntN(4) == 0 {
		v.fallback = g.value(&typ, at, 1, false)
	}
	v.typ = typ.String()
	must := typ.NonNull && v.fallback == nil
	switch {
	case must || g.IntN(4) > 0:
		v.given = g.value(t, at, 1, false)
	case !typ.NonNull && g.IntN(3) == 0:
		v.given = null
	}
	if v.given == null && typ.NonNull {
		v.given = g.value(&typ, at, 1, false)
	}
	g.variables = append(g.variables, v)
	return v
}

// junk are values for variables that are of no or few types.
var junk = []any{
	token(`"x"`), token(`3.5`), token(`12345678901`), token(`true`), null, list{null}, list{list{token(`1`)}}, object{{"unknown", token(`1`)}}, enum("NOWHERE"), token(`1.0`), token(`"5"`), list{}, object{},
}

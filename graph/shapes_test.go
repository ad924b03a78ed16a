package graph_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/shapes"
	"koine/kg"
)

const filmShape = `@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix ex: <https://example.org/> .
ex:FilmShape a sh:NodeShape ; sh:targetClass ex:Film ;
  sh:property [ sh:path ex:title ; sh:minCount 1 ; sh:maxCount 1 ] ;
  sh:property [ sh:path ex:year ; sh:nodeKind sh:Literal ; sh:severity sh:Warning ] .
`

// judged is a bench whose store judges by shapes.
func judged(t *testing.T) *bench {
	set := &shapes.Set{}
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Verifier, o.OnSystemChange = set, set.Follow })
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": "https://example.org/"})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: prefixes, Shapes: set}, graph.Options{})
	return b
}

// withRoles runs an operation with these roles.
func (b *bench) withRoles(query string, variables map[string]any, roles ...string) operation.Result {
	return b.engine.Execute(context.Background(), operation.Request{Query: query, Variables: variables,
		Principal: kg.Principal{ID: "agent://root", Roles: roles, Method: "key"}})
}

const setFilmShape = `mutation($turtle: String!, $dryRun: Boolean) { setShapes(input: {turtle: $turtle, dryRun: $dryRun}) { success statementsAffected commitId } }`

// answers checks the data of an answer without errors.
func answers(t *testing.T, r operation.Result, want string) {
	t.Helper()
	if len(r.Errors) > 0 || string(r.Data) != want {
		t.Fatalf("got %s, %v\nwant %s", r.Data, r.Errors, want)
	}
}

func fails(t *testing.T, r operation.Result, code kg.Code, message string) {
	t.Helper()
	if len(r.Errors) != 1 || r.Errors[0].Extensions["reason"] != string(code) && r.Errors[0].Extensions["code"] != string(code) || !strings.Contains(r.Errors[0].Message, message) {
		raw, _ := json.Marshal(r.Errors)
		t.Fatalf("got %s, want %s %q", raw, code, message)
	}
}

func TestShapesAreKeptAndJudge(t *testing.T) {
	b := judged(t)
	film := map[string]any{"turtle": filmShape}
	b.update(add(kg.IRI("https://example.org/old"), kg.IRI(kg.RDFType), kg.IRI("https://example.org/Film")))

	fails(t, b.withRoles(setFilmShape, film), kg.CodePermissionDenied, "only an administrator can change shapes")
	answers(t, b.withRoles(setFilmShape, map[string]any{"turtle": filmShape, "dryRun": true}, kg.RoleAdmin), `{"setShapes":{"success":true,"statementsAffected":10,"commitId":null}}`)
	answers(t, b.withRoles(`{ shapes { iri } }`, nil), `{"shapes":[]}`)
	if r := b.withRoles(setFilmShape, film, kg.RoleAdmin); len(r.Errors) > 0 {
		t.Fatal(r.Errors)
	}
	answers(t, b.withRoles(`{ shapes { iri severity message deactivated targetClasses targetNodes } }`, nil),
		`{"shapes":[{"iri":"https://example.org/FilmShape","severity":"http://www.w3.org/ns/shacl#Violation","message":null,"deactivated":false,"targetClasses":["https://example.org/Film"],"targetNodes":[]}]}`)

	const patch = `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:new", type: "ex:Film"}, predicate: {id: "ex:year"}, object: {id: "ex:y"}}}]}) { success verificationStatus verificationDetails statementsAffected commitId } }`
	answers(t, b.withRoles(patch, nil), `{"applyPatches":{"success":false,"verificationStatus":"Rejected - Constraint Violation","verificationDetails":`+
		`"https://example.org/new, https://example.org/title: has 0 of at least 1 values (shape https://example.org/FilmShape)\nwarning: https://example.org/new, https://example.org/year, <https://example.org/y>: is not of the kind Literal (shape https://example.org/FilmShape)",`+
		`"statementsAffected":0,"commitId":null}}`)

	answers(t, b.withRoles(`{ violations { conforms complete validatedCount results { shape focusNode path value sourceConstraintComponent severity message } } }`, nil),
		`{"violations":{"conforms":false,"complete":true,"validatedCount":1,"results":[{"shape":"https://example.org/FilmShape","focusNode":"https://example.org/old","path":"https://example.org/title","value":null,`+
			`"sourceConstraintComponent":"http://www.w3.org/ns/shacl#MinCountConstraintComponent","severity":"http://www.w3.org/ns/shacl#Violation","message":"has 0 of at least 1 values"}]}}`)
	fails(t, b.withRoles(`{ violations(first: 1001) { conforms } }`, nil), kg.CodeLimitExceeded, "1000")
	fails(t, b.withRoles(`{ violations(first: 0) { conforms } }`, nil), kg.CodeInvalid, "at least 1")
	fails(t, b.withRoles(`{ violations(shape: "ex:None") { conforms } }`, nil), kg.CodeNotFound, "not found")

	fails(t, b.withRoles(`mutation { removeShapes(input: {shapes: ["ex:FilmShape"]}) { success } }`, nil), kg.CodePermissionDenied, "only an administrator")
	fails(t, b.withRoles(`mutation { removeShapes(input: {shapes: ["ex:None"]}) { success } }`, nil, kg.RoleAdmin), kg.CodeNotFound, "not found")
	answers(t, b.withRoles(`mutation { removeShapes(input: {shapes: ["ex:FilmShape"]}) { success statementsAffected } }`, nil, kg.RoleAdmin), `{"removeShapes":{"success":true,"statementsAffected":10}}`)
	answers(t, b.withRoles(`{ violations { conforms validatedCount } }`, nil), `{"violations":{"conforms":true,"validatedCount":0}}`)
}

func TestShapesThatDoNotCompileAreRefusedWithTheirPlace(t *testing.T) {
	b := judged(t)
	fails(t, b.withRoles(setFilmShape, map[string]any{"turtle": filmShape + "\nex:Broken ex:p"}, kg.RoleAdmin), kg.CodeInvalid, "line 7")
	fails(t, b.withRoles(setFilmShape, map[string]any{"turtle": strings.Replace(filmShape, "sh:minCount 1", `sh:minCount "one"`, 1)}, kg.RoleAdmin), kg.CodeInvalid,
		`<https://example.org/FilmShape>: sh:property: property <https://example.org/title>: sh:minCount: "one" is not a non-negative integer`)
	answers(t, b.withRoles(`{ shapes { iri } }`, nil), `{"shapes":[]}`)
}

// Unsupported parts are refused, or left out and reported: in the answer, beside the
// shapes, and by the report.
func TestShapesThatAreJudgedInPart(t *testing.T) {
	b := judged(t)
	film := map[string]any{"turtle": strings.Replace(filmShape, "sh:minCount 1", "sh:minCount 1 ; sh:sparql []", 1)}
	fails(t, b.withRoles(setFilmShape, film, kg.RoleAdmin), kg.CodeInvalid,
		`<https://example.org/FilmShape>: sh:property: property <https://example.org/title>: sh:sparql: a constraint in SPARQL, which is not supported`)
	const left = `[{"resource":"https://example.org/FilmShape","path":"<https://example.org/FilmShape>: sh:property: property <https://example.org/title>","name":"sh:sparql","reason":"a constraint in SPARQL, which is not supported"}]`
	const set = `mutation($turtle: String!) { setShapes(input: {turtle: $turtle, supportedOnly: true}) { success statementsAffected unsupported { resource path name reason } } }`
	fails(t, b.withRoles(set, film), kg.CodePermissionDenied, "only an administrator can change shapes")
	answers(t, b.withRoles(set, film, kg.RoleAdmin), `{"setShapes":{"success":true,"statementsAffected":11,"unsupported":`+left+`}}`)
	answers(t, b.withRoles(`{ shapes { unsupported { resource path name reason } } unsupportedShapeParts { resource path name reason } violations { conforms unsupportedCount } }`, nil),
		`{"shapes":[{"unsupported":`+left+`}],"unsupportedShapeParts":`+left+`,"violations":{"conforms":true,"unsupportedCount":1}}`)
	fails(t, b.withRoles(setFilmShape, film, kg.RoleAdmin), kg.CodeInvalid, "sh:sparql")
}

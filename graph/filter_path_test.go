package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/query"
	"koine/kg"
)

// films fills the store with films, their directors and casts: alien and blade by scott,
// heat by mann, solo without a director.
func (b *bench) films() {
	director, actor, name, country := iri("director"), iri("actor"), iri("name"), iri("country")
	b.update(
		add(iri("alien"), director, iri("scott")), add(iri("blade"), director, iri("scott")), add(iri("heat"), director, iri("mann")),
		add(iri("alien"), actor, iri("weaver")), add(iri("alien"), actor, iri("hurt")), add(iri("heat"), actor, iri("pacino")),
		add(iri("heat"), actor, iri("niro")), add(iri("heat"), actor, iri("kilmer")), add(iri("blade"), actor, iri("ford")),
		add(iri("solo"), name, kg.String("Solo")),
		add(iri("scott"), name, kg.String("Scott")), add(iri("scott"), name, kg.LangString("Scott", "en")), add(iri("mann"), name, kg.String("Mann")),
		add(iri("weaver"), country, iri("us")), add(iri("hurt"), country, iri("gb")), add(iri("pacino"), country, iri("us")), add(iri("niro"), country, iri("us")),
		in(iri("g"), add(iri("alien"), director, iri("scott"))), // an end counts once
	)
}

// The quantifiers and counts, in an open world: a film without a director has
// none that does not fit.
func TestQuantifiers(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.films()
	films := `iri: {in: ["ex:alien", "ex:blade", "ex:heat", "ex:solo"]}, `
	us := `where: {property: {predicate: "ex:country", iri: {eq: "ex:us"}}}`
	for where, want := range map[string]string{
		`path: {path: "ex:director", where: {property: {predicate: "ex:name", eq: "Scott"}}}`: "alien blade",
		`path: {path: "ex:director/ex:name", value: {eq: "Scott"}}`:                           "alien blade",
		`path: {path: "ex:director/ex:name", value: {eq: "Scott"}, quantifier: SINGLE}`:       "", // in two languages, which are two ends
		`path: {path: "ex:director", quantifier: SINGLE}`:                                     "alien blade heat",
		`path: {path: "ex:director"}`:                                                         "alien blade heat",
		`path: {path: "ex:director", quantifier: NONE}`:                                       "solo",
		`path: {path: "ex:director", count: {eq: 0}}`:                                         "solo",
		`path: {path: "ex:actor", ` + us + `}`:                                                "alien heat",
		`path: {path: "ex:actor", quantifier: EVERY, ` + us + `}`:                             "solo", // of all its actors: it has none
		`path: {path: "ex:actor", quantifier: NONE, ` + us + `}`:                              "blade solo",
		`path: {path: "ex:actor", quantifier: SINGLE, ` + us + `}`:                            "alien",
		`path: {path: "ex:actor", quantifier: EVERY, where: {not: {property: {predicate: "ex:country", iri: {eq: "ex:gb"}}}}, count: {gt: 0}}`: "blade heat",
		`path: {path: "ex:actor", count: {gte: 2}}`:                                                                "alien heat",
		`path: {path: "ex:actor", count: {in: [1, 3]}}`:                                                            "blade heat",
		`path: {path: "ex:actor", quantifier: SOME, count: {ne: 3}}`:                                               "alien blade",
		`path: {path: "ex:actor", count: {lt: 2}}`:                                                                 "blade solo",
		`path: {path: "ex:actor/ex:country", count: {eq: 2}}`:                                                      "alien",
		`path: [{path: "ex:actor", count: {gte: 2}}, {path: "ex:director", where: {iri: {eq: "ex:scott"}}}]`:       "alien",
		`not: {path: {path: "ex:director", where: {iri: {eq: "ex:scott"}}}}`:                                       "heat solo",
		`path: {path: "ex:director/^ex:director", where: {path: {path: "ex:actor", count: {eq: 1}}}}`:              "alien blade",
		`path: {path: "^ex:country"}`:                                                                              "",
		`path: {path: "ex:name", where: {}}`:                                                                       "", // a literal is no entity
		`path: {path: "ex:director", where: {type: {exists: false}}, value: {iri: {regex: "n$"}}}`:                 "heat",
		`path: {path: "(ex:director|ex:actor)/ex:none?", where: {iri: {in: ["ex:ford", "ex:mann", "ex:nobody"]}}}`: "blade heat",
	} {
		var data struct{ Entities connection }
		b.data(`{ entities(where: {`+films+where+`}) { nodes { iri } } }`, "", &data)
		if got := strings.ReplaceAll(strings.Join(data.Entities.iris(), " "), ex, ""); got != want {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
	}
}

// No more ends are looked at than it takes to know.
func TestQuantifiersStopEarly(t *testing.T) {
	b := newBench(t, graph.Options{})
	patches := []kg.Patch{add(iri("hub"), iri("is"), kg.Boolean(true))}
	for i := range 500 {
		patches = append(patches, add(iri(fmt.Sprint("s", i)), iri("at"), iri("hub")))
	}
	b.update(patches...)
	for where, most := range map[string]int64{
		`quantifier: SOME`:   5,
		`quantifier: NONE`:   5,
		`quantifier: SINGLE`: 6,
		`quantifier: EVERY, value: {iri: {endsWith: "nothing"}}`: 5,
		`count: {lt: 10}`:     15,
		`count: {in: [3, 7]}`: 12,
	} {
		for _, path := range []string{"^ex:at", "^ex:at/ex:none?"} {
			result := b.execute(`{ entities(where: {iri: {eq: "ex:hub"}, path: {path: "`+path+`", `+where+`}}) { nodes { iri } } }`, "")
			limit := most
			if path != "^ex:at" {
				limit = 600 // a level of the search is taken as a whole
			}
			if len(result.Errors) > 0 || result.StatementsRead > limit {
				t.Errorf("%s, %s: read %d statements, want at most %d (%v)", path, where, result.StatementsRead, limit, result.Errors)
			}
		}
	}
}

// Conditions on paths are nested up to their bound.
func TestNestedPathsAreBounded(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.films()
	where := `iri: {exists: true}`
	for depth := 1; depth <= query.MaxNestedPaths+1; depth++ {
		where = `path: {path: "ex:director|^ex:director", where: {` + where + `}}`
		result := b.execute(`{ entities(where: {`+where+`}) { totalCount } }`, "")
		if refused := len(result.Errors) > 0 && result.Errors[0].Extensions["code"] == "LIMIT_EXCEEDED"; refused != (depth > query.MaxNestedPaths) {
			t.Errorf("%d deep: got %v", depth, result.Errors)
		}
	}
	for where, says := range map[string]string{
		`path: {path: "ex:director/"}`:                               "where.path[0].path",
		`path: {path: "ex:p", value: {regex: "("}}`:                  "where.path[0].value.regex",
		`or: [{path: {path: "ex:p", where: {label: {regex: "("}}}}]`: "where.or[0].path[0].where.label.regex",
	} {
		result := b.execute(`{ entities(where: {`+where+`}) { totalCount } }`, "")
		if len(result.Errors) == 0 || result.Errors[0].Extensions["field"] != says {
			t.Errorf("%s: got %v, want an error at %s", where, result.Errors, says)
		}
	}
}

// A condition on the ends of a path begins where fewer statements are read: at the matching
// ends, or at the entities.
func TestPathsAreWalkedBack(t *testing.T) {
	b := newBench(t, graph.Options{})
	const n = 3000
	var patches []kg.Patch
	for i := range n {
		film, who := iri(fmt.Sprint("film/", i)), iri(fmt.Sprint("person/", i/2))
		patches = append(patches, add(film, kg.IRI(kg.RDFType), iri("Film")), add(film, iri("director"), who), add(film, iri("title"), kg.String(fmt.Sprint("t", i))))
		if i%2 == 0 {
			patches = append(patches, add(who, iri("name"), kg.String(fmt.Sprint("n", i/2))), add(who, kg.IRI(kg.RDFType), iri("Person")))
		}
	}
	patches = append(patches, add(iri("person/9"), iri("name"), kg.LangString("n7", "en"))) // a text is looked up in all languages
	b.update(patches...)
	for where, want := range map[string]struct {
		entities, most int
	}{
		`path: {path: "ex:director", where: {property: {predicate: "ex:name", eq: "n7"}}}`:                                           {4, 50},
		`path: {path: "ex:director/ex:name", value: {eq: "n7"}}`:                                                                     {4, 50},
		`path: {path: "ex:director/ex:name", value: {in: ["n7"]}, quantifier: SINGLE}, property: {predicate: "ex:title", eq: "t15"}`: {1, 40},
		`type: {eq: "ex:Film"}, path: {path: "ex:director/ex:name", value: {eq: "n7"}}`:                                              {4, 320},
		`path: {path: "^ex:director", where: {property: {predicate: "ex:title", eq: "t7"}}}`:                                         {1, 30},
		`path: {path: "ex:director", where: {path: {path: "ex:name", value: {eq: "n7"}}}}`:                                           {4, 50},
		`path: {path: "ex:director", where: {iri: {eq: "ex:person/7"}}}`:                                                             {2, 30},
		`path: {path: "ex:director", where: {type: {eq: "ex:Person"}}}`:                                                              {n, 8 * n},
		`or: {path: {path: "ex:director", where: {property: {predicate: "ex:name", eq: "n7"}}}}`:                                     {4, 8 * n},
	} {
		var data struct{ Entities connection }
		result := b.data(`{ entities(first: 0, where: {`+where+`}) { totalCount } }`, "", &data)
		if got := data.Entities.TotalCount; got != int64(want.entities) || result.StatementsRead > int64(want.most) {
			t.Errorf("%s: got %d entities in %d statements, want %d in at most %d", where, got, result.StatementsRead, want.entities, want.most)
		}
	}
}

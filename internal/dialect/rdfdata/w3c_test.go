package rdfdata_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"koine/internal/dialect/rdfdata"
	"koine/internal/rdf"
	"koine/kg"
)

// step is a request of a protocol case and its expected answer.
type step struct {
	method string
	// query names the graph; {location} stands for the Location of an answer before.
	query, accept, sends string
	contentType          string // "" is Turtle
	status               []int
	// holds is the Turtle of the answer, up to the names of blank nodes.
	holds string
	// located tells that the answer has a Location.
	located bool
}

const (
	people = "@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix v: <http://www.w3.org/2006/vcard/ns#> .\n"
	ada    = people + `<http://www.example/gsp/person/1> a foaf:Person ; foaf:businessCard [ a v:VCard ; v:fn "Ada Doe" ] .`
	bea    = people + `<http://www.example/gsp/person/1> a foaf:Person ; foaf:businessCard [ a v:VCard ; v:fn "Bea Doe" ] .`
	cleo   = people + `[] a foaf:Person ; foaf:businessCard [ a v:VCard ; v:given-name "Cleo" ] .`
	named  = people + `<http://www.example/gsp/person/1> foaf:name "Bea Doe" .`
	first  = "?graph=http%3A%2F%2Fwww.example%2Fgsp%2Fperson%2F1.ttl"
	second = "?graph=http%3A%2F%2Fwww.example%2Fgsp%2Fperson%2F2.ttl"
	fourth = "?graph=http%3A%2F%2Fwww.example%2Fgsp%2Fperson%2F4.ttl"
	turtle = "text/turtle; charset=utf-8"
	form   = "multipart/form-data; boundary=b"
	parts  = "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.ttl\"\r\nContent-Type: text/turtle\r\n\r\n<urn:s> <urn:p> 1 .\r\n--b--\r\n"
)

var (
	created = []int{201}
	done    = []int{200, 204}
	stored  = []int{200, 201, 204}
	read    = []int{200}
	absent  = []int{404}
	not     = []int{501}
)

// The cases of the W3C's suites for the Graph Store Protocol, by their names, with data of
// their own: sparql11/graph-store-protocol (indirect graph identification) and
// sparql11/http-rdf-update, which it replaces, with ?graph= in the place of direct
// identification. The latter's follow one another on one store. Unsupported parts are
// answered with 501: multipart/form-data in two of the cases, and direct graph
// identification in all of manifest-direct.
var protocolCases = []struct {
	name  string
	steps []step
}{
	{"put_get_repeat_indirect", []step{
		{method: "PUT", query: first, sends: ada, status: created},
		{method: "GET", query: first, accept: turtle, status: read, holds: ada},
		{method: "PUT", query: first, sends: bea, status: done},
		{method: "GET", query: first, accept: turtle, status: read, holds: bea},
	}},
	{"put_get_default", []step{
		{method: "PUT", query: "?default", sends: cleo, status: stored},
		{method: "GET", query: "?default", accept: turtle, status: read, holds: cleo},
	}},
	{"put_delete_get_delete_indirect", []step{
		{method: "PUT", query: second, sends: cleo, status: stored},
		{method: "DELETE", query: second, status: done},
		{method: "GET", query: second, status: absent},
		{method: "DELETE", query: second, status: absent},
	}},
	{"post_get_post_get_indirect", []step{
		{method: "POST", query: first, sends: bea, status: stored},
		{method: "GET", query: first, accept: turtle, status: read, holds: bea},
		{method: "POST", query: first, sends: parts, contentType: form, status: not},
		{method: "POST", query: first, sends: named, status: done}, // in its place
		{method: "GET", query: first, accept: turtle, status: read, holds: bea + named},
	}},
	{"post_get_new_graph", []step{
		{method: "POST", sends: cleo, status: created, located: true},
		{method: "GET", query: "?graph={location}", accept: turtle, status: read, holds: cleo},
	}},
	{"head_existing_indirect", []step{
		{method: "PUT", query: first, sends: ada, status: stored},
		{method: "HEAD", query: first, accept: turtle, status: read},
	}},
	{"head_non_existing_indirect", []step{
		{method: "HEAD", query: fourth, accept: turtle, status: absent},
	}},
	{"put_get_uri_pct_encoded_indirect", []step{
		{method: "PUT", query: first, sends: ada, status: created},
		{method: "GET", query: "?graph=http://www.example/gsp/person/1.ttl", accept: turtle, status: read, holds: ada},
	}},
	{"put_get_uri_pct_encoded_twice", []step{
		{method: "PUT", query: "?graph=http://www.example/gsp/person/%31.ttl", sends: ada, status: created},
		{method: "PUT", query: "?graph=http://www.example/gsp/person/%2531.ttl", sends: bea, status: created},
		{method: "GET", query: "?graph=http://www.example/gsp/person/%31.ttl", accept: turtle, status: read, holds: ada},
		{method: "GET", query: "?graph=http://www.example/gsp/person/%2531.ttl", accept: turtle, status: read, holds: bea},
	}},
}

// The older suite.
var formerCases = []struct {
	name string
	step
}{
	{"put__initial_state", step{method: "PUT", query: first, sends: ada, status: created}},
	{"get_of_put__initial_state", step{method: "GET", query: first, accept: turtle, status: read, holds: ada}},
	{"put__graph_already_in_store", step{method: "PUT", query: first, sends: bea, status: done}},
	{"get_of_put__graph_already_in_store", step{method: "GET", query: first, accept: turtle, status: read, holds: bea}},
	{"put__default_graph", step{method: "PUT", query: "?default", sends: cleo, status: created}},
	{"get_of_put__default_graph", step{method: "GET", query: "?default", accept: turtle, status: read, holds: cleo}},
	{"delete__existing_graph: its graph", step{method: "PUT", query: second, sends: ada, status: created}},
	{"delete__existing_graph", step{method: "DELETE", query: second, status: []int{200}}},
	{"get_of_delete__existing_graph", step{method: "GET", query: second, status: absent}},
	{"delete__nonexistent_graph", step{method: "DELETE", query: second, status: absent}},
	{"post__existing_graph", step{method: "POST", query: first, sends: named, status: read}},
	{"get_of_post__existing_graph", step{method: "GET", query: first, accept: turtle, status: read, holds: bea + named}},
	{"post__multipart_formdata", step{method: "POST", query: first, sends: parts, contentType: form, status: not}},
	{"get_of_post__multipart_formdata", step{method: "GET", query: first, accept: turtle, status: read, holds: bea + named}},
	{"post__create__new_graph", step{method: "POST", sends: cleo, status: created, located: true}},
	{"get_of_post__create__new_graph", step{method: "GET", query: "?graph={location}", accept: turtle, status: read, holds: cleo}},
	{"get_of_post__after_noop: the noop", step{method: "POST", query: "?graph={location}", status: []int{204}}},
	{"get_of_post__after_noop", step{method: "GET", query: "?graph={location}", accept: turtle, status: read, holds: cleo}},
	{"head_on_an_existing_graph", step{method: "HEAD", query: first, accept: turtle, status: read}},
	{"head_on_a_nonexisting_graph", step{method: "HEAD", query: fourth, status: absent}},
}

func TestGraphStoreProtocol(t *testing.T) {
	for _, c := range protocolCases {
		t.Run(c.name, func(t *testing.T) {
			f, at := start(t, rdfdata.Options{}), ""
			for _, s := range c.steps {
				at = cmp.Or(f.follow(t, s, at), at)
			}
		})
	}
	f, at := start(t, rdfdata.Options{}), ""
	for _, c := range formerCases {
		t.Run(c.name, func(t *testing.T) { at = cmp.Or(f.follow(t, c.step, at), at) })
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"} {
		t.Run("direct identification: "+method, func(t *testing.T) {
			f.follow(t, step{method: method, query: "/person/1.ttl", sends: ada, status: not}, "")
		})
	}
}

// follow makes the request of a step, looks at its answer and gives its Location.
func (f *fixture) follow(t *testing.T, s step, location string) string {
	t.Helper()
	var body io.Reader
	if s.method == "PUT" || s.method == "POST" {
		body = strings.NewReader(s.sends)
	}
	query := strings.ReplaceAll(s.query, "{location}", url.QueryEscape(location))
	a := f.ask(s.method, query, body, "Content-Type: "+cmp.Or(s.contentType, turtle), "Accept: "+cmp.Or(s.accept, "*/*"))
	if !slices.Contains(s.status, a.status) {
		t.Fatalf("%s %s: got %d %s, want %d", s.method, query, a.status, a.body, s.status)
	}
	if s.located && a.header.Get("Location") == "" {
		t.Errorf("%s %s: no Location", s.method, query)
	}
	if s.accept != "" && a.status == http.StatusOK && a.header.Get("Content-Type") != s.accept {
		t.Errorf("%s %s: Content-Type %q", s.method, query, a.header.Get("Content-Type"))
	}
	if s.method == "HEAD" && len(a.body) > 0 {
		t.Errorf("HEAD %s has the body %s", query, a.body)
	}
	if s.holds != "" {
		if got, want := shapeOf(t, string(a.body)), shapeOf(t, s.holds); !slices.Equal(got, want) {
			t.Errorf("%s %s: got %q\nwant %q", s.method, query, got, want)
		}
	}
	return a.header.Get("Location")
}

// shapeOf are the statements of a Turtle document in order, with a description in the place
// of each blank node. It distinguishes graphs whose blank nodes form trees.
func shapeOf(t *testing.T, text string) (out []string) {
	t.Helper()
	about := map[kg.Term][]kg.Quad{}
	var all []kg.Quad
	for q, err := range rdf.Read(strings.NewReader(text), rdf.Turtle, rdf.Options{}) {
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		about[q.Subject] = append(about[q.Subject], q)
		all = append(all, q)
	}
	var describe func(kg.Term) string
	describe = func(x kg.Term) string {
		if x.Kind() != kg.KindBlank {
			return x.String()
		}
		var parts []string
		for _, q := range about[x] {
			parts = append(parts, q.Predicate.String()+" "+describe(q.Object))
		}
		slices.Sort(parts)
		return fmt.Sprint(parts)
	}
	for _, q := range all {
		out = append(out, describe(q.Subject)+" "+q.Predicate.String()+" "+describe(q.Object))
	}
	slices.Sort(out)
	return out
}

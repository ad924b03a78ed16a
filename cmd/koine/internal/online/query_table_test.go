package online

import (
	"strings"
	"testing"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

func TestTabulate(t *testing.T) {
	short := cli.NewShortener([]cli.NamePrefix{{Name: "ex", Namespace: "https://example.org/"}, {Name: "deep", Namespace: "https://example.org/deep/"}})
	for name, c := range map[string]struct{ query, data, want string }{
		"a connection": {
			`{ statements { totalCount nodes { subject { iri } object { ... on Entity { iri } ... on Literal { value } } certainty } } }`,
			`{"statements":{"totalCount":2,"nodes":[{"subject":{"iri":"https://example.org/rome"},"object":{"value":1}},{"subject":{"iri":"https://example.org/deep/x"},"object":{"value":null},"certainty":0.5}]}}`,
			"FIELD                  VALUE\nstatements.totalCount  2\n\nstatements\nsubject.iri  object.iri  object.value  certainty\nex:rome                  1\ndeep:x                                 0.5\n",
		},
		"edges":                    {`{ films { edges { cursor node { name } } } }`, `{"films":{"edges":[{"cursor":"c","node":{"name":"A"}}]}}`, "cursor  name\nc       A\n"},
		"a list of texts":          {`{ names }`, `{"names":["a","b"]}`, "value\na\nb\n"},
		"an object":                {`{ me { id roles } }`, `{"me":{"id":"agent://a","roles":["x","y"]}}`, "FIELD  VALUE\nme.id  agent://a\n\nme.roles\nvalue\nx\ny\n"},
		"a connection in rows":     {`{ a { b { nodes { c d } } } }`, `{"a":[{"b":{"nodes":[{"c":1,"d":"x"},{"c":2,"d":"y"}]}}]}`, "b.c   b.d\n1, 2  x, y\n"},
		"a list in rows":           {`{ a { b { c d } e } }`, `{"a":[{"b":[],"e":1},{"b":[{"c":1,"d":"x"},{"c":2,"d":null}],"e":2}]}`, "b.c   b.d  e\n           1\n1, 2  x,   2\n"},
		"scalars":                  {`{ revision none }`, `{"revision":9,"none":null}`, "FIELD     VALUE\nrevision  9\nnone\n"},
		"a large number":           {`{ n }`, `{"n":12345678901234567890}`, "FIELD  VALUE\nn      12345678901234567890\n"},
		"control bytes":            {`{ t }`, `{"t":["a\nb\u001b[31m"]}`, "value\na\ufffdb\ufffd[31m\n"},
		"an empty list":            {`{ t { b a { c } } }`, `{"t":[]}`, "b  a.c\n"},
		"an empty connection":      {`{ t { edges { node { b } cursor } } }`, `{"t":{"edges":[]}}`, "b  cursor\n"},
		"an alias":                 {`{ t { x: b b } }`, `{"t":[{"x":1,"b":2}]}`, "x  b\n1  2\n"},
		"null in the first rows":   {`{ t { a b { c } d } }`, `{"t":[{"a":null,"b":null,"d":1},{"a":1,"b":{"c":2},"d":3}]}`, "a  b.c  d\n        1\n1  2    3\n"},
		"fragments":                {`{ t { ...f a c } } fragment f on T { b a }`, `{"t":[{"b":1,"a":2,"c":3}]}`, "b  a  c\n1  2  3\n"},
		"what is left out":         {`query($s: Boolean! = true) { t { a @skip(if: $s) b @include(if: $s) } }`, `{"t":[{"b":1}]}`, "b\n1\n"},
		"JSON":                     {`{ t { metadata } }`, `{"t":[{"metadata":{"k": [1]}}]}`, "metadata\n{\"k\":[1]}\n"},
		"a type that is not there": {`{ node { ... on A { a } ... on B { b } } }`, `{"node":{"b":1}}`, "FIELD   VALUE\nnode.b  1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := newSelection(c.query, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			tables := dataTables([]byte(c.data), selected)
			var out strings.Builder
			for i := range tables {
				if i > 0 {
					out.WriteByte('\n')
				}
				if err := tables[i].ShortenIRIs(short).Print(cli.Terminal{Out: &out}); err != nil {
					t.Fatal(err)
				}
			}
			if got := out.String(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestShortLists(t *testing.T) {
	page := strings.TrimSuffix(strings.Repeat(`{"a":1},`, 25), ",")
	for name, c := range map[string]struct{ query, data, want string }{
		"a page that nobody asked for":  {`{ t { nodes { a } } }`, `{"t":{"nodes":[` + page + `]}}`, "t: 25 shown, and more may exist; request more with first: N"},
		"a page of a list":              {`{ x { t { a } } }`, `{"x":{"t":[` + page + `]}}`, "x.t: 25 shown, and more may exist; request more with first: N"},
		"a page as long as asked for":   {`{ t(first: 25) { nodes { a } } }`, `{"t":{"nodes":[` + page + `]}}`, ""},
		"asked for with a variable":     {`query($n: Int = 25) { t(first: $n) { nodes { a } } }`, `{"t":{"nodes":[` + page + `]}}`, ""},
		"all of them":                   {`{ t { totalCount nodes { a } } }`, `{"t":{"totalCount":25,"nodes":[` + page + `]}}`, ""},
		"fewer than there are":          {`{ t(first: 1) { n: totalCount edges { node { a } } } }`, `{"t":{"n":4113,"edges":[{"node":{"a":1}}]}}`, "t: 1 of 4,113 shown; request more with first: N"},
		"another page":                  {`{ t(first: 1, after: "c") { totalCount nodes { a } } }`, `{"t":{"totalCount":2,"nodes":[{"a":1}]}}`, ""},
		"the next page":                 {`{ t(first: 1) { nodes { a } pageInfo { hasNextPage endCursor } } }`, `{"t":{"nodes":[{"a":1}],"pageInfo":{"hasNextPage":true,"endCursor":"c"}}}`, `t: 1 shown, and more exist; request more with first: N, or continue with after: "c"`},
		"no next page":                  {`{ t { nodes { a } pageInfo { hasNextPage } } }`, `{"t":{"nodes":[` + page + `],"pageInfo":{"hasNextPage":false}}}`, ""},
		"lists in rows, told once":      {`{ t(first: 2) { nodes { u { nodes { a } } } } }`, `{"t":{"nodes":[{"u":{"nodes":[` + page + `]}},{"u":{"nodes":[` + page + `]}}]}}`, "t.u: 25 shown, and more may exist; request more with first: N"},
		"cut by a budget, told already": {`{ cut { nodes { a } } }`, `{"cut":{"nodes":[` + page + `]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := newSelection(c.query, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			meta := &client.QueryMetadata{Truncated: []client.Truncation{{Path: []any{"cut", "nodes"}}}}
			printShortLists(cli.Terminal{Err: &said}, shortLists([]byte(c.data), selected), meta)
			if got := strings.TrimSuffix(said.String(), "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

package rdf_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"koine/internal/rdf"
	"koine/kg"
)

const xmlHead = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.example/" xmlns:d="http://d.example/">`

// Each production of RDF 1.1 XML Syntax gives the statements that its section says.
func TestRDFXML(t *testing.T) {
	const base = "http://base.example/dir/file"
	prologue := "@base <" + base + "> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix e: <http://e.example/> . @prefix d: <http://d.example/> .\n"
	for _, c := range []struct{ name, xml, turtle string }{
		{"2.2 nodes and properties", `<rdf:Description rdf:about="http://x.example/a"><e:p><rdf:Description rdf:about="b"><e:q>text</e:q></rdf:Description></e:p></rdf:Description>`, `<http://x.example/a> e:p <b> . <b> e:q "text" .`},
		{"2.4 empty properties", `<rdf:Description rdf:about=""><e:p rdf:resource="?x"/><e:q/><e:r></e:r></rdf:Description>`, `<> e:p <?x> ; e:q "" ; e:r "" .`},
		{"2.5 property attributes", `<e:T rdf:about="#f" e:p="one" d:q="two" rdf:type="U"/>`, `<#f> a e:T, <U> ; e:p "one" ; d:q "two" .`},
		{"2.7 languages", `<rdf:Description rdf:about="" xml:lang="fr"><e:p>a</e:p><e:p xml:lang="">b</e:p><e:p xml:lang="en">c</e:p></rdf:Description>`, `<> e:p "a"@fr, "b", "c"@en .`},
		{"2.8 XML literals", `<rdf:Description rdf:about=""><e:p rdf:parseType="Literal"> a <e:b  z='1' d:y="2" a="&lt;&quot;">x&amp;y</e:b><!--c--><?pi x?><![CDATA[<]]></e:p></rdf:Description>`,
			`<> e:p ''' a <e:b xmlns:d="http://d.example/" xmlns:e="http://e.example/" a="&lt;&quot;" z="1" d:y="2">x&amp;y</e:b><!--c--><?pi x?>&lt;'''^^rdf:XMLLiteral .`},
		{"2.9 datatypes", `<rdf:Description rdf:about=""><e:p rdf:datatype="http://t.example/t">1</e:p></rdf:Description>`, `<> e:p "1"^^<http://t.example/t> .`},
		{"2.10 labels", `<rdf:Description rdf:nodeID="x" e:p="1"/><rdf:Description rdf:about=""><e:q rdf:nodeID="x"/></rdf:Description>`, `_:x e:p "1" . <> e:q _:x .`},
		{"2.11 parseType Resource", `<rdf:Description rdf:about=""><e:p rdf:parseType="Resource"><e:q>1</e:q></e:p></rdf:Description>`, `<> e:p [ e:q "1" ] .`},
		{"2.12 omitted nodes", `<rdf:Description rdf:about=""><e:p e:q="1" rdf:type="T"/></rdf:Description>`, `<> e:p [ e:q "1" ; a <T> ] .`},
		{"2.14 ID and base", `<rdf:Description xml:base="http://o.example/p/q#f" rdf:ID="x" e:p="1"><e:r rdf:resource="../z"/></rdf:Description>`, `<http://o.example/p/q#x> e:p "1" ; e:r <http://o.example/z> .`},
		{"2.15 containers", `<rdf:Seq rdf:about=""><rdf:li>1</rdf:li><rdf:_5>5</rdf:_5><rdf:li>2</rdf:li></rdf:Seq>`, `<> a rdf:Seq ; rdf:_1 "1" ; rdf:_5 "5" ; rdf:_2 "2" .`},
		{"2.16 collections", `<rdf:Description rdf:about=""><e:p rdf:parseType="Collection"><rdf:Description rdf:about="a"/><e:T/></e:p><e:q rdf:parseType="Collection"/></rdf:Description>`, `<> e:p ( <a> _:t ) ; e:q () . _:t a e:T .`},
		{"2.17 reification", `<rdf:Description rdf:about=""><e:p rdf:ID="st">1</e:p></rdf:Description>`, `<> e:p "1" . <#st> a rdf:Statement ; rdf:subject <> ; rdf:predicate e:p ; rdf:object "1" .`},
		{"comments and instructions between", `<!-- a --><rdf:Description rdf:about=""><!-- b --><e:p>x<!-- c -->y</e:p><?z?></rdf:Description>`, `<> e:p "xy" .`},
		{"an unknown parseType is a literal", `<rdf:Description rdf:about=""><e:p rdf:parseType="other">x</e:p></rdf:Description>`, `<> e:p "x"^^rdf:XMLLiteral .`},
		{"references and line ends", "<rdf:Description rdf:about=\"\" e:q=\"a\n\tb&#10;c\"><e:p>&#x41;&#233;\r\n&gt;</e:p></rdf:Description>", `<> e:q "a  b\nc" ; e:p "Aé\n>" .`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := read([]byte(xmlHead+c.xml+"</rdf:RDF>"), rdf.RDFXML, rdf.Options{Base: base})
			if err != nil {
				t.Fatal(err)
			}
			if want := collect(t, []byte(prologue+c.turtle), rdf.Turtle, rdf.Options{}); !isomorphic(got, want) {
				t.Errorf("got\n%swant\n%s", write(t, got, rdf.NTriples, rdf.WriteOptions{}), write(t, want, rdf.NTriples, rdf.WriteOptions{}))
			}
		})
	}
}

// Input that RDF/XML, Namespaces or XML forbid is refused with its line.
func TestRDFXMLErrors(t *testing.T) {
	node := func(inner string) string {
		return xmlHead + "\n<rdf:Description rdf:about='urn:s'>\n" + inner + "</rdf:Description></rdf:RDF>"
	}
	for _, c := range []struct {
		name, xml string
		line      int
		says      string
	}{
		{"nothing", "", 1, "no element"},
		{"the document is incomplete", xmlHead + "\n<e:T>", 2, "the document is incomplete"},
		{"two roots", "<e:T xmlns:e='urn:e:'/>\n<e:T xmlns:e='urn:e:'/>", 2, "one root element"},
		{"text behind", "<e:T xmlns:e='urn:e:'/>\nx", 2, "an element"},
		{"wrong end", xmlHead + "\n</rdf:rdf>", 2, "does not match the start tag"},
		{"undeclared prefix", node("<x:p/>"), 3, `"x" is not declared`},
		{"no namespace", node("<p/>"), 3, "no namespace"},
		{"attribute without namespace", node("<e:p q='1'/>"), 3, "no namespace"},
		{"attribute twice", node("<e:p e:q='1' e:q='2'/>"), 3, "twice"},
		{"attribute twice by namespace", node("<e:p xmlns:f='http://e.example/' e:q='1' f:q='2'/>"), 3, "twice"},
		{"prefix of nothing", node("<e:p xmlns:f=''/>"), 3, "has no namespace"},
		{"the prefix xml", node("<e:p xmlns:xml='urn:x'/>"), 3, "cannot be declared"},
		{"< in an attribute", node("<e:p e:q='<'/>"), 3, "< is not allowed"},
		{"]]> in a text", node("<e:p>]]></e:p>"), 3, "]]>"},
		{"-- in a comment", node("<!-- -- -->"), 3, ">"},
		{"control character", node("<e:p>\x01</e:p>"), 3, "U+0001"},
		{"reference to one", node("<e:p>&#1;</e:p>"), 3, "U+0001"},
		{"not UTF-8", node("<e:p>\xff</e:p>"), 3, "UTF-8"},
		{"another encoding", "<?xml version='1.0' encoding='utf-16'?>\n" + node(""), 1, "utf-16"},
		{"a late declaration", "\n<?xml version='1.0'?>" + node(""), 2, "very beginning"},
		{"undeclared entity", node("<e:p>&nbsp;</e:p>"), 3, "&nbsp;"},
		{"external entity", "<!DOCTYPE r [\n<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" + node("<e:p>&x;</e:p>"), 4, "&x;"},
		{"parameter entity", "<!DOCTYPE r [ %x; ]>", 1, "parameter"},
		{"entity of elements", "<!DOCTYPE r [ <!ENTITY x '<e:p/>'> ]>", 1, "escaped elements"},
		{"entity of references", "<!DOCTYPE r [ <!ENTITY x '&#38;lt;'> ]>", 1, "references"},
		{"ID twice", node("<e:p xml:base='urn:b'><e:T rdf:ID='a'/></e:p>\n<e:p><e:T xml:base='urn:b' rdf:ID='a'/></e:p>"), 4, "used twice"},
		{"ID that is no name", node("<e:p rdf:ID='1'>x</e:p>"), 3, "cannot be an rdf:ID"},
		{"ID and about", xmlHead + "<e:T rdf:ID='a' rdf:about='urn:b'/>", 1, "one of"},
		{"bagID", node("<e:p rdf:bagID='a'/>"), 3, "bagID"},
		{"li as an attribute", node("<e:p rdf:li='a'/>"), 3, "rdf:li"},
		{"Description as a property", node("<rdf:Description/>"), 3, "cannot be a property"},
		{"RDF inside", node("<e:p><rdf:RDF/></e:p>"), 3, "about a node"},
		{"text between nodes", xmlHead + "\nx</rdf:RDF>", 2, `found the text "x"`},
		{"text and node", node("<e:p>x<e:T/></e:p>"), 3, "a text or exactly one node"},
		{"two nodes", node("<e:p><e:T/>\n<e:T/></e:p>"), 4, "a text or exactly one node"},
		{"content beside a resource", node("<e:p rdf:resource='urn:o'>x</e:p>"), 3, "must not have content"},
		{"parseType and resource", node("<e:p rdf:parseType='Resource' rdf:resource='urn:o'/>"), 3, "with rdf:parseType"},
		{"datatype on a node", xmlHead + "<e:T rdf:datatype='urn:t'/>", 1, "only allowed on properties"},
		{"relative without base", xmlHead + "<e:T rdf:about='x'/>", 1, "no base"},
		{"forbidden IRI", node("<e:p rdf:resource='http://x#a#b'/>"), 3, "RFC 3987"},
		{"dirLangString", node("<e:p rdf:datatype='" + kg.RDFDirLangString + "'>x</e:p>"), 3, "base direction"},
		{"deep", xmlHead + strings.Repeat("<e:T><e:p>", rdf.MaxXMLDepth/2+1), 1, "nested more than"},
		{"attributes", xmlHead + "<e:T" + manyAttributes(rdf.MaxXMLAttributes+1) + "/>", 1, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read([]byte(c.xml), rdf.RDFXML, rdf.Options{})
			var at *rdf.SyntaxError
			if !errors.As(err, &at) || at.Line != c.line || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want line %d and %q", err, c.line, c.says)
			}
		})
	}
}

func manyAttributes(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, " e:a%d='1'", i)
	}
	return out.String()
}

// The entities that a document declares stand for their texts, in attributes too; their
// expansion is bounded whether they are nested or used often.
func TestRDFXMLEntities(t *testing.T) {
	doc := func(declarations, inner string) string {
		return "<?xml version='1.0'?>\n<!DOCTYPE rdf:RDF [\n<!-- <!ENTITY not 'x'> --><!ELEMENT x (y)>\n" + declarations + "]>\n" + xmlHead + inner + "</rdf:RDF>"
	}
	quads := collect(t, []byte(doc(`<!ENTITY e "http://e.example/"> <!ENTITY e "later"> <!ENTITY two '&e;&e;'><!ENTITY % p "x">`,
		`<rdf:Description rdf:about="&e;s" e:p="&two;"/>`)), rdf.RDFXML, rdf.Options{})
	want := kg.Quad{Subject: kg.IRI("http://e.example/s"), Predicate: kg.IRI("http://e.example/p"), Object: kg.String("http://e.example/http://e.example/"), Graph: kg.DefaultGraph}
	if len(quads) != 1 || quads[0] != want {
		t.Errorf("got %v, want %v", quads, want)
	}
	var nested strings.Builder
	nested.WriteString("<!ENTITY x0 'ha'>")
	for i := range 40 {
		fmt.Fprintf(&nested, "<!ENTITY x%d '&x%d;&x%d;'>", i+1, i, i)
	}
	long := "<!ENTITY x '" + strings.Repeat("x", 512<<10) + "'>"
	often := strings.Repeat("<e:T><e:p>&x;</e:p></e:T>", rdf.MaxXMLExpandedBytes/(512<<10))
	for name, c := range map[string]struct {
		text string
		code kg.Code
	}{
		"nested":         {doc(nested.String(), ""), kg.CodeLimitExceeded},
		"at the bound":   {doc(long, often), ""},
		"past the bound": {doc(long, often+"<e:T><e:p>&x;</e:p></e:T>"), kg.CodeLimitExceeded},
		"many":           {doc(manyEntities(rdf.MaxXMLEntities+1), ""), kg.CodeLimitExceeded},
		"as many":        {doc(manyEntities(rdf.MaxXMLEntities), ""), ""},
	} {
		if _, err := read([]byte(c.text), rdf.RDFXML, rdf.Options{}); kg.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}

func manyEntities(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "<!ENTITY e%d 'x'>", i)
	}
	return out.String()
}

// Prefixes of the outermost element are told, as those of the other formats.
func TestRDFXMLPrefixes(t *testing.T) {
	reported := map[string]string{}
	collect(t, []byte(xmlHead+"</rdf:RDF>"), rdf.RDFXML, rdf.Options{Prefix: func(name, namespace string) { reported[name] = namespace }})
	if len(reported) != 3 || reported["e"] != "http://e.example/" {
		t.Errorf("told %v", reported)
	}
	if rdf.RDFXML.IsWritten() || rdf.NewWriter(nil, rdf.RDFXML, rdf.WriteOptions{}).Close() == nil {
		t.Error("RDF/XML is written")
	}
}

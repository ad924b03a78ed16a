package rdf

import (
	"bufio"
	"bytes"
	"encoding/json"

	"koine/kg"
)

// jsonldNodeBytes is the largest size of a node object. Larger nodes are split into
// several objects, so that a reader need not hold them in memory.
const jsonldNodeBytes = 64 << 10

// jsonldWriter writes expanded JSON-LD in streaming order: an array of node objects, and
// of graph objects with those of a named graph. A graph object begins with an empty
// context, which tells a reader that no other context follows.
type jsonldWriter struct {
	last    kg.Quad
	node    bool            // a node object is open
	started bool            // the outer array has an element
	nodes   bool            // the array of the graph has an element
	keys    map[string]bool // of the open node
	key     string          // key of the open array
	size    int             // bytes of the open node object
	buf     bytes.Buffer
}

func (j *jsonldWriter) encodeQuad(out *bufio.Writer, q kg.Quad) error {
	j.buf.Reset()
	if !q.Graph.IsResource() {
		q.Graph = kg.DefaultGraph
	}
	key := q.Predicate.Value()
	if key == kg.RDFType && q.Object.IsResource() {
		key = "@type"
	}
	same := j.node && q.Graph == j.last.Graph && q.Subject == j.last.Subject && j.size < jsonldNodeBytes
	switch {
	case same && key == j.key:
		j.buf.WriteByte(',')
	case same && !j.keys[key]:
		j.buf.WriteByte(']')
		j.openProperty(key)
	default:
		j.closeNode()
		j.openGraph(q.Graph)
		j.openNode(q.Subject)
		j.openProperty(key)
	}
	if key == "@type" {
		j.writeString(q.Object.Name())
	} else {
		j.writeValue(q.Object)
	}
	j.last = q
	j.size += j.buf.Len()
	_, err := out.Write(j.buf.Bytes())
	return err
}

func (j *jsonldWriter) encodeEnd(out *bufio.Writer) error {
	j.buf.Reset()
	j.closeNode()
	j.openGraph(kg.DefaultGraph)
	if !j.started {
		j.buf.WriteByte('[')
	}
	j.buf.WriteString("\n]\n")
	_, err := out.Write(j.buf.Bytes())
	return err
}

// openGraph changes from the graph of the last quad to the given one.
func (j *jsonldWriter) openGraph(graph kg.Term) {
	if j.last.Graph == graph {
		return
	}
	if j.last.Graph.IsResource() {
		j.buf.WriteString("\n]}")
	}
	if graph.IsResource() {
		j.writeSeparator(&j.started)
		j.buf.WriteString(`{"@context":{},"@id":`)
		j.writeString(graph.Name())
		j.buf.WriteString(`,"@graph":`)
		j.nodes = false
	}
	j.last.Graph = graph
}

func (j *jsonldWriter) openNode(subject kg.Term) {
	if j.last.Graph.IsResource() {
		j.writeSeparator(&j.nodes)
	} else {
		j.writeSeparator(&j.started)
	}
	j.buf.WriteString(`{"@id":`)
	j.writeString(subject.Name())
	j.node, j.keys, j.size = true, map[string]bool{}, 0
}

func (j *jsonldWriter) closeNode() {
	if j.node {
		j.buf.WriteString("]}")
	}
	j.node = false
}

func (j *jsonldWriter) openProperty(key string) {
	j.buf.WriteByte(',')
	j.writeString(key)
	j.buf.WriteString(":[")
	j.key = key
	j.keys[key] = true
}

// writeSeparator begins an array or its next element.
func (j *jsonldWriter) writeSeparator(started *bool) {
	if *started {
		j.buf.WriteString(",\n")
	} else {
		j.buf.WriteString("[\n")
	}
	*started = true
}

func (j *jsonldWriter) writeValue(t kg.Term) {
	if t.IsResource() {
		j.buf.WriteString(`{"@id":`)
		j.writeString(t.Name())
		j.buf.WriteByte('}')
		return
	}
	j.buf.WriteString(`{"@value":`)
	j.writeString(t.Value())
	switch d := t.Datatype(); {
	case t.Lang() != "":
		j.buf.WriteString(`,"@language":`)
		j.writeString(t.Lang())
	case d != kg.XSDString:
		j.buf.WriteString(`,"@type":`)
		j.writeString(d)
	}
	j.buf.WriteByte('}')
}

func (j *jsonldWriter) writeString(s string) {
	enc := json.NewEncoder(&j.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	j.buf.Truncate(j.buf.Len() - 1) // the line break
}

package modelcontext

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// memoryTools are the tools of @modelcontextprotocol/server-memory 2026.8.31 as it lists them.
//
//go:embed memory.json
var memoryTools []byte

// The names of the memory in the graph. Names that users give are behind them, percent-encoded.
const (
	memoryNode     = "urn:memory:Node" // the class of subjects
	memoryEntity   = "urn:memory:entity:"
	memoryType     = "urn:memory:type:"
	memoryRelation = "urn:memory:relation:"
	observation    = "urn:memory:observation"
)

// memoryURI is the resource with the whole memory.
const memoryURI = "memory://knowledge-graph"

// MaxMemoryStatements bounds the statements of the memory that a call reads.
const MaxMemoryStatements = 50_000

// memory serves the tools of the reference memory server over the graph.
type memory struct{ tools }

type memoryItem struct {
	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`
}

type relation struct {
	From         string `json:"from"`
	To           string `json:"to"`
	RelationType string `json:"relationType"`
}

type memoryGraph struct {
	Entities  []memoryItem `json:"entities"`
	Relations []relation   `json:"relations"`
}

// listTools lists the tools of the memory.
func (m memory) listTools() []row {
	examples := map[string]struct {
		example string
		run     func(context.Context, json.RawMessage) (text, structured any, err error)
	}{
		"create_entities":     {`{"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes programs"]}]}`, m.createEntities},
		"create_relations":    {`{"relations": [{"from": "Ada", "to": "Note G", "relationType": "wrote"}]}`, m.createRelations},
		"add_observations":    {`{"observations": [{"entityName": "Ada", "contents": ["born in 1815"]}]}`, m.addObservations},
		"delete_entities":     {`{"entityNames": ["Ada"]}`, m.deleteEntities},
		"delete_observations": {`{"deletions": [{"entityName": "Ada", "observations": ["born in 1815"]}]}`, m.deleteObservations},
		"delete_relations":    {`{"relations": [{"from": "Ada", "to": "Note G", "relationType": "wrote"}]}`, m.deleteRelations},
		"read_graph":          {`{}`, m.readGraph},
		"search_nodes":        {`{"query": "program"}`, m.searchNodes},
		"open_nodes":          {`{"names": ["Ada"]}`, m.openNodes},
	}
	var list []*mcp.Tool
	var inputs []struct{ InputSchema *jsonschema.Schema }
	for _, into := range []any{&list, &inputs} {
		if err := json.Unmarshal(memoryTools, into); err != nil {
			panic(err) // the file is part of the program
		}
	}
	rows := make([]row, len(list))
	for i, tool := range list {
		of := examples[tool.Name]
		rows[i] = row{tool, inputs[i].InputSchema, of.example, func(s *mcp.Server) {
			s.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				defer reportProgress(ctx, r)()
				text, structured, err := of.run(ctx, r.Params.Arguments)
				if err != nil {
					return failedResult(err), nil
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: indentJSON(text)}}, StructuredContent: structured}, nil
			})
		}}
	}
	return rows
}

// addResource registers the resource with the whole memory.
func (m memory) addResource(s *mcp.Server) {
	resource := &mcp.Resource{URI: memoryURI, Name: "knowledge-graph", Title: "Knowledge Graph", Description: "The full knowledge graph with all entities and relations", MIMEType: "application/json"}
	s.AddResource(resource, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		g, _, err := m.readGraph(ctx, nil)
		if err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: memoryURI, MIMEType: "application/json", Text: indentJSON(g)}}}, nil
	})
}

// indentJSON returns a text as it is, and other values as JSON.stringify(value, null, 2) does.
func indentJSON(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// place orders statements as they were made: by revision, then as in the call.
type place struct{ revision, position int64 }

func (p place) comparePlace(q place) int {
	return cmp.Or(cmp.Compare(p.revision, q.revision), cmp.Compare(p.position, q.position))
}

// kept is a statement of the memory.
type kept struct {
	subject, predicate string
	object             map[string]any // as in a patch
	place              place
}

// nameIn returns the name that a user gave, and whether the IRI has one.
func nameIn(iri, prefix string) (string, bool) {
	escaped, ok := strings.CutPrefix(iri, prefix)
	if !ok {
		return "", false
	}
	name, err := url.PathUnescape(escaped)
	return name, err == nil
}

// loadStatements reads the statements of the named entities, of all without names.
func (m memory) loadStatements(ctx context.Context, names ...string) (list []kept, err error) {
	type statement struct {
		Predicate  string
		Object     struct{ ID, Value any }
		Assertions []struct {
			Revision   int64
			Provenance json.RawMessage
		}
	}
	const out = `(first: 200, after: $more) { nodes { predicate object { ... on Entity { id: iri } ... on Literal { value } } assertions { revision provenance } }` + pageInfo + ` }`
	add := func(subject string, statements []statement) error {
		for _, st := range statements {
			k := kept{subject: subject, predicate: st.Predicate, object: map[string]any{"id": st.Object.ID}}
			if st.Object.ID == nil {
				k.object = map[string]any{"value": st.Object.Value}
			}
			for i, a := range st.Assertions {
				var of struct{ Position int64 }
				_ = json.Unmarshal(a.Provenance, &of) // of others it may be anything
				if p := (place{a.Revision, of.Position}); i == 0 || p.comparePlace(k.place) < 0 {
					k.place = p
				}
			}
			if list = append(list, k); len(list) > MaxMemoryStatements {
				return fmt.Errorf("the memory has more than %d facts; use the tools of koine, which page", MaxMemoryStatements)
			}
		}
		return nil
	}
	where := map[string]any{"type": map[string]any{"eq": memoryNode}}
	if len(names) > 0 {
		iris := make([]string, len(names))
		for i, name := range names {
			iris[i] = memoryEntity + url.PathEscape(name)
		}
		where["iri"] = map[string]any{"in": iris}
	}
	variables := map[string]any{"where": where}
	for {
		var answer struct {
			Entities connection[struct {
				IRI string
				Out connection[statement]
			}]
		}
		if err := m.GraphQL(ctx, `query($where: EntityFilter, $after: Cursor, $more: Cursor) { entities(where: $where, first: 100, after: $after) { nodes { iri out`+out+` }`+pageInfo+` } }`, variables, &answer); err != nil {
			return nil, err
		}
		for _, n := range answer.Entities.Nodes {
			for page := n.Out; ; {
				if err := add(n.IRI, page.Nodes); err != nil {
					return nil, err
				}
				if !page.PageInfo.HasNextPage {
					break
				}
				var rest struct {
					Entity struct{ Out connection[statement] }
				}
				if err := m.GraphQL(ctx, `query($iri: IRI!, $more: Cursor) { entity(iri: $iri) { out`+out+` } }`, map[string]any{"iri": n.IRI, "more": page.PageInfo.EndCursor}, &rest); err != nil {
					return nil, err
				}
				page = rest.Entity.Out
			}
		}
		if !answer.Entities.PageInfo.HasNextPage {
			break
		}
		variables["after"] = answer.Entities.PageInfo.EndCursor
	}
	slices.SortStableFunc(list, func(a, b kept) int { return a.place.comparePlace(b.place) })
	return list, nil
}

// graphOf returns statements in the form of the memory server.
func graphOf(list []kept) memoryGraph {
	g := memoryGraph{Entities: []memoryItem{}, Relations: []relation{}}
	at := map[string]int{}
	for _, k := range list {
		class, _ := k.object["id"].(string)
		name, named := nameIn(k.subject, memoryEntity)
		if kind, ok := nameIn(class, memoryType); ok && named && k.predicate == rdfType {
			if _, double := at[k.subject]; !double {
				at[k.subject] = len(g.Entities)
				g.Entities = append(g.Entities, memoryItem{name, kind, []string{}})
			}
		}
	}
	for _, k := range list {
		name, _ := nameIn(k.subject, memoryEntity)
		object, _ := k.object["id"].(string)
		to, isNode := nameIn(object, memoryEntity)
		if kind, ok := nameIn(k.predicate, memoryRelation); ok && isNode {
			g.Relations = append(g.Relations, relation{name, to, kind})
		}
		if text, ok := k.object["value"].(string); ok && k.predicate == observation {
			if i, ok := at[k.subject]; ok {
				g.Entities[i].Observations = append(g.Entities[i].Observations, text)
			}
		}
	}
	return g
}

const (
	rdfType   = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
	rdfsLabel = "http://www.w3.org/2000/01/rdf-schema#label"
)

// edit collects patches.
type edit struct{ patches []map[string]any }

func (e *edit) addPatch(op, subject, predicate string, object map[string]any) {
	st := map[string]any{"subject": map[string]any{"id": subject}, "predicate": map[string]any{"id": predicate}, "object": object}
	if op == "add" {
		st["provenance"] = map[string]any{"position": len(e.patches)}
	}
	e.patches = append(e.patches, map[string]any{"op": op, "statement": st})
}

func (e *edit) removeStatement(k *kept) { e.addPatch("remove", k.subject, k.predicate, k.object) }

func (e *edit) addObservation(name, text string) {
	e.addPatch("add", memoryEntity+url.PathEscape(name), observation, map[string]any{"value": text})
}

// addRelation adds a relation. An IRI that is no entity yet becomes a node, so that loadStatements finds it.
func (e *edit) addRelation(r relation) {
	from := memoryEntity + url.PathEscape(r.From)
	e.addPatch("add", from, rdfType, map[string]any{"id": memoryNode})
	e.addPatch("add", from, memoryRelation+url.PathEscape(r.RelationType), map[string]any{"id": memoryEntity + url.PathEscape(r.To)})
}

// applyEdit applies the patches, if there are any.
func (m memory) applyEdit(ctx context.Context, e *edit) error {
	if len(e.patches) == 0 {
		return nil
	}
	text, out, err := m.applyPatches(ctx, "Changed", e.patches, "")
	if err == nil && out.Proposal != "" {
		err = fmt.Errorf("%s", text)
	}
	return err
}

func (m memory) createEntities(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct{ Entities []memoryItem }
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	var names []string
	for _, o := range a.Entities {
		names = append(names, o.Name)
	}
	known, err := m.findEntities(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	created := []memoryItem{}
	var e edit
	for _, o := range a.Entities {
		if slices.ContainsFunc(known.Entities, func(k memoryItem) bool { return k.Name == o.Name }) {
			continue
		}
		created = append(created, o)
		iri := memoryEntity + url.PathEscape(o.Name)
		e.addPatch("add", iri, rdfType, map[string]any{"id": memoryNode})
		e.addPatch("add", iri, rdfType, map[string]any{"id": memoryType + url.PathEscape(o.EntityType)})
		e.addPatch("add", iri, rdfsLabel, map[string]any{"value": o.Name})
		for _, text := range o.Observations {
			e.addObservation(o.Name, text)
		}
	}
	return created, map[string]any{"entities": created}, m.applyEdit(ctx, &e)
}

// findEntities loads named entities.
func (m memory) findEntities(ctx context.Context, names []string) (memoryGraph, error) {
	if len(names) == 0 {
		return graphOf(nil), nil
	}
	list, err := m.loadStatements(ctx, names...)
	return graphOf(list), err
}

func (m memory) createRelations(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct{ Relations []relation }
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	var names []string
	for _, r := range a.Relations {
		names = append(names, r.From)
	}
	known, err := m.findEntities(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	created := []relation{}
	var e edit
	for _, r := range a.Relations {
		if !slices.Contains(known.Relations, r) {
			created = append(created, r)
			e.addRelation(r)
		}
	}
	return created, map[string]any{"relations": created}, m.applyEdit(ctx, &e)
}

type added struct {
	EntityName        string   `json:"entityName"`
	AddedObservations []string `json:"addedObservations"`
}

// noEntity is the name of an entity that does not exist, as an error in the words of the
// reference.
type noEntity string

func (n noEntity) Error() string { return "Entity with name " + string(n) + " not found" }

func (m memory) addObservations(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct {
		Observations []struct {
			EntityName string
			Contents   []string
		}
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	var names []string
	for _, o := range a.Observations {
		names = append(names, o.EntityName)
	}
	known, err := m.findEntities(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	results := []added{}
	var e edit
	for _, o := range a.Observations {
		i := slices.IndexFunc(known.Entities, func(k memoryItem) bool { return k.Name == o.EntityName })
		if i < 0 {
			return nil, nil, noEntity(o.EntityName)
		}
		had := known.Entities[i].Observations
		r := added{o.EntityName, []string{}}
		for _, text := range o.Contents {
			if !slices.Contains(had, text) {
				r.AddedObservations = append(r.AddedObservations, text)
				e.addObservation(o.EntityName, text)
			}
		}
		known.Entities[i].Observations = append(had, r.AddedObservations...)
		results = append(results, r)
	}
	return results, map[string]any{"results": results}, m.applyEdit(ctx, &e)
}

// removeWhere removes the statements of the memory that a function selects.
func (m memory) removeWhere(ctx context.Context, message string, selected func(*kept) bool) (any, any, error) {
	list, err := m.loadStatements(ctx)
	if err != nil {
		return nil, nil, err
	}
	var e edit
	for i := range list {
		if selected(&list[i]) {
			e.removeStatement(&list[i])
		}
	}
	return message, map[string]any{"success": true, "message": message}, m.applyEdit(ctx, &e)
}

func (m memory) deleteEntities(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct{ EntityNames []string }
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	return m.removeWhere(ctx, "Entities deleted successfully", func(k *kept) bool {
		from, _ := nameIn(k.subject, memoryEntity)
		object, _ := k.object["id"].(string)
		to, isNode := nameIn(object, memoryEntity)
		return slices.Contains(a.EntityNames, from) || isNode && slices.Contains(a.EntityNames, to)
	})
}

func (m memory) deleteObservations(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct {
		Deletions []struct {
			EntityName   string
			Observations []string
		}
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	return m.removeWhere(ctx, "Observations deleted successfully", func(k *kept) bool {
		name, _ := nameIn(k.subject, memoryEntity)
		text, _ := k.object["value"].(string)
		for _, d := range a.Deletions {
			if k.predicate == observation && d.EntityName == name && slices.Contains(d.Observations, text) {
				return true
			}
		}
		return false
	})
}

func (m memory) deleteRelations(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct{ Relations []relation }
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	return m.removeWhere(ctx, "Relations deleted successfully", func(k *kept) bool {
		g := graphOf([]kept{*k})
		return len(g.Relations) == 1 && slices.Contains(a.Relations, g.Relations[0])
	})
}

// selectEntities returns the entities that a function selects, and the relations from or to them.
func (m memory) selectEntities(ctx context.Context, is func(*memoryItem) bool) (any, any, error) {
	list, err := m.loadStatements(ctx)
	if err != nil {
		return nil, nil, err
	}
	g := graphOf(list)
	names := map[string]bool{}
	g.Entities = slices.DeleteFunc(g.Entities, func(o memoryItem) bool {
		names[o.Name] = is(&o)
		return !names[o.Name]
	})
	g.Relations = slices.DeleteFunc(g.Relations, func(r relation) bool { return !names[r.From] && !names[r.To] })
	return g, g, nil
}

func (m memory) readGraph(ctx context.Context, _ json.RawMessage) (any, any, error) {
	list, err := m.loadStatements(ctx)
	g := graphOf(list)
	return g, g, err
}

func (m memory) searchNodes(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct{ Query string }
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(a.Query)) }
	return m.selectEntities(ctx, func(o *memoryItem) bool {
		return has(o.Name) || has(o.EntityType) || slices.ContainsFunc(o.Observations, has)
	})
}

func (m memory) openNodes(ctx context.Context, raw json.RawMessage) (any, any, error) {
	var a struct{ Names []string }
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, err
	}
	return m.selectEntities(ctx, func(o *memoryItem) bool { return slices.Contains(a.Names, o.Name) })
}

package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/vektah/gqlparser/v2/ast"
)

const (
	tablesPath   = "koine/graph"
	executorPath = "koine/graph/executor"
	scalarPath   = "koine/graph/internal/scalar"
)

// valuesPath is the package of the planned types: their values write themselves.
const valuesPath = "koine/graph/internal/knowledge"

// generator writes the text of a generated file.
type generator struct {
	data *codegen.Data
	pkg  string // import path of the generated package
	// values generates the file of the planned types, in a package that this one
	// imports; nil for that generator.
	values  *generator
	imports map[string]string // import path to name
	// coercers are the coercions by type; written are their texts.
	coercers map[string]string
	written  bytes.Buffer
	// encoders are the encoders by type; encoderVars declares them.
	encoders    map[string]string
	encoderVars bytes.Buffer
	objects     map[string]*codegen.Object
}

func newGenerator(data *codegen.Data, pkg string, values *generator) *generator {
	g := &generator{data: data, pkg: pkg, values: values, imports: map[string]string{}, coercers: map[string]string{}, encoders: map[string]string{}, objects: map[string]*codegen.Object{}}
	for _, o := range data.Objects {
		g.objects[o.Name] = o
	}
	return g
}

// sortedObjects returns the object types, in the order of their names.
func (g *generator) sortedObjects() []*codegen.Object {
	return slices.SortedFunc(maps.Values(g.objects), func(a, b *codegen.Object) int { return strings.Compare(a.Name, b.Name) })
}

// generateValues generates the file of the planned types: the arguments of their
// fields and of the root fields that have them, and the type conditions that they
// and the types of their fields satisfy.
func (g *generator) generateValues() ([]byte, error) {
	var body, args bytes.Buffer
	body.WriteString("// The type conditions that each object type satisfies.\nvar (\n")
	for _, o := range g.sortedObjects() {
		if g.isPlanned(o) {
			fmt.Fprintf(&body, "%s = %s\n", g.implementorsName(o.Name), g.implementors(o.Definition))
		}
		for _, f := range o.Fields {
			if len(f.Args) > 0 && g.hasValueArgs(o, f) {
				g.writeArgs(&args, o, f)
			}
		}
	}
	body.WriteString(")\n")
	if err := g.writeDispatches(&body); err != nil {
		return nil, err
	}
	body.Write(args.Bytes())
	body.Write(g.written.Bytes())
	return g.file(path.Base(g.pkg), body.Bytes())
}

// plannedByField are the planned types whose fields have one method each. Types
// with the same kind of plan share the methods: that one of them lacks a field that
// another has is seen when the field is requested.
var plannedByField = []plannedType{
	{plan: "entity", types: []string{"Entity"}},
	{plan: "statement", types: []string{"Statement"}},
	{plan: "connection", types: []string{"EntityConnection", "StatementConnection", "MatchConnection", "ChangeConnection", "DiffConnection", "FactConnection"}},
	{plan: "edge", types: []string{"EntityEdge", "StatementEdge", "MatchEdge", "ChangeEdge", "DiffEdge", "FactEdge"}},
	{plan: "row", types: []string{"MatchRow"}},
	{plan: "group", leaves: "group", types: []string{"Group"}},
	{plan: "count", leaves: "count", types: []string{"TermCount"}},
	{plan: "explanation", leaves: "explanation", types: []string{"MatchExplanation"}},
	{plan: "path", leaves: "path", types: []string{"GraphPath"}},
	{plan: "neighborhood", leaves: "neighborhood", types: []string{"Neighborhood"}},
	{plan: "difference", leaves: "difference", types: []string{"StatementDifference"}},
	{plan: "change", leaves: "change", types: []string{"StatementChange"}},
	{plan: "entityChange", leaves: "entityChange", types: []string{"EntityChange"}},
	{plan: "matchChange", leaves: "matchChange", types: []string{"MatchChange"}},
	{plan: "proposalChange", leaves: "proposalChange", types: []string{"ProposalChange"}, inTables: true},
	{plan: "searchChange", leaves: "searchChange", types: []string{"SearchChange"}, inTables: true},
	{plan: "replaced", leaves: "replaced", types: []string{"GraphReplaced"}},
	{leaves: "pageInfo", types: []string{"PageInfo"}},
	{leaves: "literal", types: []string{"Literal"}},
	{leaves: "step", types: []string{"MatchStep"}},
	{leaves: "assertion", types: []string{"Assertion"}},
	{leaves: "embedding", types: []string{"Embedding"}},
	{leaves: "commit", types: []string{"Commit"}},
	{leaves: "progress", types: []string{"Progress"}},
	{leaves: "resync", types: []string{"Resync"}},
}

// plannedType says how the fields of planned types are dispatched to methods of the
// package of values. A field without its method does not compile.
type plannedType struct {
	// plan is the prefix of the type whose methods plan the fields. Without it all
	// fields are leaves, or agents.
	plan string
	// leaves is the prefix of the type whose methods append the fields that have
	// neither arguments nor a selection. These need no plan.
	leaves string
	types  []string
	// inTables says that the methods are in the package of the tables.
	inTables bool
}

// writeDispatches writes the dispatch of the planned types of the package. Each type
// whose values write themselves has one.
func (g *generator) writeDispatches(b *bytes.Buffer) error {
	for _, o := range g.sortedObjects() {
		if g.isValue(o.Type) && !slices.ContainsFunc(plannedByField, func(t plannedType) bool { return slices.Contains(t.types, o.Name) }) {
			return fmt.Errorf("the fields of %s are not dispatched: add it to plannedByField", o.Name)
		}
	}
	for _, t := range plannedByField {
		if t.inTables != (g.values != nil) {
			continue
		}
		if err := g.writeDispatch(b, t); err != nil {
			return err
		}
	}
	return nil
}

// writeDispatch writes the methods that call the method of a field by its name.
func (g *generator) writeDispatch(b *bytes.Buffer, t plannedType) error {
	var plans, leaves, agents, objects strings.Builder
	seen := map[string]bool{}
	for _, name := range t.types {
		for _, f := range g.objects[name].Fields {
			if seen[f.Name] {
				continue
			}
			seen[f.Name] = true
			leaf := t.leaves != "" && len(f.Args) == 0 && g.objects[f.Type.Name()] == nil && !g.data.Schema.Types[f.Type.Name()].IsCompositeType()
			switch method := templates.ToGo(f.Name); {
			case leaf:
				fmt.Fprintf(&leaves, "case %q:\nreturn v.append%s(b)\n", f.Name, method)
				if t.plan != "" {
					fmt.Fprintf(&plans, "case %q:\nreturn nil\n", f.Name)
				}
			case t.plan != "":
				fmt.Fprintf(&plans, "case %q:\nreturn b.plan%s(f)\n", f.Name, method)
			case f.Type.Name() == "Agent" && len(f.Args) == 0:
				fmt.Fprintf(&agents, "case %q:\nreturn v.agent%s()\n", f.Name, method)
			case len(f.Args) == 0 && hasOnlyLeaves(f.Type.Name()):
				fmt.Fprintf(&objects, "case %q:\nreturn v.append%s(b, fields)\n", f.Name, method)
			default:
				return fmt.Errorf("%s.%s has arguments or a selection: give the type a plan in plannedByField", name, f.Name)
			}
		}
	}
	of := strings.Join(t.types, ", ")
	if t.plan != "" {
		fmt.Fprintf(b, "\n// planNamed plans a field of %s.\nfunc (b %sFieldPlan) planNamed(f %s.CollectedField) error {\nswitch f.Name {\ncase \"__typename\":\nreturn nil\n%s}\nreturn %s(f)\n}\n", of, t.plan, g.use("github.com/99designs/gqlgen/graphql"), plans.String(), g.qualified(valuesPath, "UnplannedField"))
	}
	if t.leaves != "" {
		fmt.Fprintf(b, "\n// appendNamed appends a field of %s that has neither arguments nor a selection.\nfunc (v %sLeaves) appendNamed(b []byte, name string) []byte {\nswitch name {\n%s}\nreturn append(b, \"null\"...)\n}\n", of, t.leaves, leaves.String())
	}
	if agents.Len() > 0 {
		fmt.Fprintf(b, "\n// agentNamed returns the agent of a field of %s.\nfunc (v %sLeaves) agentNamed(name string) %s.AgentID {\nswitch name {\n%s}\nreturn \"\"\n}\n", of, t.leaves, g.use("koine/kg"), agents.String())
	}
	if objects.Len() > 0 {
		fmt.Fprintf(b, "\n// appendObjectNamed appends a field of %s that is an object of scalars.\nfunc (v %sLeaves) appendObjectNamed(b []byte, name string, fields []scalarField) []byte {\nswitch name {\n%s}\nreturn append(b, \"null\"...)\n}\n", of, t.leaves, objects.String())
	}
	return nil
}

// hasOnlyLeaves reports whether the fields of a planned type are leaves.
func hasOnlyLeaves(name string) bool {
	return slices.ContainsFunc(plannedByField, func(t plannedType) bool { return t.plan == "" && slices.Contains(t.types, name) })
}

// isPlanned reports whether a type's fields are planned: its values write
// themselves, or are part of one that does.
func (g *generator) isPlanned(o *codegen.Object) bool {
	if g.isValue(o.Type) || hasOnlyLeaves(o.Name) {
		return true
	}
	for _, of := range g.objects {
		if !g.isValue(of.Type) {
			continue
		}
		for _, f := range of.Fields {
			if f.Type.Name() == o.Name {
				return true
			}
		}
	}
	return false
}

// hasValueArgs reports whether the arguments of a field are among those of the
// planned types. Those with a type of the package of tables are not.
func (g *generator) hasValueArgs(o *codegen.Object, f *codegen.Field) bool {
	ofTables := func(a *codegen.FieldArgument) bool {
		return strings.Contains(types.TypeString(a.TypeReference.GO, nil), tablesPath+".")
	}
	return g.isValue(o.Type) || o.Root && (g.isValue(f.TypeReference.GO) || g.isValueList(f)) && !slices.ContainsFunc(f.Args, ofTables)
}

func (g *generator) implementorsName(object string) string {
	switch {
	case g.values == nil:
		return templates.ToGo(object) + "Implementors"
	case g.isPlanned(g.objects[object]):
		return g.qualified(g.values.pkg, g.values.implementorsName(object))
	}
	return lower(object) + "Implementors"
}

func (g *generator) qualified(pkg, name string) string {
	if pkg == g.pkg {
		return name
	}
	return g.use(pkg) + "." + name
}

func (g *generator) generate() ([]byte, error) {
	var body bytes.Buffer
	objects := g.sortedObjects()
	var tables []*codegen.Object
	for _, o := range objects {
		if !g.isValue(o.Type) {
			tables = append(tables, o)
		}
	}
	body.WriteString("// The object types. newSchema fills them.\nvar (\n")
	for _, o := range tables {
		fmt.Fprintf(&body, "%s = &%s.Object{Name: %q, Implementors: %s}\n", objectVar(o.Name), g.use(executorPath), o.Name, g.implementorsName(o.Name))
	}
	body.WriteString(")\n\n// The type conditions that each object type satisfies.\nvar (\n")
	for _, o := range tables {
		if !g.isPlanned(o) {
			fmt.Fprintf(&body, "%s = %s\n", g.implementorsName(o.Name), g.implementors(o.Definition))
		}
	}
	body.WriteString(")\n")
	fmt.Fprintf(&body, "\n// newSchema returns the schema of the tables.\nfunc newSchema(schema *%s.Schema) *%s.Schema {\n", g.use("github.com/vektah/gqlparser/v2/ast"), g.use(executorPath))
	for _, o := range tables {
		fmt.Fprintf(&body, "%s.Fields = %sFields()\n", objectVar(o.Name), lower(o.Name))
	}
	fmt.Fprintf(&body, "return &%s.Schema{AST: schema, Query: queryObject, Mutation: mutationObject, Subscription: subscriptionObject}\n}\n", g.use(executorPath))
	for _, o := range tables {
		fmt.Fprintf(&body, "\nfunc %sFields() map[string]*%s.Field {\nreturn map[string]*%s.Field{\n", lower(o.Name), g.use(executorPath), g.use(executorPath))
		for _, f := range o.Fields {
			g.writeField(&body, o, f)
		}
		body.WriteString("}\n}\n")
	}
	if err := g.writeDispatches(&body); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(g.data.Interfaces)) {
		g.writeAbstract(&body, g.data.Interfaces[name])
	}
	for _, o := range objects {
		for _, f := range o.Fields {
			if len(f.Args) > 0 && !g.hasValueArgs(o, f) {
				g.writeArgs(&body, o, f)
			}
		}
	}
	body.Write(g.written.Bytes())
	fmt.Fprintf(&body, "\n// The encoders of the fields' values.\nvar (\n%s)\n", g.encoderVars.String())

	return g.file("graph", body.Bytes())
}

// file returns the text of a file with its imports.
func (g *generator) file(pkg string, body []byte) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Code generated by tablegen from schema.graphqls, DO NOT EDIT.\n\npackage %s\n\nimport (\n", pkg)
	for _, p := range slices.Sorted(maps.Keys(g.imports)) {
		name := ""
		if g.imports[p] != path.Base(p) {
			name = g.imports[p] + " "
		}
		fmt.Fprintf(&out, "%s%q\n", name, p)
	}
	out.WriteString(")\n\n")
	out.Write(body)
	text, err := format.Source(out.Bytes())
	if err != nil {
		return out.Bytes(), fmt.Errorf("%w in\n%s", err, out.Bytes())
	}
	return text, nil
}

// use imports a package and returns its name.
func (g *generator) use(importPath string) string {
	if name, ok := g.imports[importPath]; ok {
		return name
	}
	name := path.Base(importPath)
	for taken := true; taken; {
		taken = false
		for _, other := range g.imports {
			taken = taken || other == name
		}
		if taken {
			name += "2"
		}
	}
	g.imports[importPath] = name
	return name
}

func (g *generator) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == g.pkg {
			return ""
		}
		return g.use(p.Path())
	})
}

func (g *generator) implementors(def *ast.Definition) string {
	names := []string{strconv.Quote(def.Name)}
	for _, i := range g.data.Schema.GetImplements(def) {
		names = append(names, strconv.Quote(i.Name))
	}
	return "[]string{" + strings.Join(names, ", ") + "}"
}

func lower(name string) string {
	return templates.ToGoPrivate(strings.TrimLeft(name, "_")) + strings.Repeat("Meta", strings.Count(name, "__"))
}

func objectVar(name string) string { return lower(name) + "Object" }

// isValue reports whether a type is written by a plan of its own.
func (g *generator) isValue(t types.Type) bool {
	named, ok := types.Unalias(derefType(t)).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == executorPath && named.Obj().Name() == "Value"
}

func derefType(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// writeField writes the entry of a field in its object's table.
func (g *generator) writeField(b *bytes.Buffer, o *codegen.Object, f *codegen.Field) {
	executor := g.use(executorPath)
	if o.Root && o.Stream {
		fmt.Fprintf(b, "%q: %s.Subscribe(%s, (*subscriptionRoot).%s),\n", f.Name, executor, g.argsCoercer(o, f), f.GoFieldName)
		return
	}
	of := g.goType(o)
	write := g.encoder(f.TypeReference.GO, f.TypeReference, f.Type)
	name := f.GoFieldName
	if strings.HasPrefix(f.Name, "__") {
		name = templates.ToGo(f.Name)
	}
	switch plans := g.plans(o, f); {
	case plans && len(f.Args) > 0:
		fmt.Fprintf(b, "%q: %s.PlanArgs(%s, (*%s).%s, %s),\n", f.Name, executor, g.argsCoercer(o, f), of, name, write)
	case plans:
		fmt.Fprintf(b, "%q: %s.Plan((*%s).%s, %s),\n", f.Name, executor, of, name, write)
	case f.GoFieldType == codegen.GoFieldVariable && !o.Root:
		g.writeGet(b, f.Name, of, name, write)
	case len(f.Args) > 0:
		g.writeCall(b, o, f, name, write)
	default:
		if !f.MethodHasContext && !o.Root && f.NoErr {
			g.writeGet(b, f.Name, of, name+"()", write)
			return
		}
		form := map[[2]bool]string{{false, false}: "GetErr", {false, true}: "Get", {true, false}: "Read", {true, true}: "GetContext"}[[2]bool{f.MethodHasContext || o.Root, f.NoErr || f.Name == "__schema"}]
		fmt.Fprintf(b, "%q: %s.%s((*%s).%s, %s),\n", f.Name, executor, form, of, name, write)
	}
}

// writeGet writes the entry of a field that is got from memory: a function of its
// own, which is half as long as that of a generic constructor. Two of three fields
// are such.
func (g *generator) writeGet(b *bytes.Buffer, field, of, get, write string) {
	fmt.Fprintf(b, "%q: %[2]s.WrittenBy(func(w *%[2]s.Writer, s *%[2]s.Selected, o any) error { return %[3]s(w, s, o.(*%[4]s).%[5]s) }),\n", field, g.use(executorPath), write, of, get)
}

// writeCall writes the entry of a field whose arguments its function gets one by
// one.
func (g *generator) writeCall(b *bytes.Buffer, o *codegen.Object, f *codegen.Field, name, write string) {
	var args []string
	if f.MethodHasContext || o.Root {
		args = append(args, "ctx")
	}
	for _, a := range f.Args {
		args = append(args, "a."+argField(a.Name))
	}
	result := fmt.Sprintf("o.%s(%s)", name, strings.Join(args, ", "))
	if f.GoFieldType != codegen.GoFieldMethod && !o.Root {
		result = "o." + name
	}
	if f.NoErr || f.Name == "__type" || f.GoFieldType != codegen.GoFieldMethod && !o.Root {
		result += ", nil"
	}
	fmt.Fprintf(b, "%q: %s.ReadArgs(%s, func(o *%s, ctx %s.Context, a *%s) (%s, error) {\nreturn %s\n}, %s),\n",
		f.Name, g.use(executorPath), g.argsCoercer(o, f), g.goType(o), g.use("context"), g.argsType(o, f), g.typeName(f.TypeReference.GO), result, write)
}

// goType returns the Go type of an object.
func (g *generator) goType(o *codegen.Object) string {
	if o.Root {
		return lower(o.Name) + "Root"
	}
	return g.typeName(o.Type)
}

// plans reports whether a field's function plans its selection.
func (g *generator) plans(o *codegen.Object, f *codegen.Field) bool {
	if o.Root {
		return g.isValue(f.TypeReference.GO) || g.isValueList(f) || f.Name == "node"
	}
	return f.IsResolver
}

// isValueList reports whether a field is a list of values that write
// themselves. Its function returns one Value for the list.
func (g *generator) isValueList(f *codegen.Field) bool {
	o := g.objects[f.Type.Name()]
	return f.Type.Elem != nil && o != nil && g.isValue(o.Type)
}

// encoder returns the expression of the encoder of a type.
func (g *generator) encoder(t types.Type, ref *config.TypeReference, gql *ast.Type) string {
	def := g.data.Schema.Types[gql.Name()]
	executor := g.use(executorPath)
	if o := g.objects[def.Name]; o != nil && g.isValue(o.Type) {
		return executor + ".WriteValue"
	}
	key := g.typeName(t) + " " + def.Name
	if name, ok := g.encoders[key]; ok {
		return name
	}
	var name, text string
	slice, _ := t.Underlying().(*types.Slice)
	switch pointer, _ := t.(*types.Pointer); {
	case gql.Elem != nil && slice != nil:
		if _, isStruct := slice.Elem().Underlying().(*types.Struct); isStruct && def.Kind == ast.Object {
			name, text = "write"+def.Name+"List", fmt.Sprintf("%s.ObjectsOf[%s](%s)", executor, g.typeName(slice.Elem()), objectVar(def.Name))
		} else {
			name, text = "write"+def.Name+"List", fmt.Sprintf("%s.ListOf(%s)", executor, g.encoder(slice.Elem(), ref, gql.Elem))
		}
	case pointer != nil && def.Kind == ast.Object:
		name, text = "write"+def.Name, fmt.Sprintf("%s.ObjectOf[%s](%s)", executor, g.typeName(pointer.Elem()), objectVar(def.Name))
	case pointer != nil:
		name, text = "writeOptional"+def.Name, fmt.Sprintf("%s.Optional(%s)", executor, g.encoder(pointer.Elem(), ref, gql))
	case def.Kind == ast.Object:
		name, text = "write"+def.Name+"In", fmt.Sprintf("%s.ObjectIn[%s](%s)", executor, g.typeName(t), objectVar(def.Name))
	case def.IsAbstractType():
		return "write" + def.Name
	default:
		name, text = "write"+def.Name, fmt.Sprintf("%s.Leaf(%s)", executor, g.leaf(t, def))
	}
	name = strings.ReplaceAll(name, "__", "Meta")
	for taken := true; taken; {
		taken = false
		for _, other := range g.encoders {
			taken = taken || other == name
		}
		if taken {
			name += "2"
		}
	}
	g.encoders[key] = name
	fmt.Fprintf(&g.encoderVars, "%s = %s\n", name, text)
	return name
}

// leaf returns the function that appends a scalar or an enum.
func (g *generator) leaf(t types.Type, def *ast.Definition) string {
	basic, _ := t.Underlying().(*types.Basic)
	switch {
	case def.Name == "Int":
		return g.use(scalarPath) + ".AppendInt[" + g.typeName(t) + "]"
	case basic != nil && basic.Kind() == types.String:
		return g.use(scalarPath) + ".AppendText[" + g.typeName(t) + "]"
	}
	return g.use(scalarPath) + ".Append" + def.Name
}

// writeAbstract writes the encoder of an interface or a union.
func (g *generator) writeAbstract(b *bytes.Buffer, i *codegen.Interface) {
	if g.isValue(i.Type) {
		return
	}
	fmt.Fprintf(b, "\nfunc write%s(w *%[2]s.Writer, s *%[2]s.Selected, v %[3]s) error {\nswitch v := v.(type) {\n", i.Name, g.use(executorPath), g.typeName(i.Type))
	value, seen := false, map[string]bool{}
	for _, m := range i.Implementors {
		if g.isValue(m.Type) {
			value = true
			continue
		}
		if seen[m.Name] {
			continue
		}
		seen[m.Name] = true
		fmt.Fprintf(b, "case *%s:\nreturn w.Object(s.On(%s), v)\n", g.typeName(derefType(m.Type)), objectVar(m.Name))
	}
	if value {
		fmt.Fprintf(b, "case %[1]s.Value:\nreturn %[1]s.WriteValue(w, s, v)\n", g.use(executorPath))
	}
	b.WriteString("}\nreturn w.Nil(s)\n}\n")
}

func argsName(o *codegen.Object, f *codegen.Field) string {
	return strings.TrimLeft(o.Name, "_") + templates.ToGo(f.Name)
}

// argsType returns the name of the struct of a field's arguments.
func (g *generator) argsType(o *codegen.Object, f *codegen.Field) string {
	switch {
	case g.values == nil:
		return argsName(o, f) + "Args"
	case g.hasValueArgs(o, f):
		return g.qualified(g.values.pkg, g.values.argsType(o, f))
	}
	return lowerFirst(argsName(o, f)) + "Args"
}

// argsCoercer returns the name of the function that coerces a field's arguments.
func (g *generator) argsCoercer(o *codegen.Object, f *codegen.Field) string {
	switch {
	case g.values == nil:
		return "Coerce" + argsName(o, f) + "Args"
	case g.hasValueArgs(o, f):
		return g.qualified(g.values.pkg, g.values.argsCoercer(o, f))
	}
	return "coerce" + argsName(o, f) + "Args"
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func argField(name string) string { return templates.ToGo(name) }

// writeArgs writes the struct of a field's arguments and their coercion.
func (g *generator) writeArgs(b *bytes.Buffer, o *codegen.Object, f *codegen.Field) {
	name, coerce := g.argsType(o, f), g.argsCoercer(o, f)
	fmt.Fprintf(b, "\n// %[1]s are the arguments of %s.%s.\ntype %[1]s struct {\n", name, o.Name, f.Name)
	for _, a := range f.Args {
		fmt.Fprintf(b, "%s %s\n", argField(a.Name), g.typeName(a.TypeReference.GO))
	}
	fmt.Fprintf(b, "}\n\n")
	if g.values == nil {
		fmt.Fprintf(b, "// %s coerces the arguments of %s.%s.\n", coerce, o.Name, f.Name)
	}
	fmt.Fprintf(b, "func %[1]s(c *%[2]s.Coercer, raw map[string]any) (*%[3]s, error) {\na, in := &%[3]s{}, %[2]s.Arguments(c, raw)\n", coerce, g.use(executorPath), name)
	for _, a := range f.Args {
		fmt.Fprintf(b, "%s.Member(in, %q, &a.%s, %s)\n", g.use(executorPath), a.Name, argField(a.Name), g.coercer(a.TypeReference.GO, a.TypeReference, a.Type))
	}
	b.WriteString("return a, in.Err()\n}\n")
}

// coercer returns the name of the function that coerces to a type.
func (g *generator) coercer(t types.Type, ref *config.TypeReference, gql *ast.Type) string {
	def := g.data.Schema.Types[gql.Name()]
	prefix := "coerce"
	if g.values == nil {
		prefix = "Coerce"
	}
	name := prefix
	if _, pointer := t.(*types.Pointer); pointer {
		name += "Optional"
	}
	name += def.Name
	for e := gql; e.Elem != nil; e = e.Elem {
		name += "List"
	}
	if gql.Elem != nil && !gql.NonNull || gql.Elem == nil && !gql.NonNull && name == prefix+def.Name {
		name = strings.Replace(name, prefix, prefix+"Nullable", 1)
	}
	key := strings.TrimPrefix(name, prefix) + " " + t.String()
	if g.values != nil {
		if known, ok := g.values.coercers[key]; ok {
			return g.qualified(g.values.pkg, known)
		}
	}
	if known, ok := g.coercers[key]; ok {
		return known
	}
	unique := name
	for n := 2; slices.Contains(slices.Collect(maps.Values(g.coercers)), unique); n++ {
		unique = name + strconv.Itoa(n)
	}
	g.coercers[key] = unique
	text := g.coercion(t, ref, gql, def)
	if g.values == nil {
		fmt.Fprintf(&g.written, "\n// %s coerces a value to %s.\n", unique, gql.String())
	}
	if strings.Count(text, "\n") == 1 {
		fmt.Fprintf(&g.written, "func %s(c *%s.Coercer, v any) (%s, error) { %s }\n", unique, g.use(executorPath), g.typeName(t), strings.TrimSpace(text))
	} else {
		fmt.Fprintf(&g.written, "func %s(c *%s.Coercer, v any) (out %s, err error) {\n%s}\n\n", unique, g.use(executorPath), g.typeName(t), text)
	}
	return unique
}

func (g *generator) coercion(t types.Type, ref *config.TypeReference, gql *ast.Type, def *ast.Definition) string {
	required := *gql
	required.NonNull = true
	switch {
	case gql.Elem != nil && !isPointer(t):
		elem := t.Underlying().(*types.Slice).Elem()
		null := ""
		if !gql.NonNull {
			null = "if v == nil { return nil, nil }\n"
		}
		return null + fmt.Sprintf("return %s.CoerceList(c, v, %s)\n", g.use(executorPath), g.coercer(elem, ref, gql.Elem))
	case isPointer(t):
		return fmt.Sprintf("return %s.CoerceOptional(c, v, %s)\n", g.use(executorPath), g.coercer(derefType(t), ref, &required))
	case def.Kind == ast.InputObject:
		return g.inputCoercion(t, def)
	}
	null := ""
	if config.IsNilable(t) && !gql.NonNull {
		null = "if v == nil { return nil, nil }\n"
	}
	switch {
	case ref.Unmarshaler != nil:
		call := ref.Unmarshaler.Name()
		if p := ref.Unmarshaler.Pkg().Path(); p != g.pkg {
			call = g.use(p) + "." + call
		}
		args := "v"
		if ref.IsContext {
			args = "c.Ctx, v"
		}
		if ref.CastType != nil {
			return null + fmt.Sprintf("text, err := %s(%s)\nreturn %s(text), err\n", call, args, g.typeName(t))
		}
		return null + fmt.Sprintf("return %s(%s)\n", call, args)
	}
	return null + "err = (&out).UnmarshalGQL(v)\nreturn out, err\n"
}

func isPointer(t types.Type) bool {
	_, ok := t.(*types.Pointer)
	return ok
}

// inputCoercion returns the statements that coerce an input object.
func (g *generator) inputCoercion(t types.Type, def *ast.Definition) string {
	input := g.data.Inputs.ByName(def.Name)
	var b strings.Builder
	fmt.Fprintf(&b, "in := %s.InputObject(c, v)\n", g.use(executorPath))
	for _, f := range input.Fields {
		coerce := g.coercer(f.TypeReference.GO, f.TypeReference, f.Type)
		if f.Default != nil {
			fmt.Fprintf(&b, "%s.MemberOr(in, %q, %#v, &out.%s, %s)\n", g.use(executorPath), f.Name, f.Default, f.GoFieldName, coerce)
		} else {
			fmt.Fprintf(&b, "%s.Member(in, %q, &out.%s, %s)\n", g.use(executorPath), f.Name, f.GoFieldName, coerce)
		}
	}
	b.WriteString("return out, in.Err()\n")
	return b.String()
}

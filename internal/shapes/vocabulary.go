package shapes

import "koine/kg"

const (
	sh   = "http://www.w3.org/ns/shacl#"
	rdfs = "http://www.w3.org/2000/01/rdf-schema#"
	owl  = "http://www.w3.org/2002/07/owl#"
)

var (
	rdfType    = kg.IRI(kg.RDFType)
	rdfFirst   = kg.IRI(kg.RDF + "first")
	rdfRest    = kg.IRI(kg.RDF + "rest")
	rdfNil     = kg.IRI(kg.RDF + "nil")
	subClassOf = kg.IRI(rdfs + "subClassOf")
	imports    = kg.IRI(owl + "imports")
)

func shTerm(name string) kg.Term { return kg.IRI(sh + name) }

// The severities of findings. Only Violation rejects an update.
var (
	Violation = shTerm("Violation")
	Warning   = shTerm("Warning")
	Info      = shTerm("Info")
)

func namesOf(list ...string) map[string]bool { return setOf(list) }

// descriptiveProperties are properties without effect on validation: for people, forms, reports or
// queries.
var descriptiveProperties = namesOf(
	"name", "description", "order", "group", "defaultValue", "labelTemplate", "optional",
	"prefixes", "declare", "prefix", "namespace", "suggestedShapesGraph",
	"conforms", "result", "detail", "focusNode", "resultMessage", "resultPath", "resultSeverity",
	"sourceConstraint", "sourceConstraintComponent", "sourceShape", "value", "shapesGraphWellFormed",
)

// shapeProperties are the properties of a shape that are not constraint parameters.
var shapeProperties = namesOf(
	"targetNode", "targetClass", "targetSubjectsOf", "targetObjectsOf", "severity", "message", "deactivated", "path",
	"flags", "ignoredProperties", "qualifiedMinCount", "qualifiedMaxCount", "qualifiedValueShapesDisjoint",
)

var pathProperties = namesOf("alternativePath", "inversePath", "zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath")

// unsupportedProperties are the unsupported properties of SHACL and its extensions, with
// a description of each.
var unsupportedProperties = map[string]string{
	"sparql":     "a constraint in SPARQL",
	"js":         "a constraint in JavaScript",
	"expression": "a constraint by a node expression",
	"target":     "a computed target",
	"rule":       "a rule that infers statements",
	"values":     "values that a node expression computes",
	"entailment": "an entailment regime",

	"shapesGraph": "a link to further shapes",

	"parameter":         "part of a constraint component",
	"validator":         "part of a constraint component",
	"nodeValidator":     "part of a constraint component",
	"propertyValidator": "part of a constraint component",

	"ask": "a query in SPARQL", "select": "a query in SPARQL", "construct": "a query in SPARQL", "update": "an update in SPARQL",
	"resultAnnotation": "part of a query in SPARQL", "annotationProperty": "part of a query in SPARQL",
	"annotationVarName": "part of a query in SPARQL", "annotationValue": "part of a query in SPARQL",

	"jsLibrary": "JavaScript", "jsFunctionName": "JavaScript", "jsLibraryURL": "JavaScript",

	"subject": "part of a rule", "predicate": "part of a rule", "object": "part of a rule", "condition": "part of a rule",
	"returnType": "part of a function",

	"filterShape": "a node expression", "nodes": "a node expression", "intersection": "a node expression", "union": "a node expression",
}

// harmless are the unsupported properties that do not change the result for a node.
var harmless = namesOf("target", "rule", "entailment", "shapesGraph")

// classes are the classes without unsupported instances.
var classes = namesOf(
	"NodeShape", "PropertyShape", "Shape", "PropertyGroup", "Severity", "NodeKind", "Parameter", "PrefixDeclaration",
	"AbstractResult", "ValidationReport", "ValidationResult",
)

var unsupportedClasses = map[string]string{
	"ConstraintComponent": "a custom constraint component",
	"Parameterizable":     "a custom parameterizable",
	"Validator":           "a validator", "SPARQLAskValidator": "a validator in SPARQL", "SPARQLSelectValidator": "a validator in SPARQL", "JSValidator": "a validator in JavaScript",
	"SPARQLConstraint": "a constraint in SPARQL", "JSConstraint": "a constraint in JavaScript",
	"Target": "a computed target", "SPARQLTarget": "a target in SPARQL", "JSTarget": "a target in JavaScript",
	"TargetType": "a type of targets", "SPARQLTargetType": "a type of targets in SPARQL", "JSTargetType": "a type of targets in JavaScript",
	"Rule": "a rule that infers statements", "TripleRule": "a rule that infers statements", "SPARQLRule": "a rule in SPARQL", "JSRule": "a rule in JavaScript",
	"Function": "a function", "SPARQLFunction": "a function in SPARQL", "JSFunction": "a function in JavaScript",
	"JSLibrary": "JavaScript", "JSExecutable": "JavaScript",
	"SPARQLExecutable": "SPARQL", "SPARQLAskExecutable": "SPARQL", "SPARQLSelectExecutable": "SPARQL",
	"SPARQLConstructExecutable": "SPARQL", "SPARQLUpdateExecutable": "SPARQL",
	"ResultAnnotation": "part of a query in SPARQL",
}

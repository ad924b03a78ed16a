package policy

import "koine/kg"

// The vocabulary of policies: statements in kg.SystemGraph about a graph's IRI,
// or about defaultGraphName.
//
//	<graph> rdf:type              koine:GraphPolicy
//	<graph> koine:graphVisibility "public" or "private"
//	<graph> koine:graphOwner      "agent://dora", "role:curator"    (any number)
//	<graph> koine:graphWriter     as above, or "*"                  (any number)
//	<graph> koine:graphReader     as above, or "*"                  (any number)
//	<graph> koine:graphMaker      "agent://dora"    who asked for it
//	<graph> koine:graphMade       true    it came into being with its policy
//	<graph> koine:graphDeleted    true    it was deleted
//	<graph> koine:graphChanged    17      the revision that made the policy what it is
var (
	typeOf       = kg.IRI(kg.RDFType)
	classTerm    = kg.IRI(kg.OwnVocabulary + "GraphPolicy")
	visibility   = kg.IRI(kg.OwnVocabulary + "graphVisibility")
	owner        = kg.IRI(kg.OwnVocabulary + "graphOwner")
	writer       = kg.IRI(kg.OwnVocabulary + "graphWriter")
	reader       = kg.IRI(kg.OwnVocabulary + "graphReader")
	creator      = kg.IRI(kg.OwnVocabulary + "graphMaker")
	createdEmpty = kg.IRI(kg.OwnVocabulary + "graphMade")
	deleted      = kg.IRI(kg.OwnVocabulary + "graphDeleted")
	changedIn    = kg.IRI(kg.OwnVocabulary + "graphChanged")

	public  = kg.String("public")
	private = kg.String("private")
	yes     = kg.Boolean(true)
)

// predicates are all that a policy consists of but its class.
var predicates = [...]kg.Term{visibility, owner, writer, reader, creator, createdEmpty, deleted, changedIn}

// statementsOfPolicies are those with the predicates.
var statementsOfPolicies = func() (list []kg.Pattern) {
	for _, p := range predicates {
		list = append(list, kg.Pattern{Predicate: p, Graph: kg.SystemGraph})
	}
	return list
}()

// defaultGraphName stands for the default graph, which has no name, as a subject.
var defaultGraphName = kg.IRI(kg.OwnGraphPrefix + "default")

// subjectOf is what the statements of a graph's policy are about, graphOf the
// graph that they are about.
func subjectOf(graph kg.Term) kg.Term {
	if graph == kg.DefaultGraph {
		return defaultGraphName
	}
	return graph
}

func graphOf(subject kg.Term) kg.Term {
	if subject == defaultGraphName {
		return kg.DefaultGraph
	}
	return subject
}

// policyStatement is one about the graph.
func policyStatement(graph, predicate, object kg.Term) kg.Quad {
	return kg.Quad{Subject: subjectOf(graph), Predicate: predicate, Object: object, Graph: kg.SystemGraph}
}

// toStatements are what the policy is written as, but for when it changed.
func (p *Policy) toStatements() []kg.Quad {
	var out []kg.Quad
	say := func(predicate, object kg.Term) { out = append(out, policyStatement(p.Graph, predicate, object)) }
	say(typeOf, classTerm)
	if p.Public {
		say(visibility, public)
	} else {
		say(visibility, private)
	}
	for _, part := range [...]struct {
		predicate kg.Term
		list      []Grantee
	}{{owner, p.Owners}, {writer, p.Writers}, {reader, p.Readers}} {
		for _, g := range part.list {
			say(part.predicate, kg.String(string(g)))
		}
	}
	if p.Creator != "" {
		say(creator, kg.String(string(p.Creator)))
	}
	if p.CreatedEmpty {
		say(createdEmpty, yes)
	}
	if p.Deleted {
		say(deleted, yes)
	}
	return out
}

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
//	<graph> koine:graphMaker      "agent://dora"    the creator
//	<graph> koine:graphMade       true    created empty
//	<graph> koine:graphDeleted    true    deleted
//	<graph> koine:graphChanged    17      revision of the last change
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

// predicates are the predicates of policies, except the class.
var predicates = [...]kg.Term{visibility, owner, writer, reader, creator, createdEmpty, deleted, changedIn}

// statementsOfPolicies match the statements of policies.
var statementsOfPolicies = func() (list []kg.Pattern) {
	for _, p := range predicates {
		list = append(list, kg.Pattern{Predicate: p, Graph: kg.SystemGraph})
	}
	return list
}()

// defaultGraphName is the subject for the default graph, which has no name.
var defaultGraphName = kg.IRI(kg.OwnGraphPrefix + "default")

// subjectOf returns the subject of the statements about a graph's policy; graphOf is
// its inverse.
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

// policyStatement returns a statement about the graph's policy.
func policyStatement(graph, predicate, object kg.Term) kg.Quad {
	return kg.Quad{Subject: subjectOf(graph), Predicate: predicate, Object: object, Graph: kg.SystemGraph}
}

// toStatements returns the stored statements of the policy, without the revision of its
// change.
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

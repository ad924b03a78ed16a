package demo

import "koine/kg"

// commit is one step of the team's work: a file of statements, single statements, or
// both.
type commit struct {
	by        kg.AgentID
	why       string
	task      string
	certainty float64 // 0: facts
	evidence  string  // JSON, the provenance of the statements
	file      string
	claims    []claim
}

type claim struct {
	op                         kg.Op
	subject, predicate, object kg.Term
}

const (
	ada   kg.AgentID = "agent://ada"
	bruno kg.AgentID = "agent://bruno"
	chen  kg.AgentID = "agent://chen"
	dora  kg.AgentID = "agent://dora"
)

func labIRI(name string) kg.Term { return kg.IRI(Prefixes["lab"] + name) }

func findingIRI(n string) kg.Term { return kg.IRI(Prefixes["finding"] + n) }

// history lists the commits of the graph, oldest first.
var history = []commit{
	{by: ada, why: "The team and its question", file: "1-team.trig"},
	{by: bruno, why: "Read two papers on water in the crystal", task: "read-literature", certainty: 0.7,
		evidence: `{"method":"reading","document":"paper-1","page":4}`, file: "2-papers.trig"},
	{by: chen, why: "Two runs of 100 cycles", task: "cycle-cells", certainty: 0.95,
		evidence: `{"method":"measurement","instrument":"cycler 2"}`, file: "3-bench.trig"},
	{by: chen, why: "What the two runs say", task: "cycle-cells", certainty: 0.85,
		evidence: `{"method":"inference","from":["run-7","run-8"]}`, file: "4-findings.trig"},
	{by: bruno, why: "A second paper bears the first one out", task: "read-literature", certainty: 0.6,
		evidence: `{"method":"reading","document":"paper-2"}`,
		claims: []claim{
			{kg.Add, findingIRI("1"), labIRI("supportedBy"), labIRI("paper-2")},
			{kg.Add, findingIRI("2"), labIRI("answers"), labIRI("question-1")},
		}},
	{by: dora, why: "Both runs used the same lot of salt", task: "review", certainty: 0.55,
		evidence: `{"method":"review","of":["finding/1","finding/2"]}`, file: "5-review.trig"},
	{by: dora, why: "Doubts on both findings", task: "review", certainty: 0.4,
		evidence: `{"method":"review"}`,
		claims: []claim{
			{kg.Add, findingIRI("1"), labIRI("supportedBy"), labIRI("paper-1")},
			{kg.Add, findingIRI("2"), labIRI("contradicts"), findingIRI("1")},
			{kg.Add, labIRI("prussian-white"), labIRI("capacity"), kg.Typed("121.0", kg.XSDDecimal)},
		}},
	{by: bruno, why: "The capacity in the paper was that of another material", task: "read-literature",
		claims: []claim{{kg.Remove, labIRI("prussian-white"), labIRI("capacity"), kg.Typed("154.0", kg.XSDDecimal)}}},
	{by: ada, why: "Two findings contradict each other: a third run will decide",
		claims: []claim{
			{kg.Replace, labIRI("question-1"), labIRI("status"), kg.String("in review")},
			{kg.Add, labIRI("question-1"), labIRI("disputedBy"), findingIRI("2")},
			{kg.Add, labIRI("question-1"), labIRI("disputedBy"), findingIRI("3")},
		}},
}

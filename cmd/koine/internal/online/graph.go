package online

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"koine/cmd/koine/internal/cli"
)

// GraphCommand groups the commands for named graphs and their policies.
type GraphCommand struct {
	List   listGraphs  `cmd:"" help:"List the graphs that you may read or write."`
	Show   showGraph   `cmd:"" help:"Show a graph and its policy."`
	Create createGraph `cmd:"" help:"Create a graph and print its IRI."`
	Policy setPolicy   `cmd:"" help:"Set who may read and write a graph."`
	Delete deleteGraph `cmd:"" help:"Delete a graph with all its statements."`
}

// Help is shown by --help.
func (GraphCommand) Help() string {
	return `Principals are agents (agent://dora, or dora), roles (role:reviewer), and * for everyone.

Examples:
  koine graph create agent://dora/notes --reader chen --as dora
  koine graph list
  koine graph policy agent://dora/notes --reader chen --reader role:reviewer --as dora
  koine graph delete agent://dora/notes --as dora`
}

const graphFields = `{ iri statementCount rights policy { visibility owners writers readers revision } }`

// graphInfo is a graph as graphFields selects it.
type graphInfo struct {
	IRI            string
	StatementCount uint64
	Rights         []string
	Policy         *struct {
		Visibility               string
		Owners, Writers, Readers []string
	}
}

const defaultGraphName = "(default graph)"

var graphObjects = objects[graphInfo]{
	columns: []string{"GRAPH", "STATEMENTS", "RIGHTS", "VISIBILITY", "OWNERS", "WRITERS", "READERS"},
	row: func(g *graphInfo) []string {
		row := []string{cmp.Or(g.IRI, defaultGraphName), strconv.FormatUint(g.StatementCount, 10), joinCells(g.Rights), "", "", "", ""}
		if p := g.Policy; p != nil {
			copy(row[3:], []string{strings.ToLower(p.Visibility), joinCells(p.Owners), joinCells(p.Writers), joinCells(p.Readers)})
		}
		return row
	},
}

// joinCells joins enum values or principals into one cell.
func joinCells(list []string) string {
	text := strings.Join(list, " ")
	if text == strings.ToUpper(text) {
		return strings.ToLower(text)
	}
	return text
}

type listGraphs struct {
	cli.ServerFlags
	cli.OutputFlags
}

// Run prints a row for each graph.
func (c *listGraphs) Run(ctx context.Context, t cli.Terminal) error {
	const query = `query($first: Int, $after: Cursor) { graphs(first: $first, after: $after) { nodes ` + graphFields + cli.PageFields + ` } }`
	return graphObjects.printAll(ctx, t, &c.ServerFlags, c.OutputFlags, query, "graphs", map[string]any{})
}

type showGraph struct {
	IRI string `arg:"" optional:"" help:"Graph to show (default: the default graph)."`
	cli.ServerFlags
	cli.OutputFlags
}

// Run prints the graph.
func (c *showGraph) Run(ctx context.Context, t cli.Terminal) error {
	variables := map[string]any{}
	if c.IRI != "" {
		variables["iri"] = c.IRI
	}
	return graphObjects.printOne(ctx, t, &c.ServerFlags, c.OutputFlags, "graph <"+c.IRI+">", `query($iri: IRI) { one: graph(iri: $iri) `+graphFields+` }`, variables)
}

// graphPolicyFlags set the visibility and the access lists of a graph.
type graphPolicyFlags struct {
	Visibility string   `help:"Who may read the graph: public (everyone) or private." enum:"public,private," default:"" placeholder:"public|private"`
	Owner      []string `help:"Principal with all rights on the graph; may be repeated." placeholder:"PRINCIPAL"`
	Writer     []string `help:"Principal that may read and write the graph; may be repeated." placeholder:"PRINCIPAL"`
	Reader     []string `help:"Principal that may read the graph; may be repeated." placeholder:"PRINCIPAL"`
	Why        string   `help:"Justification for the history." placeholder:"TEXT"`
}

// policyInput returns the mutation's input with the flags that were given. The server
// keeps the old value or uses the default for the others.
func (p *graphPolicyFlags) policyInput(iri string) map[string]any {
	in := map[string]any{}
	if iri != "" {
		in["iri"] = iri
	}
	if p.Visibility != "" {
		in["visibility"] = strings.ToUpper(p.Visibility)
	}
	for name, list := range map[string][]string{"owners": p.Owner, "writers": p.Writer, "readers": p.Reader} {
		if list != nil {
			in[name] = list
		}
	}
	if p.Why != "" {
		in["justification"] = p.Why
	}
	return in
}

type createGraph struct {
	IRI string `arg:"" optional:"" help:"IRI of the graph, below your own agent id (default: a generated one)."`
	cli.ServerFlags
	graphPolicyFlags
	JSON bool `help:"Print the graph as JSON."`
}

// Run prints the IRI of the graph.
func (c *createGraph) Run(ctx context.Context, t cli.Terminal) error {
	return runGraphMutation(ctx, t, &c.ServerFlags, `mutation($input: CreateGraphInput!) { made: createGraph(input: $input) { graph `+graphFields+` } }`, c.policyInput(c.IRI), c.JSON)
}

// runGraphMutation creates a graph or changes its policy, and prints its IRI.
func runGraphMutation(ctx context.Context, t cli.Terminal, s *cli.ServerFlags, mutation string, input map[string]any, asJSON bool) error {
	server, err := s.OpenClient(ctx)
	if err != nil {
		return err
	}
	var answer struct {
		Made struct{ Graph json.RawMessage }
	}
	if err := server.GraphQL(ctx, mutation, map[string]any{"input": input}, &answer); err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(t.Out, answer.Made.Graph, true)
	}
	var g graphInfo
	if err := json.Unmarshal(answer.Made.Graph, &g); err != nil {
		return cli.InvalidResponse(err)
	}
	_, err = fmt.Fprintln(t.Out, g.IRI)
	return err
}

type setPolicy struct {
	IRI string `arg:"" help:"Graph to change."`
	cli.ServerFlags
	graphPolicyFlags
	JSON bool `help:"Print the graph as JSON."`
}

// Help is shown by --help.
func (setPolicy) Help() string {
	return `A list that is given replaces the previous one; the other lists do not change.`
}

// Run prints the IRI of the graph.
func (c *setPolicy) Run(ctx context.Context, t cli.Terminal) error {
	return runGraphMutation(ctx, t, &c.ServerFlags, `mutation($input: SetGraphPolicyInput!) { made: setGraphPolicy(input: $input) { graph `+graphFields+` } }`, c.policyInput(c.IRI), c.JSON)
}

type deleteGraph struct {
	IRI string `arg:"" help:"Graph to delete."`
	cli.ServerFlags
}

// Run deletes until nothing remains: one call removes a bounded number of statements.
func (c *deleteGraph) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenUnbounded(ctx)
	if err != nil {
		return err
	}
	var removed uint64
	for {
		var answer struct {
			DeleteGraph struct{ Removed, Remaining uint64 }
		}
		if err := server.GraphQL(ctx, `mutation($input: DeleteGraphInput!) { deleteGraph(input: $input) { removed remaining } }`,
			map[string]any{"input": map[string]any{"iri": c.IRI}}, &answer); err != nil {
			return err
		}
		removed += answer.DeleteGraph.Removed
		if answer.DeleteGraph.Remaining == 0 {
			break
		}
		t.Notef("%s removed, %d remain", statementCount(removed), answer.DeleteGraph.Remaining)
	}
	_, err = fmt.Fprintf(t.Out, "deleted: %s\n", statementCount(removed))
	return err
}

// statementCount formats a number of statements.
func statementCount(n uint64) string {
	if n == 1 {
		return "1 statement"
	}
	return fmt.Sprintf("%d statements", n)
}

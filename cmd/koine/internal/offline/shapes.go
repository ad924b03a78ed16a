package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/internal/shapes"
	"koine/kg"
)

// ShapesCommand manages the shapes that validate updates.
type ShapesCommand struct {
	Put    shapesPutCommand    `cmd:"" help:"Store shapes, replacing those with the same names."`
	List   shapesListCommand   `cmd:"" help:"List the stored shapes."`
	Remove shapesRemoveCommand `cmd:"" help:"Remove shapes."`
	Check  shapesCheckCommand  `cmd:"" help:"List statements that violate the shapes."`
}

// Help is shown by --help.
func (ShapesCommand) Help() string {
	return `Shapes are SHACL Core. Parts that are not supported, such as constraints in SPARQL, are refused with their place in the document; put --supported-only leaves them out and lists them, as list does. An update that adds a violation is refused. Existing violations remain, and check lists them. To print the shapes as RDF: koine export --graph urn:koine:graph:shapes --format turtle

Examples:
  koine shapes put people.ttl
  koine shapes put --supported-only people.ttl
  koine shapes list
  koine shapes check
  koine shapes remove https://example.org/PersonShape`
}

// shapesPutCommand stores shapes.
type shapesPutCommand struct {
	cli.Target
	cli.ReserveFlag
	Files         []string `arg:"" name:"file" help:"Turtle file; - reads standard input."`
	SupportedOnly bool     `help:"Leave out unsupported parts, and list them."`
	DryRun        bool     `help:"Check the shapes without storing them."`
	Why           string   `help:"Justification for the history." placeholder:"TEXT"`
}

// Run stores the shapes of each file, one file after the other.
func (c *shapesPutCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	reserve := &c.ReserveFlag
	if c.DryRun {
		reserve = nil
	}
	d, err := openShapes(ctx, &c.Target, command, log, reserve)
	if err != nil {
		return err
	}
	defer d.close()
	for _, name := range c.Files {
		text, err := cli.ReadText(t, "", name)
		if err != nil {
			return err
		}
		n, left, err := d.putShapes(text, c.SupportedOnly, c.DryRun, c.Why)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, line := range left {
			if _, err := fmt.Fprintln(t.Out, unsupportedPrefix+line); err != nil {
				return err
			}
		}
		if c.DryRun {
			t.Notef("%s: valid; %s changes would be made", name, cli.FormatCount(uint64(n)))
			continue
		}
		t.Notef("%s: %s changes", name, cli.FormatCount(uint64(n)))
	}
	return nil
}

// unsupportedPrefix begins a line about a part of a shape that is not supported and not checked.
const unsupportedPrefix = "left out: "

// shapesRemoveCommand removes shapes.
type shapesRemoveCommand struct {
	cli.Target
	cli.ReserveFlag
	Shapes []string `arg:"" name:"shape" help:"IRI of a shape."`
	Why    string   `help:"Justification for the history." placeholder:"TEXT"`
}

// Run removes all given shapes, or none.
func (c *shapesRemoveCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	d, err := openShapes(ctx, &c.Target, command, log, &c.ReserveFlag)
	if err != nil {
		return err
	}
	defer d.close()
	n, err := d.removeShapes(c.Shapes, c.Why)
	if err != nil {
		return err
	}
	t.Notef("%s changes", cli.FormatCount(uint64(n)))
	return nil
}

// shapesListCommand lists shapes.
type shapesListCommand struct{ cli.Target }

// Run writes a line per shape, and a line per unsupported part.
func (c *shapesListCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	d, err := openShapes(ctx, &c.Target, command, log, nil)
	if err != nil {
		return err
	}
	defer d.close()
	list, err := d.listShapes()
	if err != nil {
		return err
	}
	for _, s := range list {
		if _, err := fmt.Fprintln(t.Out, s); err != nil {
			return err
		}
	}
	return nil
}

// shapesCheckCommand reports violations.
type shapesCheckCommand struct {
	cli.Target
	Shape string `help:"Check only this shape." placeholder:"IRI"`
	First int    `help:"Maximum number of violations to list." default:"100"`
}

// Run writes a line per violation.
func (c *shapesCheckCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	d, err := openShapes(ctx, &c.Target, command, log, nil)
	if err != nil {
		return err
	}
	defer d.close()
	r, err := d.checkShape(c.Shape, c.First)
	if err != nil {
		return err
	}
	for _, line := range r.lines {
		fmt.Fprintln(t.Out, line)
	}
	switch {
	case len(r.lines) > 0 && !r.complete:
		return cli.WithCode(errors.New("more may exist: raise --first, or check a single --shape"), cli.ExitFailure)
	case len(r.lines) > 0:
		return cli.WithCode(fmt.Errorf("%d violations found", len(r.lines)), cli.ExitFailure)
	case !r.complete:
		return cli.WithCode(errors.New("too many statements to check at once: check a single --shape, or the data directory with --data"), cli.ExitFailure)
	}
	if r.leftOut > 0 {
		t.Notef("no violations; unsupported parts of the shapes that were not checked: %s (koine shapes list)", cli.FormatCount(uint64(r.leftOut)))
		return nil
	}
	t.Notef("no violations")
	return nil
}

// openShapes opens the shapes of the target; for changes if reserve is not nil, else for
// reading.
func openShapes(ctx context.Context, t *cli.Target, command *kong.Context, log *slog.Logger, reserve *cli.ReserveFlag) (shapesTarget, error) {
	d, err := openTarget(ctx, t, command, log, reserve)
	switch {
	case err != nil:
		return nil, err
	case d.server != nil:
		return &shapesRemote{ctx, d.server}, nil
	}
	return &shapesOffline{ctx, d.store, t.LocalPrincipal()}, nil
}

type shapesTarget interface {
	putShapes(turtle string, supportedOnly, dryRun bool, why string) (changes int64, leftOut []string, err error)
	removeShapes(ids []string, why string) (changes int64, err error)
	listShapes() ([]string, error)
	checkShape(shape string, first int) (shapesReport, error)
	close() error
}

type shapesReport struct {
	lines    []string
	complete bool
	leftOut  int
}

// shapesOffline accesses the shapes of a data directory.
type shapesOffline struct {
	ctx       context.Context
	store     *kg.Store
	principal kg.Principal
}

func (h *shapesOffline) close() error { return h.store.Close() }

func (h *shapesOffline) putShapes(turtle string, supportedOnly, dryRun bool, why string) (int64, []string, error) {
	quads, err := shapes.Parse(turtle)
	if err != nil {
		return 0, nil, err
	}
	m := kg.Meta{Principal: h.principal, DryRun: dryRun, Justification: why}
	if supportedOnly {
		r, left, err := shapes.PutSupported(h.ctx, h.store, m, quads)
		return int64(r.Affected), unsupportedLines(left), err
	}
	r, err := shapes.Put(h.ctx, h.store, m, quads)
	return int64(r.Affected), nil, err
}

func unsupportedLines(left []shapes.LeftOut) []string {
	lines := make([]string, len(left))
	for i, l := range left {
		lines[i] = l.String()
	}
	return lines
}

func (h *shapesOffline) removeShapes(ids []string, why string) (int64, error) {
	terms := make([]kg.Term, len(ids))
	for i, id := range ids {
		var err error
		if terms[i], err = kg.ParseIRI(id); err != nil {
			return 0, err
		}
	}
	r, err := shapes.Remove(h.ctx, h.store, kg.Meta{Principal: h.principal, Justification: why}, terms)
	return int64(r.Affected), err
}

func (h *shapesOffline) loadSet() (*shapes.Set, error) {
	set := &shapes.Set{}
	return set, set.Load(h.ctx, h.store)
}

func (h *shapesOffline) listShapes() ([]string, error) {
	set, err := h.loadSet()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, s := range set.List() {
		lines = append(lines, shapeLine(s.ID.Name(), s.Deactivated))
	}
	for _, l := range unsupportedLines(set.LeftOut()) {
		lines = append(lines, unsupportedPrefix+l)
	}
	return lines, nil
}

func shapeLine(id string, deactivated bool) string {
	if deactivated {
		return id + " (deactivated)"
	}
	return id
}

// offlineBudget bounds the check of a data directory, which no other request waits for.
var offlineBudget = shapes.Budget{Steps: 1_000_000_000, Time: time.Hour}

func (h *shapesOffline) checkShape(shape string, first int) (shapesReport, error) {
	set, err := h.loadSet()
	if err != nil {
		return shapesReport{}, err
	}
	o := shapes.ReportOptions{Limit: first, Budget: offlineBudget}
	if shape != "" {
		if o.Shape, err = kg.ParseIRI(shape); err != nil {
			return shapesReport{}, err
		}
	}
	snapshot, err := h.store.View(h.ctx, kg.View{Principal: h.principal})
	if err != nil {
		return shapesReport{}, err
	}
	defer snapshot.Close()
	r, err := set.Report(h.ctx, snapshot, o)
	if err != nil {
		return shapesReport{}, err
	}
	out := shapesReport{complete: r.Complete, leftOut: r.LeftOut}
	for i := range r.Findings {
		out.lines = append(out.lines, r.Findings[i].String())
	}
	return out, nil
}

// shapesRemote accesses the shapes of a server.
type shapesRemote struct {
	ctx    context.Context
	server *client.Client
}

func (*shapesRemote) close() error { return nil }

// runOperation runs an operation with a single field and decodes that field.
func (r *shapesRemote) runOperation(query string, variables map[string]any, field string, into any) error {
	var data map[string]json.RawMessage
	if err := r.server.GraphQL(r.ctx, query, variables, &data); err != nil {
		return err
	}
	return json.Unmarshal(data[field], into)
}

// shapesChange is the answer of both mutations.
type shapesChange struct {
	StatementsAffected int64
	Success            bool
	VerificationStatus string
}

func (c shapesChange) changeCount() (int64, error) {
	if !c.Success {
		return 0, errors.New(c.VerificationStatus)
	}
	return c.StatementsAffected, nil
}

// unsupportedShape is an unsupported part of a shape as the server reports it.
type unsupportedShape struct{ Resource, Path, Name, Reason string }

func remoteLines(left []unsupportedShape) []string {
	lines := make([]string, len(left))
	for i, l := range left {
		lines[i] = shapes.LeftOut{Place: l.Path, Name: l.Name, Reason: l.Reason}.String()
	}
	return lines
}

func (r *shapesRemote) putShapes(turtle string, supportedOnly, dryRun bool, why string) (int64, []string, error) {
	var c struct {
		shapesChange
		Unsupported []unsupportedShape
	}
	variables := map[string]any{"turtle": turtle, "dryRun": dryRun, "why": why}
	query := `mutation($turtle: String!, $dryRun: Boolean, $why: String) { setShapes(input: {turtle: $turtle, dryRun: $dryRun, justification: $why}) { success statementsAffected verificationStatus } }`
	if supportedOnly {
		query = `mutation($turtle: String!, $dryRun: Boolean, $why: String) { setShapes(input: {turtle: $turtle, supportedOnly: true, dryRun: $dryRun, justification: $why}) { success statementsAffected verificationStatus unsupported { path name reason } } }`
	}
	if err := r.runOperation(query, variables, "setShapes", &c); err != nil {
		return 0, nil, err
	}
	n, err := c.changeCount()
	return n, remoteLines(c.Unsupported), err
}

func (r *shapesRemote) removeShapes(ids []string, why string) (int64, error) {
	var c shapesChange
	err := r.runOperation(`mutation($shapes: [IRI!]!, $why: String) { removeShapes(input: {shapes: $shapes, justification: $why}) { success statementsAffected verificationStatus } }`,
		map[string]any{"shapes": ids, "why": why}, "removeShapes", &c)
	if err != nil {
		return 0, err
	}
	return c.changeCount()
}

func (r *shapesRemote) listShapes() ([]string, error) {
	var answer struct {
		Shapes []struct {
			IRI         string
			Deactivated bool
		}
		UnsupportedShapeParts []unsupportedShape
	}
	if err := r.server.GraphQL(r.ctx, `{ shapes { iri deactivated } unsupportedShapeParts { path name reason } }`, nil, &answer); err != nil {
		return nil, err
	}
	var lines []string
	for _, s := range answer.Shapes {
		lines = append(lines, shapeLine(s.IRI, s.Deactivated))
	}
	for _, l := range remoteLines(answer.UnsupportedShapeParts) {
		lines = append(lines, unsupportedPrefix+l)
	}
	return lines, nil
}

func (r *shapesRemote) checkShape(shape string, first int) (shapesReport, error) {
	var answer struct {
		Complete         bool
		UnsupportedCount int
		Results          []struct{ Shape, FocusNode, Path, Value, Message string }
	}
	variables := map[string]any{"first": first}
	if shape != "" {
		variables["shape"] = shape
	}
	err := r.runOperation(`query($first: Int, $shape: IRI) { violations(first: $first, shape: $shape) { complete unsupportedCount results { shape focusNode path value message } } }`,
		variables, "violations", &answer)
	if err != nil {
		return shapesReport{}, err
	}
	out := shapesReport{complete: answer.Complete, leftOut: answer.UnsupportedCount}
	for _, x := range answer.Results {
		parts := []string{x.FocusNode}
		for _, p := range []string{x.Path, x.Value} {
			if p != "" {
				parts = append(parts, p)
			}
		}
		out.lines = append(out.lines, strings.Join(parts, ", ")+": "+x.Message+" (shape "+x.Shape+")")
	}
	return out, nil
}

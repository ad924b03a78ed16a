package offline

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/internal/assertions"
	"koine/internal/names"
	"koine/internal/rdf"
	"koine/kg"
)

// uploadFiles loads the files through a server.
func (c *LoadCommand) uploadFiles(ctx context.Context, t cli.Terminal, sources []*source) error {
	registry, err := c.BuiltinPrefixes()
	if err != nil {
		return err
	}
	if len(c.Prefix) > 0 {
		t.Notef("--prefix applies to --graph only and is not registered: register prefixes on a server with koine prefix add")
	}
	query := url.Values{"graph": {"default"}}
	if c.Graph != "" {
		query.Set("graph", expandPrefix(registry, c.Graph))
	}
	if c.FixIRIs {
		return cli.Usagef("--fix-iris requires --data: a server does not change IRIs")
	}
	sentAsIs := c.Replace == "" || len(sources) == 1
	if ofJSONLD := func(s *source) bool { return s.format == rdf.JSONLD }; sentAsIs && slices.ContainsFunc(sources, ofJSONLD) &&
		(len(c.JSONLDContext) > 0 || c.JSONLDMaxBytes != rdf.DefaultJSONLDMaxBytes) {
		return cli.Usagef("--jsonld-context and --jsonld-max-bytes require --data: a server uses its own")
	}
	if c.ContinueOnError {
		query.Set("continueOnError", "true")
	}
	if c.Assertions {
		query.Set("assertions", "rdf")
	}
	server, err := c.ServerFlags().OpenUnbounded(ctx)
	if err != nil {
		return err
	}
	for i, s := range sources {
		if c.KeepPrefixes {
			if err := c.registerDeclared(ctx, t, s); err != nil {
				return err
			}
		}
		if c.Replace != "" {
			continue
		}
		query.Set("justification", expandWhy(c.Why, s.name))
		if err := c.sendFile(ctx, t, server, http.MethodPost, s, query); err != nil {
			return cli.InterruptedWith(fmt.Errorf("%s: %w", s.name, err), fmt.Sprintf("in %s: %s loaded, and part of this one may be; sending it again adds the rest", s.name, filesText(i)))
		}
	}
	if c.Replace != "" {
		return c.replaceOn(ctx, t, server, query, sources)
	}
	return nil
}

// filesText is a count of files and its verb.
func filesText(n int) string {
	switch n {
	case 0:
		return "no other file was"
	case 1:
		return "1 other file was"
	}
	return fmt.Sprintf("%d other files were", n)
}

// registerDeclared registers the prefixes that a file declares with the server.
func (c *LoadCommand) registerDeclared(ctx context.Context, t cli.Terminal, s *source) error {
	declared := map[string]string{}
	o := c.readOptions(s)
	o.Prefix = func(name, namespace string) { declared[name] = namespace }
	if _, err := s.survey(ctx, t, o, nil); err != nil || len(declared) == 0 {
		return err
	}
	server, err := c.ServerFlags().OpenClient(ctx)
	if err != nil {
		return err
	}
	var answer struct {
		Vocabulary struct{ Prefixes []kg.Prefix }
	}
	if err := server.GraphQL(ctx, `{ vocabulary { prefixes { name namespace } } }`, nil, &answer); err != nil {
		return err
	}
	kept := map[string]string{}
	for _, p := range answer.Vocabulary.Prefixes {
		kept[p.Name] = p.Namespace
	}
	registerDeclaredPrefixes(t, s.name, declared, kept, func(prefixes map[string]string) error {
		for _, name := range slices.Sorted(maps.Keys(prefixes)) {
			if err := registerPrefixOn(ctx, server, name, prefixes[name], false); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// expandPrefix expands a prefix of the command line. Other prefixes are left to the server.
func expandPrefix(registry *kg.Prefixes, text string) string {
	if iri, err := registry.Resource(text); err == nil {
		return iri.Name()
	}
	return text
}

// sendFile sends a file without conversion.
func (c *LoadCommand) sendFile(ctx context.Context, t cli.Terminal, server *client.Client, method string, s *source, query url.Values) error {
	raw, err := s.openRaw(t, "sending "+s.name)
	if err != nil {
		return err
	}
	in := bufio.NewReader(raw)
	header := http.Header{"Content-Type": {s.format.MediaType()}}
	if s.base != "" {
		header.Set("Content-Location", s.base)
	}
	if magic, err := in.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		header.Set("Content-Encoding", "gzip")
	}
	began := time.Now()
	stop := s.progress.reportServerWork(s.name)
	response, err := server.Do(ctx, method, "/data?"+query.Encode(), header, in)
	stop()
	s.progress.finish()
	if err != nil {
		return err
	}
	report, err := readReport(response)
	if err != nil {
		return err
	}
	report.printReport(t)
	if a := report.Restored; a != nil {
		done := assertions.RestoreReport{Statements: a.Statements, Assertions: a.Assertions, Changed: report.Statements, Revision: report.Revision}
		printRestored(t, s.name, report.Rejected, done, a.Unasserted, time.Since(began))
	} else if method == http.MethodPut {
		t.Notef("%s", replacedText(report.Quads, report.Statements, report.Removed, report.Revision, time.Since(began)))
	} else {
		printLoaded(t, s.name, rdf.Summary{Quads: report.Quads, Rejected: report.Rejected}, report.Statements, report.Revision, time.Since(began))
	}
	left := droppedEntries{entries: report.Dropped}
	if len(report.Remarks) > 0 {
		left.first = report.Remarks[0]
	}
	left.printSummary(t, s.name)
	warnUnknown(t, s.name, report.UnknownNames)
	return nil
}

// uploadReport is a server's answer to a document.
type uploadReport struct {
	Quads, Statements, Removed, Rejected, Dropped uint64

	Revision        kg.Revision
	Errors, Remarks []string
	UnknownNames    []names.Unknown
	ProposalID      string
	Restored        *struct{ Statements, Assertions, Unasserted uint64 }
}

// readReport reads the answer and closes its body. The answer may have no body if the
// document has no statements.
func readReport(response *http.Response) (report uploadReport, err error) {
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent {
		return report, nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, cli.MaxAnswerBytes)).Decode(&report); err != nil {
		return report, cli.InvalidResponse(err)
	}
	return report, nil
}

// printReport prints the skipped lines and the proposal.
func (r *uploadReport) printReport(t cli.Terminal) {
	for _, e := range r.Errors {
		t.Notef("skipped: %s", e)
	}
	if r.ProposalID != "" {
		t.Notef("pending review as proposal %s", r.ProposalID)
	}
}

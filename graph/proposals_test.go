package graph_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/proposals"
	"koine/kg"
)

// payHeld holds updates of the property ex:pay.
type payHeld struct{}

func (payHeld) Verify(_ context.Context, j kg.Judgement) (kg.Verdict, error) {
	for _, c := range j.Changes {
		if c.Quad.Predicate == iri("pay") && !slices.Contains(j.Meta.Reviewed, "pay") {
			return kg.Verdict{Outcome: kg.Held, Reason: "pay", Details: "pay is looked at", Hold: &kg.Hold{Approvals: 2, Rules: []string{"pay"}}}, nil
		}
		if c.Quad.Predicate == iri("fixed") && c.Op == kg.Remove {
			return kg.Verdict{Outcome: kg.Rejected, Reason: "fixed", Details: "what is fixed stays"}, nil
		}
	}
	return kg.Verdict{}, nil
}

// newReviewed is a bench with reviews.
func newReviewed(t *testing.T) *bench {
	var service *proposals.Service
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		service = proposals.New(proposals.Options{Clock: o.Clock})
		o.Verifier, o.Holder, o.Access, o.OnSystemChange = payHeld{}, service, service.Guard(kg.AllowAll{}), service.Follow
	})
	if err := service.Open(t.Context(), b.store); err != nil {
		t.Fatal(err)
	}
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: prefixes, Reviews: service}, graph.Options{})
	return b
}

// saidTo runs an operation as an agent and gives its data, or the code of its error.
func (b *bench) saidTo(name string, roles []string, query string) string {
	b.t.Helper()
	req := operation.Request{Query: query, Principal: kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}}
	result := b.engine.Execute(context.Background(), req)
	if len(result.Errors) > 0 {
		code, _ := result.Errors[0].Extensions["code"].(string)
		return code
	}
	return string(result.Data)
}

func (b *bench) hold(name string) (id string) {
	b.t.Helper()
	data := b.saidTo(name, nil, `mutation { applyPatches(input: {justification: "a rise", patches: [
		{op: replace, statement: {subject: {id: "ex:ann"}, predicate: {id: "ex:pay"}, object: {value: `+strconv.Itoa(5+int(b.store.Head().Revision))+`}, certainty: 0.5}}]}) {
		success statementsAffected verificationStatus commitId proposalId } }`)
	var answer struct {
		ApplyPatches struct {
			Success            bool
			VerificationStatus string
			ProposalID         string
		}
	}
	if err := json.Unmarshal([]byte(data), &answer); err != nil || !answer.ApplyPatches.Success || answer.ApplyPatches.VerificationStatus != "Pending Review" || answer.ApplyPatches.ProposalID == "" {
		b.t.Fatalf("not held: %s, %v", data, err)
	}
	return answer.ApplyPatches.ProposalID
}

var reviewer = []string{kg.RoleReviewer}

func TestProposals(t *testing.T) {
	b := newReviewed(t)
	id := b.hold("ann")
	want := func(what, got, want string) {
		t.Helper()
		if got != strings.ReplaceAll(want, "$id", id) {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
	}
	all := `{ id status author: authorId actor: actorId patches justification taskId reason rules requiredApprovals approvalCount reviewerRoles endedAt conflictReason appliedRevision reviews { reviewer: reviewerId } }`
	want("the proposal", b.saidTo("bob", reviewer, `{ proposal(id: "`+id+`") `+all+` }`),
		`{"proposal":{"id":"$id","status":"PENDING","author":"agent://ann","actor":"agent://ann","patches":[{"op":"replace","statement":{"subject":{"id":"https://example.org/ann"},"predicate":{"id":"https://example.org/pay"},"object":{"value":5,"type":"http://www.w3.org/2001/XMLSchema#integer"},"certainty":0.5,"source":"agent://ann"}}],`+
			`"justification":"a rise","taskId":null,"reason":"pay is looked at","rules":["pay"],"requiredApprovals":2,"approvalCount":0,"reviewerRoles":["reviewer"],"endedAt":null,"conflictReason":null,"appliedRevision":null,"reviews":[]}}`)
	want("for whom it is not", b.saidTo("dave", nil, `{ proposal(id: "`+id+`") { id } }`), "NOT_FOUND")
	want("their list", b.saidTo("dave", nil, `{ proposals { nodes { id } pageInfo { hasNextPage } } }`), `{"proposals":{"nodes":[],"pageInfo":{"hasNextPage":false}}}`)
	want("the list", b.saidTo("ann", nil, `{ proposals(status: PENDING, authorId: "ann", first: 1) { nodes { id } pageInfo { hasNextPage } } }`), `{"proposals":{"nodes":[{"id":"$id"}],"pageInfo":{"hasNextPage":false}}}`)
	want("behind it", b.saidTo("ann", nil, `{ proposals(after: "`+b.proposalCursor(id)+`") { nodes { id } pageInfo { hasNextPage } } }`), `{"proposals":{"nodes":[],"pageInfo":{"hasNextPage":false}}}`)
	for first, code := range map[string]string{"0": "INVALID", "101": "LIMIT_EXCEEDED"} {
		want("first "+first, b.saidTo("ann", nil, `{ proposals(first: `+first+`) { pageInfo { hasNextPage } } }`), code)
	}
	pending := `{ statements(view: {includePending: true}) { nodes { predicate pending } } }`
	want("pending for the author", b.saidTo("ann", nil, pending), `{"statements":{"nodes":[{"predicate":"https://example.org/pay","pending":true}]}}`)
	want("pending for others", b.saidTo("dave", nil, pending), `{"statements":{"nodes":[]}}`)

	want("the author", b.saidTo("ann", reviewer, `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE}) { proposal { status } } }`), "PERMISSION_DENIED")
	want("an old revision", b.saidTo("bob", reviewer, `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE, expectedRevision: 0}) { proposal { status } } }`), "REVISION_CONFLICT")
	want("the first approval", b.saidTo("bob", reviewer, `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE, comment: "fine"}) { proposal { status approvalCount } } }`), `{"reviewProposal":{"proposal":{"status":"PENDING","approvalCount":1}}}`)
	want("the second", b.saidTo("carol", reviewer, `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE}) { proposal { status approvalCount appliedRevision revision reviews { reviewer: reviewerId actor: actorId decision comment } } } }`),
		`{"reviewProposal":{"proposal":{"status":"APPLIED","approvalCount":2,"appliedRevision":3,"revision":3,"reviews":[{"reviewer":"agent://bob","actor":"agent://bob","decision":"APPROVE","comment":"fine"},{"reviewer":"agent://carol","actor":"agent://carol","decision":"APPROVE","comment":null}]}}}`)
	want("what stands", b.saidTo("dave", nil, `{ statements(view: {includePending: true}) { nodes { predicate pending assertedBy certainty } } }`),
		`{"statements":{"nodes":[{"predicate":"https://example.org/pay","pending":false,"assertedBy":["agent://ann"],"certainty":0.5}]}}`)
	want("too late", b.saidTo("dora", reviewer, `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: REJECT}) { proposal { status } } }`), "PROPOSAL_CLOSED")
	id = b.hold("ann")
	want("withdrawn by another", b.saidTo("bob", reviewer, `mutation { withdrawProposal(input: {proposalId: "`+id+`"}) { proposal { status } } }`), "PERMISSION_DENIED")
	want("withdrawn", b.saidTo("ann", nil, `mutation { withdrawProposal(input: {proposalId: "`+id+`"}) { proposal { status } } }`), `{"withdrawProposal":{"proposal":{"status":"WITHDRAWN"}}}`)
	want("without reviews", newBench(t, graph.Options{}).saidTo("ann", nil, `{ proposals { pageInfo { hasNextPage } } }`), "NOT_FOUND")
}

// TestProposalChanged proves that each commit that changes a proposal is delivered once, as
// of the commit, to callers that may see it, also from a snapshot and after a resume.
func TestProposalChanged(t *testing.T) {
	b := newReviewed(t)
	subscribe := func(name string, roles []string, query string, from operation.Resume) *tail {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		req := operation.Request{Query: query, Principal: kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}, Resume: from}
		sub, err := b.engine.Subscribe(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return tailOf(t, sub, cancel)
	}
	query := `subscription { proposalChanged { ... on ProposalChange { kind: __typename snapshot snapshotEnd commit { revision } proposal { id status approvalCount reviews { __typename by: reviewerId } } } ... on Progress { revision } } }`
	bob := subscribe("bob", reviewer, query, operation.Resume{})
	dave := subscribe("dave", nil, query, operation.Resume{})
	id := b.hold("ann")
	want := func(f *tail, snapshot, revision, status, reviews string) operation.Event {
		t.Helper()
		approvals := "0"
		if n := strings.Count(reviews, "by"); n > 0 {
			approvals = string(rune('0' + n))
		}
		commit := `{"revision":` + revision + `}`
		if snapshot == "true" {
			commit = "null"
		}
		return f.want(`{"proposalChanged":{"kind":"ProposalChange","snapshot":` + snapshot + `,"snapshotEnd":` + snapshot + `,"commit":` + commit +
			`,"proposal":{"id":"` + id + `","status":"` + status + `","approvalCount":` + approvals + `,"reviews":[` + reviews + `]}}}`)
	}
	one := `{"__typename":"ProposalReview","by":"agent://bob"}`
	two := one + `,{"__typename":"ProposalReview","by":"agent://carol"}`
	first := want(bob, "false", "1", "PENDING", "")
	b.saidTo("bob", reviewer, `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE}) { proposal { status } } }`)
	want(bob, "false", "2", "PENDING", one)
	want(subscribe("ann", nil, query, operation.Resume{Start: operation.Snapshot}), "true", "", "PENDING", one)
	b.saidTo("carol", reviewer, `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE}) { proposal { status } } }`)
	want(bob, "false", "3", "APPLIED", two)
	again := subscribe("bob", reviewer, query, operation.Resume{Start: operation.After, After: first.Position})
	want(again, "false", "2", "PENDING", one)
	want(again, "false", "3", "APPLIED", two)

	old := id
	id = b.hold("dave")
	want(dave, "false", "4", "PENDING", "") // and nothing of ann's before
	want(bob, "false", "4", "PENDING", "")
	only := subscribe("bob", reviewer, strings.Replace(query, "proposalChanged", `proposalChanged(id: "`+id+`", resume: "earliest")`, 1), operation.Resume{})
	want(only, "false", "4", "PENDING", "")
	times := subscribe("bob", reviewer, `subscription { proposalChanged(id: "`+old+`", resume: "snapshot") { ... on ProposalChange { proposal { createdAt endedAt reviews { time } } } } }`, operation.Resume{})
	times.want(`{"proposalChanged":{"proposal":{"createdAt":"` + b.timeOf(1) + `","endedAt":"` + b.timeOf(3) + `","reviews":[{"time":"` + b.timeOf(2) + `"},{"time":"` + b.timeOf(3) + `"}]}}}`)
}

func (b *bench) timeOf(r kg.Revision) string {
	b.t.Helper()
	c, err := b.store.Commit(context.Background(), kg.SystemPrincipal(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return c.Time.Format("2006-01-02T15:04:05.000Z")
}

// proposalCursor is the cursor of the proposal in the list of all.
func (b *bench) proposalCursor(id string) string {
	b.t.Helper()
	var p struct {
		Proposals struct {
			Edges []struct {
				Cursor string
				Node   struct{ ID string }
			}
			TotalCount int
		}
	}
	if err := json.Unmarshal([]byte(b.saidTo("ann", nil, `{ proposals { edges { cursor node { id } } totalCount } }`)), &p); err != nil {
		b.t.Fatal(err)
	}
	if p.Proposals.TotalCount != len(p.Proposals.Edges) {
		b.t.Errorf("totalCount is %d of %d", p.Proposals.TotalCount, len(p.Proposals.Edges))
	}
	for _, e := range p.Proposals.Edges {
		if e.Node.ID == id {
			return e.Cursor
		}
	}
	b.t.Fatalf("the proposal %s is not listed", id)
	return ""
}

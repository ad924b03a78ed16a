package proposals_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/observertest"
	"koine/internal/proposals"
	"koine/internal/slowtest"
	"koine/kg"
)

// The agents of these tests.
var (
	ann   = agent("ann")
	bob   = agent("bob", kg.RoleReviewer)
	carol = agent("carol", kg.RoleReviewer)
	dave  = agent("dave")
	admin = agent("root", kg.RoleAdmin)
)

func agent(name string, roles ...string) kg.Principal {
	return kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}
}

func by(p kg.Principal) proposals.Caller { return proposals.Caller{Principal: p} }

// judge holds updates with the property pay, with a number of approvals, and refuses
// those with the property bad. Tests set its fields between calls.
type judge struct {
	approvals atomic.Int32
	expires   time.Duration
	refuse    atomic.Bool // everything, regardless of the approvals
	hold      atomic.Bool // by a rule that no review satisfies
}

func (v *judge) Verify(_ context.Context, j kg.Judgement) (kg.Verdict, error) {
	for _, c := range j.Changes {
		switch {
		case kg.Reserved(c.Quad):
		case v.refuse.Load():
			return kg.Verdict{Outcome: kg.Rejected, Reason: "not any more"}, nil
		case v.hold.Load():
			return kg.Verdict{Outcome: kg.Held, Reason: "another", Hold: &kg.Hold{Rules: []string{"another"}}}, nil
		case c.Quad.Predicate == pay && !slices.Contains(j.Meta.Reviewed, "pay"):
			return kg.Verdict{Outcome: kg.Held, Reason: "pay", Details: "pay is looked at", Hold: &kg.Hold{
				Approvals: int(v.approvals.Load()), Expires: v.expires, Rules: []string{"pay"},
			}}, nil
		}
	}
	return kg.Verdict{}, nil
}

var (
	pay  = kg.IRI("urn:pay")
	note = kg.IRI("urn:note")
)

// world is a store with reviews and a fixed clock.
type world struct {
	t       *testing.T
	dir     string
	judge   *judge
	access  access
	now     atomic.Pointer[time.Time]
	options proposals.Options
	store   *kg.Store
	service *proposals.Service
}

func newWorld(t *testing.T, o proposals.Options) *world {
	w := &world{t: t, dir: t.TempDir(), judge: &judge{}, options: o}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.now.Store(&now)
	w.judge.approvals.Store(1)
	w.options.Clock = w.clock
	observertest.Replay(t, w.dir)
	w.open()
	t.Cleanup(func() {
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) clock() time.Time { return *w.now.Load() }

func (w *world) pass(d time.Duration) {
	now := w.clock().Add(d)
	w.now.Store(&now)
}

func (w *world) open() {
	w.t.Helper()
	w.service = proposals.New(w.options)
	store, err := kg.Open(w.dir, kg.Options{
		Governor: kg.Governor{Verifier: w.judge, Holder: w.service, Access: w.service.Guard(&w.access), OnSystemChange: w.service.Follow},
		Clock:    w.clock, FreeBytes: func(string) (uint64, error) { return 1 << 40, nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = store
	if err := w.service.Open(w.t.Context(), store); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) restart() {
	w.t.Helper()
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

func (w *world) update(m kg.Meta, patches ...kg.Patch) (kg.Receipt, error) {
	return w.store.Update(w.t.Context(), m, func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// propose makes a proposal of ann's.
func (w *world) propose(patches ...kg.Patch) string {
	w.t.Helper()
	r, err := w.update(kg.Meta{Principal: ann, Justification: "a rise", TaskID: "t"}, patches...)
	if err != nil || r.Verdict.Outcome != kg.Held || r.ProposalID == "" {
		w.t.Fatalf("not held: %+v, %v", r, err)
	}
	return r.ProposalID
}

func (w *world) get(id string) *proposals.Proposal {
	w.t.Helper()
	p, err := w.service.Get(w.t.Context(), by(admin), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) decide(p kg.Principal, id string, d proposals.Decision) (*proposals.Proposal, error) {
	return w.service.Decide(w.t.Context(), by(p), id, d, "because", nil)
}

// objects lists the objects of a property that the principal sees.
func (w *world) objects(v kg.View, property kg.Term) (list []string) {
	w.t.Helper()
	s, err := w.store.View(w.t.Context(), v)
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	for st, err := range s.Match(kg.Pattern{Predicate: property}) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, st.Object.Value())
	}
	slices.Sort(list)
	return list
}

func (w *world) want(what string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func set(property kg.Term, text string) kg.Patch {
	return kg.Patch{Op: kg.Replace, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: property, Object: kg.String(text)}}
}

// spring is a span of validity.
var spring = kg.TimeSpan{From: time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 6, 21, 0, 0, 0, 1e6, time.UTC)}

func TestApproval(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	patches := []kg.Patch{
		set(pay, "more"), set(note, "\u00e9 \"quoted\""),
		{Op: kg.Add, Certainty: 0.25, HasCertainty: true, Validity: spring, Provenance: []byte(`{"a":1}`), Quad: kg.Quad{
			Subject: kg.Blank("b1"), Predicate: note, Object: kg.LangString("hallo", "de"), Graph: kg.IRI("urn:g")}},
		{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: note, Object: kg.Typed("007", kg.XSDInteger)}},
		{Op: kg.Remove, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: note, Object: kg.IRI("urn:gone")}},
	}
	id := w.propose(patches...)
	w.want("before it is approved", w.objects(kg.View{Principal: admin}, pay))
	pending := []kg.Term{kg.IRI(kg.PendingGraphPrefix + id)}
	w.want("pending in spring", w.objects(kg.View{Principal: admin, Graphs: pending, ValidAt: spring.From}, note), "007", "hallo", "\u00e9 \"quoted\"")
	w.want("pending in winter", w.objects(kg.View{Principal: admin, Graphs: pending, ValidAt: spring.Until}, note), "007", "\u00e9 \"quoted\"")
	p := w.get(id)
	if p.Status != proposals.Pending || p.Author != ann.ID || p.Actor != ann.ID || p.Justification != "a rise" || p.TaskID != "t" ||
		p.RequiredApprovals != 1 || !slices.Equal(p.ReviewerRoles, []string{kg.RoleReviewer}) || !slices.Equal(p.Rules, []string{"pay"}) ||
		p.Reason != "pay is looked at" || !p.Expires.Equal(p.Created.Add(proposals.DefaultExpires)) {
		t.Errorf("the proposal is %+v", p)
	}
	for i, got := range p.Patches {
		want := patches[i]
		if want.Quad.Graph.IsZero() {
			want.Quad.Graph = kg.DefaultGraph
		}
		if got.Op != want.Op || got.Quad != want.Quad || got.Certainty != want.Certainty || got.HasCertainty != want.HasCertainty || !got.Validity.Equal(want.Validity) || string(got.Provenance) != string(want.Provenance) {
			t.Errorf("patch %d comes back as %+v, want %+v", i, got, want)
		}
	}
	done, err := w.decide(bob, id, proposals.Approve)
	if err != nil || done.Status != proposals.Applied || done.Approvals() != 1 || done.AppliedIn == 0 || done.Ended.IsZero() {
		t.Fatalf("got %+v, %v", done, err)
	}
	if r := done.Reviews; len(r) != 1 || r[0].Reviewer != bob.ID || r[0].Actor != bob.ID || r[0].Decision != proposals.Approve || r[0].Comment != "because" || r[0].Time.IsZero() {
		t.Errorf("the reviews are %+v", r)
	}
	if again, err := w.decide(bob, id, proposals.Approve); err != nil || again.Status != proposals.Applied || again.Revision != done.Revision {
		t.Errorf("said again: got %+v, %v", again, err)
	}
	w.want("pay", w.objects(kg.View{Principal: admin}, pay), "more")
	w.want("notes", w.objects(kg.View{Principal: admin}, note), "007", "hallo", "\u00e9 \"quoted\"")
	w.want("notes in winter", w.objects(kg.View{Principal: admin, ValidAt: spring.Until}, note), "007", "\u00e9 \"quoted\"")
	c, err := w.store.Commit(t.Context(), ann, done.AppliedIn)
	if err != nil || c.ProposalID != id || c.Held || c.Principal != ann.ID || c.Actor != ann.ID || c.Justification != "a rise" {
		t.Errorf("the commit is %+v, %v", c, err)
	}
	for _, ch := range c.Changes {
		if ch.Quad.Predicate == pay && ch.Op == kg.Add && !kg.IsPendingGraph(ch.Quad.Graph) && ch.Assertion.Source != ann.ID {
			t.Errorf("asserted by %s", ch.Assertion.Source)
		}
	}
}

func TestWhoMayReview(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	meta := kg.Meta{Principal: kg.Principal{ID: "agent://service", Method: "key", ActFor: []kg.AgentID{"agent://ann"}, Roles: []string{kg.RoleReviewer}}, Actor: "agent://ann"}
	r, err := w.update(meta, set(pay, "more"))
	if err != nil {
		t.Fatal(err)
	}
	id := r.ProposalID
	reviewer := func(name string) kg.Principal { return agent(name, kg.RoleReviewer) }
	acting := func(name, actor string) proposals.Caller {
		p := reviewer(name)
		p.ActFor = []kg.AgentID{kg.Anybody}
		return proposals.Caller{Principal: p, Actor: kg.CanonicalAgent(actor)}
	}
	for _, row := range []struct {
		name string
		by   proposals.Caller
		want kg.Code
	}{
		{"the principal of the author", by(reviewer("service")), kg.CodePermissionDenied},
		{"the agent that the author acted for", by(reviewer("ann")), kg.CodePermissionDenied},
		{"the author acting for another", acting("service", "bob"), kg.CodePermissionDenied},
		{"another acting for the author", acting("bob", "ann"), kg.CodePermissionDenied},
		{"another acting for the author's principal", acting("bob", "service"), kg.CodePermissionDenied},
		{"an administrator who is the author", by(agent("ann", kg.RoleAdmin)), kg.CodePermissionDenied},
		{"somebody without a role, who does not see it", by(dave), kg.CodeNotFound},
		{"another acting for a reviewer", proposals.Caller{Principal: kg.Principal{ID: "agent://dave", Method: "key", ActFor: []kg.AgentID{kg.Anybody}}, Actor: bob.ID}, kg.CodeNotFound},
	} {
		for _, d := range []proposals.Decision{proposals.Approve, proposals.Reject} {
			if _, err := w.service.Decide(t.Context(), row.by, id, d, "", nil); kg.CodeOf(err) != row.want {
				t.Errorf("%s, %s: got %v, want %s", row.name, d, err, row.want)
			}
		}
	}
	if _, err := w.service.Decide(t.Context(), by(bob), id, "perhaps", "", nil); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("no decision: got %v", err)
	}
	if _, err := w.service.Decide(t.Context(), by(bob), id, proposals.Approve, strings.Repeat("x", proposals.MaxCommentBytes+1), nil); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("a long comment: got %v", err)
	}
	if _, err := w.decide(bob, "nobody", proposals.Approve); kg.CodeOf(err) != kg.CodeNotFound {
		t.Errorf("no such proposal: got %v", err)
	}
	if p := w.get(id); p.Status != proposals.Pending || len(p.Reviews) != 0 {
		t.Errorf("the refusals left %+v", p)
	}
	if p, err := w.service.Decide(t.Context(), by(bob), id, proposals.Approve, strings.Repeat("x", proposals.MaxCommentBytes), nil); err != nil || p.Status != proposals.Applied {
		t.Errorf("a reviewer: got %+v, %v", p, err)
	}
	if p, err := w.decide(admin, w.propose(set(pay, "much")), proposals.Approve); err != nil || p.Status != proposals.Applied {
		t.Errorf("an administrator: got %+v, %v", p, err)
	}
}

// TestApprovalsAreCountedByPrincipal proves that one principal approves once, for
// however many agents it may act.
func TestApprovalsAreCountedByPrincipal(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	w.judge.approvals.Store(2)
	id := w.propose(set(pay, "more"))
	many := bob
	many.ActFor = []kg.AgentID{kg.Anybody}
	for _, actor := range []kg.AgentID{"agent://bob", "agent://x", "agent://y"} {
		p, err := w.service.Decide(t.Context(), proposals.Caller{Principal: many, Actor: actor}, id, proposals.Approve, "", nil)
		if err != nil || p.Status != proposals.Pending || p.Approvals() != 1 || len(p.Reviews) != 1 {
			t.Fatalf("bob for %s: got %+v, %v", actor, p, err)
		}
	}
	if p, err := w.decide(carol, id, proposals.Approve); err != nil || p.Status != proposals.Applied || p.Approvals() != 2 {
		t.Errorf("carol: got %+v, %v", p, err)
	}
	w.want("pay", w.objects(kg.View{Principal: admin}, pay), "more")
}

func TestEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(w *world, id string) (*proposals.Proposal, error)
		want proposals.Status
	}{
		{"rejected", func(w *world, id string) (*proposals.Proposal, error) { return w.decide(bob, id, proposals.Reject) }, proposals.Rejected},
		{"withdrawn", func(w *world, id string) (*proposals.Proposal, error) {
			return w.service.Withdraw(w.t.Context(), by(ann), id)
		}, proposals.Withdrawn},
		{"withdrawn by an administrator", func(w *world, id string) (*proposals.Proposal, error) {
			return w.service.Withdraw(w.t.Context(), by(admin), id)
		}, proposals.Withdrawn},
		{"expired", func(w *world, id string) (*proposals.Proposal, error) {
			w.pass(proposals.DefaultExpires)
			return w.get(id), nil
		}, proposals.Expired},
		{"refused by then", func(w *world, id string) (*proposals.Proposal, error) {
			w.judge.refuse.Store(true)
			return w.decide(bob, id, proposals.Approve)
		}, proposals.Conflicted},
		{"held by another rule", func(w *world, id string) (*proposals.Proposal, error) {
			w.judge.hold.Store(true)
			return w.decide(bob, id, proposals.Approve)
		}, proposals.Conflicted},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, proposals.Options{})
			id := w.propose(set(pay, "more"))
			w.want("pending", w.objects(kg.View{Principal: ann, IncludePending: true}, pay), "more")
			p, err := row.end(w, id)
			if err != nil || p.Status != row.want || p.Ended.IsZero() || p.AppliedIn != 0 || (p.Conflict != "") != (row.want == proposals.Conflicted) {
				t.Fatalf("got %+v, %v", p, err)
			}
			w.want("applied", w.objects(kg.View{Principal: admin}, pay))
			for _, d := range []proposals.Decision{proposals.Approve, proposals.Reject} {
				if _, err := w.decide(carol, id, d); kg.CodeOf(err) != kg.CodeProposalClosed {
					t.Errorf("%s afterwards: got %v", d, err)
				}
			}
			if _, err := w.service.Withdraw(t.Context(), by(ann), id); kg.CodeOf(err) != kg.CodeProposalClosed {
				t.Errorf("withdrawn afterwards: got %v", err)
			}
			w.judge.refuse.Store(false)
			w.judge.hold.Store(false)
			w.propose(set(note, "later"), set(pay, "later")) // its commit records the expired ones
			w.want("pending afterwards", w.objects(kg.View{Principal: ann, IncludePending: true}, pay), "later")
			w.restart()
			if again := w.get(id); again.Status != row.want {
				t.Errorf("after a restart it is %s", again.Status)
			}
		})
	}
}

func TestWhoMayWithdraw(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	id := w.propose(set(pay, "more"))
	for p, want := range map[*kg.Principal]kg.Code{&bob: kg.CodePermissionDenied, &dave: kg.CodeNotFound} {
		if _, err := w.service.Withdraw(t.Context(), by(*p), id); kg.CodeOf(err) != want {
			t.Errorf("%s: got %v, want %s", p.ID, err, want)
		}
	}
}

// TestWhoSeesProposals proves that only the author, the reviewers and administrators
// see a proposal and its pending statements.
func TestWhoSeesProposals(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	id := w.propose(set(pay, "more"))
	for _, row := range []struct {
		p    kg.Principal
		sees bool
	}{{ann, true}, {bob, true}, {admin, true}, {dave, false}} {
		want := []string{}
		if row.sees {
			want = []string{"more"}
		}
		w.want(string(row.p.ID)+" asks for what is pending", w.objects(kg.View{Principal: row.p, IncludePending: true}, pay), want...)
		w.want(string(row.p.ID)+" asks for all graphs", w.objects(kg.View{Principal: row.p, AllGraphs: true}, pay), want...)
		w.want(string(row.p.ID)+" names the graph", w.objects(kg.View{Principal: row.p, Graphs: []kg.Term{kg.IRI(kg.PendingGraphPrefix + id)}}, pay), want...)
		w.want(string(row.p.ID)+" asks for no more", w.objects(kg.View{Principal: row.p}, pay))
		_, err := w.service.Get(t.Context(), by(row.p), id)
		if (err == nil) != row.sees || err != nil && kg.CodeOf(err) != kg.CodeNotFound {
			t.Errorf("%s gets it: %v", row.p.ID, err)
		}
		page, err := w.service.List(t.Context(), by(row.p), proposals.Query{})
		if err != nil || (len(page.Proposals) == 1) != row.sees {
			t.Errorf("%s lists %+v, %v", row.p.ID, page, err)
		}
		q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: note, Object: kg.String("forged"), Graph: kg.IRI(kg.PendingGraphPrefix + id)}
		if _, err := w.update(kg.Meta{Principal: row.p}, kg.Patch{Op: kg.Add, Quad: q}); kg.CodeOf(err) != kg.CodeReserved {
			t.Errorf("%s writes there: %v", row.p.ID, err)
		}
	}
}

func TestExpectedRevision(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	w.judge.approvals.Store(2)
	id := w.propose(set(pay, "more"))
	seen := w.get(id).Revision
	if _, err := w.decide(carol, id, proposals.Approve); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Decide(t.Context(), by(bob), id, proposals.Approve, "", &seen); kg.CodeOf(err) != kg.CodeRevisionConflict {
		t.Errorf("the proposal has changed since: got %v", err)
	}
	seen = w.get(id).Revision
	if _, err := w.update(kg.Meta{Principal: dave}, set(note, "changed")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Decide(t.Context(), by(bob), id, proposals.Approve, "", &seen); kg.CodeOf(err) != kg.CodeRevisionConflict {
		t.Errorf("its subject has changed since: got %v", err)
	}
	seen = w.store.Head().Revision
	if p, err := w.service.Decide(t.Context(), by(bob), id, proposals.Approve, "", &seen); err != nil || p.Status != proposals.Applied {
		t.Errorf("nothing has changed since: got %+v, %v", p, err)
	}

	// The author's expected revision is a conflict of the proposal.
	w.judge.approvals.Store(1)
	r, err := w.update(kg.Meta{Principal: ann, ExpectedRevision: w.store.Head().Revision, HasExpected: true}, set(pay, "even more"))
	if err != nil || r.ProposalID == "" {
		t.Fatalf("got %+v, %v", r, err)
	}
	if _, err := w.update(kg.Meta{Principal: dave}, set(note, "changed again")); err != nil {
		t.Fatal(err)
	}
	if p, err := w.decide(bob, r.ProposalID, proposals.Approve); err != nil || p.Status != proposals.Conflicted || !strings.Contains(p.Conflict, "revision") {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestOpenProposalsAreBounded(t *testing.T) {
	w := newWorld(t, proposals.Options{OpenPerAgent: 2})
	first := w.propose(set(pay, "1"))
	w.propose(set(pay, "2"))
	if _, err := w.update(kg.Meta{Principal: ann}, set(pay, "3")); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("a third: got %v", err)
	}
	if r, err := w.update(kg.Meta{Principal: dave}, set(pay, "4")); err != nil || r.ProposalID == "" {
		t.Errorf("another's: got %+v, %v", r, err)
	}
	if _, err := w.service.Withdraw(t.Context(), by(ann), first); err != nil {
		t.Fatal(err)
	}
	w.propose(set(pay, "5"))
	w.restart()
	if _, err := w.update(kg.Meta{Principal: ann}, set(pay, "6")); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("after a restart: got %v", err)
	}
	w.pass(proposals.DefaultExpires)
	w.propose(set(pay, "7")) // those have expired
}

// TestPagesAreBoundedInBytes proves that a page ends where its patches become too
// many bytes, and that the next one goes on there.
func TestPagesAreBoundedInBytes(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	const size = 900 << 10 // of each: nine fit
	var ids []string
	for range 10 {
		var patches []kg.Patch
		for i := range 2 {
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: pay, Object: kg.String(fmt.Sprint(i, strings.Repeat("x", size/2)))}})
		}
		ids = append(ids, w.propose(patches...))
	}
	page, err := w.service.List(t.Context(), by(ann), proposals.Query{First: proposals.MaxPage})
	if err != nil || len(page.Proposals) != 9 || !page.More {
		t.Fatalf("got %d proposals, more %v, %v", len(page.Proposals), page.More, err)
	}
	page, err = w.service.List(t.Context(), by(ann), proposals.Query{First: proposals.MaxPage, Behind: page.Proposals[8].ID})
	if err != nil || len(page.Proposals) != 1 || page.More || page.Proposals[0].ID != ids[9] {
		t.Fatalf("got %d proposals, more %v, %v", len(page.Proposals), page.More, err)
	}
}

func TestPatchesAreBounded(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	w := newWorld(t, proposals.Options{})
	texts := func(n, size int) (list []kg.Patch) {
		for i := range n {
			list = append(list, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: pay, Object: kg.String(fmt.Sprint(i, strings.Repeat("é", size/2)))}})
		}
		return list
	}
	if _, err := w.update(kg.Meta{Principal: ann}, texts(8, 400<<10)...); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("more than may be held: got %v", err)
	}
	for _, patches := range [][]kg.Patch{texts(7, 400<<10), texts(kg.MaxPatches, 16)} {
		id := w.propose(patches...)
		p, err := w.decide(bob, id, proposals.Approve)
		if err != nil || p.Status != proposals.Applied || len(p.Patches) != len(patches) {
			t.Fatalf("%d patches: got %s, %s, %v", len(patches), p.Status, p.Conflict, err)
		}
		w.want("pending", w.objects(kg.View{Principal: ann, Graphs: []kg.Term{kg.IRI(kg.PendingGraphPrefix + id)}}, pay))
	}
}

// TestReviewersAtOnce proves that concurrent reviewers apply a proposal exactly once,
// with the required number of approvals.
func TestReviewersAtOnce(t *testing.T) {
	const reviewers = 6
	for _, required := range []int32{1, 2, reviewers} {
		w := newWorld(t, proposals.Options{})
		w.judge.approvals.Store(required)
		id := w.propose(set(pay, "more"))
		var closed, decided atomic.Int32
		var group sync.WaitGroup
		for i := range reviewers {
			group.Go(func() {
				_, err := w.decide(agent(fmt.Sprint("r", i), kg.RoleReviewer), id, proposals.Approve)
				switch kg.CodeOf(err) {
				case "":
					decided.Add(1)
				case kg.CodeProposalClosed:
					closed.Add(1)
				default:
					t.Errorf("reviewer %d: %v", i, err)
				}
			})
		}
		group.Wait()
		if decided.Load() != required || closed.Load() != reviewers-required {
			t.Errorf("of %d, %d decided and %d came late; want %d to decide", reviewers, decided.Load(), closed.Load(), required)
		}
		p := w.get(id)
		if p.Status != proposals.Applied || p.Approvals() != int(required) {
			t.Errorf("it is %s with %d approvals", p.Status, p.Approvals())
		}
		applied := 0
		for r := kg.Revision(1); r <= w.store.Head().Revision; r++ {
			c, err := w.store.Commit(t.Context(), kg.SystemPrincipal(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range c.Changes {
				if ch.Quad.Predicate == pay && ch.Quad.Graph == kg.DefaultGraph {
					applied++
				}
			}
		}
		if applied != 1 {
			t.Errorf("it was applied %d times", applied)
		}
	}
}

// TestRestartInTheMiddle proves that a restart does not affect a proposal with one of
// two approvals.
func TestRestartInTheMiddle(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	w.judge.approvals.Store(2)
	meta := kg.Meta{Principal: ann, IdempotencyKey: "k", ContentHash: [32]byte{1}}
	r, err := w.update(meta, set(pay, "more"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.decide(bob, r.ProposalID, proposals.Approve); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if again, err := w.update(meta, set(pay, "more")); err != nil || !again.Replayed || again.ProposalID != r.ProposalID {
		t.Errorf("asked again: got %+v, %v", again, err)
	}
	w.want("pending", w.objects(kg.View{Principal: ann, IncludePending: true}, pay), "more")
	w.want("for others", w.objects(kg.View{Principal: dave, IncludePending: true}, pay))
	if p, err := w.decide(bob, r.ProposalID, proposals.Approve); err != nil || p.Status != proposals.Pending || p.Approvals() != 1 {
		t.Errorf("bob again: got %+v, %v", p, err)
	}
	if p, err := w.decide(carol, r.ProposalID, proposals.Approve); err != nil || p.Status != proposals.Applied {
		t.Errorf("carol: got %+v, %v", p, err)
	}
	w.restart()
	if p := w.get(r.ProposalID); p.Status != proposals.Applied || len(p.Reviews) != 2 {
		t.Errorf("at last it is %+v", p)
	}
}

func TestList(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	var ids []string
	for i := range 5 {
		ids = append(ids, w.propose(set(pay, fmt.Sprint(i))))
	}
	if r, err := w.update(kg.Meta{Principal: dave}, set(pay, "his")); err != nil {
		t.Fatal(err)
	} else {
		ids = append(ids, r.ProposalID)
	}
	if _, err := w.decide(bob, ids[1], proposals.Reject); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		by    kg.Principal
		query proposals.Query
		want  []int
		more  bool
	}{
		{"all", bob, proposals.Query{}, []int{0, 1, 2, 3, 4, 5}, false},
		{"one's own", dave, proposals.Query{}, []int{5}, false},
		{"pending", bob, proposals.Query{Status: proposals.Pending}, []int{0, 2, 3, 4, 5}, false},
		{"rejected", bob, proposals.Query{Status: proposals.Rejected}, []int{1}, false},
		{"withdrawn", bob, proposals.Query{Status: proposals.Withdrawn}, nil, false},
		{"somebody's", bob, proposals.Query{Author: "dave"}, []int{5}, false},
		{"a page", bob, proposals.Query{First: 2}, []int{0, 1}, true},
		{"the next", bob, proposals.Query{First: 2, Behind: ids[1]}, []int{2, 3}, true},
		{"the last", bob, proposals.Query{First: 2, Behind: ids[3]}, []int{4, 5}, false},
	} {
		page, err := w.service.List(t.Context(), by(row.by), row.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range page.Proposals {
			got = append(got, slices.Index(ids, p.ID))
		}
		if !slices.Equal(got, row.want) || page.More != row.more {
			t.Errorf("%s: got %v, more %v; want %v, %v", row.name, got, page.More, row.want, row.more)
		}
	}
	for first, want := range map[int]kg.Code{proposals.MaxPage: "", proposals.MaxPage + 1: kg.CodeLimitExceeded, -1: kg.CodeLimitExceeded} {
		if _, err := w.service.List(t.Context(), by(bob), proposals.Query{First: first}); kg.CodeOf(err) != want {
			t.Errorf("first %d: got %v, want %q", first, err, want)
		}
	}
}

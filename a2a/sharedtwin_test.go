package a2a_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// sightRights are rights to read, and a quarantine, that change while streams are open.
type sightRights struct {
	mu      sync.Mutex // guards the fields below
	shut    map[kg.AgentID]map[kg.Term]bool
	covered map[kg.AgentID]bool // they do not see urn:q in urn:g
	doubts  kg.Doubts
	changed map[kg.AgentID]kg.Revision

	version atomic.Uint64
}

var secretGraph = kg.IRI("urn:secret")

func newSightRights() *sightRights {
	closed := func() map[kg.Term]bool { return map[kg.Term]bool{secretGraph: true} }
	return &sightRights{
		shut:    map[kg.AgentID]map[kg.Term]bool{"agent://ann": {}, "agent://bob": closed(), "agent://eve": closed(), "agent://wes": closed()},
		covered: map[kg.AgentID]bool{"agent://eve": true}, changed: map[kg.AgentID]kg.Revision{},
	}
}

func (r *sightRights) Version() *atomic.Uint64 { return &r.version }

func (r *sightRights) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return right > kg.Read || !r.shut[p.ID][graph]
}

func (r *sightRights) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	return func(predicate, graph kg.Term) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return predicate == kg.IRI("urn:q") && graph == kg.IRI("urn:g") && r.covered[p.ID]
	}
}

func (r *sightRights) Doubted() kg.Doubts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubts
}

func (r *sightRights) DoubtsChanged(after kg.Revision) (bool, kg.Revision) { return false, after }

// change revokes or grants a right, as of a commit. The first is of bob.
func (r *sightRights) change(dice *rand.Rand, in kg.Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	agent := []kg.AgentID{"agent://ann", "agent://bob", "agent://bob", "agent://eve", "agent://wes"}[dice.IntN(5)]
	graph := []kg.Term{secretGraph, secretGraph, kg.IRI("urn:g")}[dice.IntN(3)]
	kind := dice.IntN(5)
	if len(r.changed) == 0 {
		agent, kind = "agent://bob", 2
	}
	switch kind {
	case 0:
		r.covered[agent] = !r.covered[agent]
	case 1:
		if agent = ""; r.doubts == nil {
			r.doubts = kg.Doubts{"agent://b": time.Time{}}
		} else {
			r.doubts = nil
		}
	default:
		r.shut[agent][graph] = !r.shut[agent][graph]
	}
	r.changed[agent] = in
	r.version.Add(1)
}

// tellingRights let streams end when the rights of their readers change.
type tellingRights struct{ *sightRights }

func (r tellingRights) ReadChanged(p kg.Principal, after kg.Revision) (bool, kg.Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.changed[p.ID]
	return in > after, max(in, after)
}

// listener is a reader with a stream.
type listener struct {
	agent string
	// One of the two: the query and the further parameters of knowledge/subscribe, or the
	// query of /changes.
	selection, params string
	query             string
}

const (
	briefly  = `subscription { statementChanged { __typename } }`
	fully    = `subscription { statementChanged { __typename ... on StatementChange { op statement { predicate certainty assertedBy } } } }`
	widely   = `subscription { statementChanged { __typename ... on StatementChange { op statementRemains statement { subject { iri } object { ... on Entity { iri } } graph assertions { certainty revision } } previous { predicate certainty } commit { revision justification taskId } } } }`
	read     = `subscription { statementChanged { __typename ... on StatementChange { op statement { predicate subject { iri degree predicates { iri count } } } commit { principal { id } } } } }`
	removals = `subscription { statementChanged(where: {predicate: {in: ["urn:p", "urn:tick"]}}) { __typename } }`
)

// listeners are streams that show the same, more and less of the same changes.
func listeners() (all []listener) {
	for _, agent := range []string{"ann", "bob", "eve", "wes"} {
		all = append(all, listener{agent: agent, selection: briefly}, listener{agent: agent, query: "?requiredCertainty=0"})
	}
	return append(all,
		listener{agent: "bob", selection: briefly},
		listener{agent: "ann", selection: briefly, params: `"requiredCertainty":0.5,`},
		listener{agent: "bob", selection: briefly, params: `"requiredCertainty":0.5,`},
		listener{agent: "ann", selection: fully},
		listener{agent: "ann", selection: widely}, listener{agent: "bob", selection: widely}, listener{agent: "eve", selection: widely},
		listener{agent: "bob", selection: widely, params: `"requiredCertainty":0.5,`},
		listener{agent: "ann", selection: read}, listener{agent: "bob", selection: read}, listener{agent: "eve", selection: read},
		listener{agent: "eve", selection: fully},
		listener{agent: "ann", selection: removals},
		listener{agent: "ann", query: "?requiredCertainty=0.5"},
		listener{agent: "wes", query: "?graph=&graph=urn:g"},
		listener{agent: "ann", query: "?op=add,remove"},
	)
}

func (l listener) String() string {
	if l.selection == "" {
		return l.agent + " of /changes" + l.query
	}
	return l.agent + " of " + l.selection + " " + l.params
}

func (l listener) listen(t *testing.T, s *testServer) *subscriber {
	t.Helper()
	if l.selection == "" {
		return s.changes(t, l.query, "X-Agent-ID: "+l.agent)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{%s"subscriptionQuery":%q}}`, l.params, l.selection)
	sub := s.open(t, http.MethodPost, "/", body, "X-Agent-ID: "+l.agent, "Last-Event-ID: ")
	sub.established()
	return sub
}

// shownToAll runs the server with these streams and returns what each of them is sent. The
// commits depend on the seed alone.
func shownToAll(t *testing.T, seed uint64, tells bool, all []listener) (sent [][]string) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 5))
	rights := newSightRights()
	o := kg.Options{Governor: kg.Governor{Access: rights, Distrust: rights}}
	if tells {
		o.Access = tellingRights{rights}
	}
	s := newTestServerWith(t, o, sse.Options{MaxStreams: 100}, a2a.Options{})
	var open []*subscriber
	for _, l := range all {
		open = append(open, l.listen(t, s))
	}
	sent = make([][]string, len(all))
	steps := 32
	if testing.Short() {
		steps = 20
	}
	for step := range steps {
		if step%4 == 3 {
			rights.change(dice, s.store.Head().Revision+1)
		}
		for range 1 + dice.IntN(3) {
			s.commitAnything(t, dice)
		}
		tick := kg.Patch{Op: kg.Add, Source: "agent://a", Quad: kg.Quad{Subject: kg.IRI("urn:tick"), Predicate: kg.IRI("urn:tick"), Object: kg.Integer(int64(step))}}
		if _, err := s.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(tick) }); err != nil {
			t.Fatal(err)
		}
		for i, l := range all {
			for {
				block := open[i].block()
				if block == "" { // its reader has other rights now
					sent[i], open[i] = append(sent[i], "end"), l.listen(t, s)
					break
				}
				if !strings.Contains(block, "data: ") {
					continue
				}
				sent[i] = append(sent[i], s.named(block))
				if strings.Contains(block, `"id":"urn:tick"`) {
					break
				}
			}
		}
	}
	for _, sub := range open {
		sub.cancel()
	}
	return sent
}

// commitAnything makes a commit over graphs that some readers see, mostly with reasons, that only
// readers of all its graphs are told.
func (s *testServer) commitAnything(t *testing.T, dice *rand.Rand) {
	t.Helper()
	pick := func(list ...string) string { return list[dice.IntN(len(list))] }
	m := kg.Meta{Principal: kg.Principal{ID: "agent://zoe", ActFor: []kg.AgentID{kg.Anybody}, Method: "open"}, Actor: kg.AgentID(pick("agent://wes", "agent://zoe"))}
	if dice.IntN(4) > 0 {
		m.Justification, m.TaskID, m.SessionID = fmt.Sprint("because of ", dice.IntN(100)), "task", "session"
	}
	quad := func() kg.Quad {
		q := kg.Quad{Subject: kg.IRI(pick("urn:s1", "urn:s2")), Predicate: kg.IRI(pick("urn:p", "urn:q", kg.RDFType)), Object: kg.IRI(pick("urn:o1", "urn:o2")), Graph: kg.DefaultGraph}
		if graph := pick("", "urn:g", "urn:secret"); graph != "" {
			q.Graph = kg.IRI(graph)
		}
		return q
	}
	if _, err := s.store.Update(t.Context(), m, func(tx *kg.Tx) error {
		for range 1 + dice.IntN(4) {
			p := kg.Patch{Op: []kg.Op{kg.Add, kg.Add, kg.Add, kg.Remove, kg.Replace}[dice.IntN(5)], Quad: quad(), Source: kg.AgentID(pick("agent://a", "agent://b", "agent://c")), Certainty: []float64{0.25, 0.75, 1}[dice.IntN(3)], HasCertainty: true}
			if p.Op == kg.Remove {
				p = kg.Patch{Op: kg.Remove, Quad: p.Quad} // with all its assertions
			}
			if err := tx.Apply(p); err != nil && kg.CodeOf(err) != kg.CodeNotFound {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

var (
	anyToken = regexp.MustCompile(`[A-Za-z0-9_-]{20,}`)
	anyUUID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// named replaces what differs between stores by what it stands for: positions and ids.
func (s *testServer) named(block string) string {
	names := map[string]string{}
	head := s.store.Head().Revision
	for r := head - min(head, 8); r <= head; r++ {
		names[s.store.CommitID(r)] = fmt.Sprint("<commit ", r, ">")
		for _, i := range []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, kg.EndOfCommit} {
			names[s.store.ChangeID(kg.Position{Revision: r, Index: i})] = fmt.Sprint("<change ", r, ".", i, ">")
		}
	}
	block = anyUUID.ReplaceAllStringFunc(block, func(id string) string {
		if name := names[id]; name != "" {
			return name
		}
		return id
	})
	return anyToken.ReplaceAllStringFunc(block, func(token string) string {
		p, err := s.store.ParsePosition(token)
		if err != nil {
			return token
		}
		return fmt.Sprint("<position ", p.Revision, ".", p.Index, ">")
	})
}

// Each of many streams over both doors, whose readers see all, only some graphs, not all of a graph,
// only some assertions, their own reasons, and other selections, is sent the bytes that it is sent by a
// server on which it is the only one, while rights are revoked and granted, agents come under
// quarantine, and commits are made in graphs of which some are hidden.
func TestStreamsShowWhatOneAloneShows(t *testing.T) {
	for _, tells := range []bool{false, true} {
		t.Run(fmt.Sprintf("streams end with other rights %t", tells), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			all := listeners()
			together := shownToAll(t, seed, tells, all)
			different := map[string]bool{}
			for i, l := range all {
				told := strings.Join(together[i], "")
				different[told] = true
				if ended := slices.Contains(together[i], "end"); ended != tells && (ended || l.agent == "bob") {
					t.Errorf("%s ended: %t", l, ended)
				}
				for _, shown := range []string{`"justification":"because`, `"op":"remove"`} {
					if l.selection == briefly && !strings.Contains(told, shown) {
						t.Errorf("%s is never sent %s", l, shown)
					}
				}
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					alone := shownToAll(t, seed, tells, []listener{l})[0]
					for n := range max(len(alone), len(together[i])) {
						got, want := "nothing", "nothing"
						if n < len(together[i]) {
							got = together[i][n]
						}
						if n < len(alone) {
							want = alone[n]
						}
						if got != want {
							t.Fatalf("%s, block %d:\ngot   %s\nalone %s", l, n, got, want)
						}
					}
				})
			}
			if len(different) < len(all)*2/3 {
				t.Errorf("%d streams are sent only %d different things", len(all), len(different))
			}
		})
	}
}

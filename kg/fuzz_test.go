package kg

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"koine/kg/base"
	"koine/kg/internal/archive"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/logentry"
)

// Every decoder accepts any bytes: it returns their meaning or an error, and if there is
// only one encoding, accepted input is encoded in that way.

// same fails the test unless an accepted value is written as it was read.
func same(t *testing.T, in, out []byte) {
	t.Helper()
	if !bytes.Equal(in, out) {
		t.Errorf("%x is accepted, and would be written as %x", in, out)
	}
}

// allocates fails the test when fn allocates much more than its input is long.
func allocates(t *testing.T, in []byte, fn func()) {
	t.Helper()
	const perByte, fixed = 512, 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(perByte*len(in)+fixed); got > most {
		t.Errorf("%d bytes of input allocate %d bytes, more than %d", len(in), got, most)
	}
}

var fuzzTerms = []Term{
	DefaultGraph, IRI("urn:a"), IRI(""), Blank("b"), String(""), String("longer than seven"), LangString("hallo", "de-AT"),
	Typed("x", "urn:type"), Typed("1.50", XSDDecimal), Typed("x", XSD), Integer(-5), Integer(math.MaxInt64), Boolean(true), Boolean(false),
	Double(-0.5), Double(math.Inf(-1)), Double(math.Copysign(0, -1)), DateTime(time.Unix(1e9, 5e6)), Typed("2026-11-20", XSDDate),
	Typed("0001-01-01", XSDDate), Typed("9999-12-31T00:00:00Z", XSDDateTime), Typed("007", XSDInteger), Typed("NaN", XSDDouble),
}

func FuzzParseTerm(f *testing.F) {
	for _, t := range fuzzTerms {
		f.Add(base.AppendTerm(nil, t))
	}
	f.Add([]byte{base.FormLang, 0x82, 0x00, 'd', 'e'}) // a length that takes more bytes than it must
	f.Add([]byte{base.FormTyped, 0})
	f.Add(codec.AppendString([]byte{base.FormTyped}, XSDInteger)) // spelled out
	f.Add(append([]byte{base.FormXSD, 6}, "string"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		term, err := base.ParseTerm(b)
		if err == nil {
			same(t, b, base.AppendTerm(nil, term))
		}
	})
}

func FuzzInlineTerm(f *testing.F) {
	for _, t := range fuzzTerms {
		if id, ok := base.InlineID(t); ok {
			f.Add(id[:])
		}
	}
	for tag := range 0x30 {
		f.Add(bytes.Repeat([]byte{byte(tag)}, keys.IDSize))
		f.Add(append([]byte{byte(tag)}, bytes.Repeat([]byte{0xff}, keys.IDSize-1)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != keys.IDSize {
			return
		}
		term, err := base.InlineTerm(ID(b))
		if err != nil {
			return
		}
		if id, ok := base.InlineID(term); !ok || id != ID(b) {
			t.Errorf("%x is %s, whose id is %x (%t)", b, term, id, ok)
		}
	})
}

func FuzzInlineID(f *testing.F) {
	for _, t := range fuzzTerms {
		f.Add(t.Value(), t.ExplicitDatatype())
	}
	for _, datatype := range []string{XSDBoolean, XSDInteger, XSDDouble, XSDDateTime, XSDDate} {
		for _, text := range []string{"", "1", "+1", " 1", "true", "TRUE", "1e400", "-INF", "2026-02-30", "2026-11-20T25:00:00Z", "2026-11-20T10:00:00.10Z", "10000-01-01"} {
			f.Add(text, datatype)
		}
	}
	f.Fuzz(func(t *testing.T, text, datatype string) {
		term := Typed(text, datatype)
		id, ok := base.InlineID(term)
		if !ok {
			return
		}
		if back, err := base.InlineTerm(id); err != nil || back != term {
			t.Errorf("%s has the id %x, which is %s, %v", term, id, back, err)
		}
	})
}

func numberedAgent(n uint64) (AgentID, error) { return AgentID(fmt.Sprint("agent://", n)), nil }

func agentNumber(a AgentID) (n uint64) {
	_, _ = fmt.Sscanf(string(a), "agent://%d", &n)
	return n
}

var fuzzAssertions = []Assertion{
	{Source: "agent://1", Time: time.UnixMilli(0).UTC(), Revision: 1},
	{Source: "agent://2", Certainty: 0.5, HasCertainty: true, Time: time.UnixMilli(-7).UTC(), Revision: 1 << 40, Provenance: []byte(`{"a":1}`)},
	{Source: "agent://3", Time: time.UnixMilli(1e12).UTC(), Revision: 3, Provenance: []byte{}},
	{Source: "agent://4", Time: time.UnixMilli(1).UTC(), Revision: 4, Validity: TimeSpan{From: time.UnixMilli(-5).UTC()}},
	{Source: "agent://5", Time: time.UnixMilli(1).UTC(), Revision: 5, Validity: TimeSpan{From: time.UnixMilli(0).UTC(), Until: time.UnixMilli(1e12).UTC()}, Provenance: []byte(`1`)},
	{Source: "agent://6", Time: time.UnixMilli(1).UTC(), Revision: 6, Embedding: &Embedding{Model: "m", Vector: []float32{1, -0.5}}},
}

func FuzzParseState(f *testing.F) {
	for n := range fuzzAssertions {
		s := base.State{Since: Revision(n + 1), Assertions: fuzzAssertions[:n+1]}
		b := base.AppendState(nil, s, agentNumber)
		if back, err := base.ParseState(b, numberedAgent); err != nil || !cmp.Equal(back, s, cmp.AllowUnexported(base.State{})) {
			f.Fatalf("%+v comes back as %+v, %v", s, back, err)
		}
		f.Add(b)
	}
	f.Add([]byte{base.StateVersion, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		allocates(t, b, func() {
			s, err := base.ParseState(b, numberedAgent)
			since, sinceErr := base.ParseSince(b)
			if err != nil {
				return
			}
			same(t, b, base.AppendState(nil, s, agentNumber))
			if since != s.Since || sinceErr != nil {
				t.Errorf("since %d, %v; the state says %d", since, sinceErr, s.Since)
			}
		})
	})
}

// fuzzCommit is a commit with every kind of change.
func fuzzCommit() *Commit {
	q := Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: String("o"), Graph: DefaultGraph}
	other := Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: LangString("oh", "en"), Graph: IRI("urn:g")}
	a := fuzzAssertions
	return &Commit{
		Revision: 9, Time: time.UnixMilli(1e12).UTC(), Principal: "agent://1", Actor: "agent://2", Justification: "because",
		TaskID: "t", SessionID: "s", MessageID: "m", IdempotencyKey: "k", ContentHash: [32]byte{1, 2, 3},
		Changes: []Change{
			{Op: Add, Quad: q, Assertion: a[0], After: a[:1], ReplacedBy: -1},
			{Op: Remove, Quad: q, Assertion: a[1], Before: a, After: base.WithoutSource(a, a[1].Source), Since: 4, ReplacedBy: -1},
			{Op: Remove, Quad: other, Assertion: a[0], Before: a[:1], Since: 3, ReplacedBy: 3},
			{Op: Add, Quad: q, Assertion: a[5], Before: a[:5], After: a, Since: 5, Replaces: []uint32{2}, ReplacedBy: -1},
		},
	}
}

// The terms and agents of an entry could have another order, so accepted input is encoded
// in the one way, and then stays the same.
func FuzzParseEntry(f *testing.F) {
	c := fuzzCommit()
	whole := logentry.AppendEntry(nil, c)
	if back, err := logentry.ParseEntry(whole, c.Revision); err != nil || !cmp.Equal(back, c, cmp.Comparer(func(a, b Term) bool { return a == b })) {
		f.Fatalf("%+v comes back as %+v, %v", c, back, err)
	}
	f.Add(whole)
	held := fuzzCommit()
	held.ProposalID, held.Held, held.HeldFor = "7", true, "because of a rule"
	proposed := logentry.AppendEntry(nil, held)
	if back, err := logentry.ParseEntry(proposed, c.Revision); err != nil || !cmp.Equal(back, held, cmp.Comparer(func(a, b Term) bool { return a == b })) {
		f.Fatalf("%+v comes back as %+v, %v", held, back, err)
	}
	f.Add(proposed)
	f.Add(logentry.AppendEntry(nil, &Commit{Time: time.UnixMilli(0), Principal: "agent://1"}))
	one := logentry.AppendEntry(nil, &Commit{Time: time.UnixMilli(0), Changes: []Change{fuzzCommit().Changes[0]}})
	body := bytes.LastIndex(one, []byte{byte(Add), 0, 1, 2, 3, 0}) // four terms and an agent
	for i := 1; i <= 5; i++ {
		beyond := bytes.Clone(one)
		beyond[body+i] = 4
		if i == 5 {
			beyond[body+i] = 1
		}
		if _, err := logentry.ParseEntry(beyond, 9); CodeOf(err) != CodeLogDamaged {
			f.Fatalf("index %d beyond its table: %v, want LOG_DAMAGED", i, err)
		}
		f.Add(beyond)
	}
	for cut := 0; cut < len(whole); cut += 5 {
		f.Add(whole[:cut])
		spoiled := bytes.Clone(whole)
		spoiled[cut] ^= 0xff
		f.Add(spoiled)
	}
	writer := logentry.NewEntryWriter()
	f.Fuzz(func(t *testing.T, b []byte) {
		allocates(t, b, func() {
			c, err := logentry.ParseEntry(b, 9)
			if err != nil {
				if code := CodeOf(err); code != CodeLogDamaged && code != CodeFormatUnknown {
					t.Errorf("the code of %v is %s", err, code)
				}
				return
			}
			again := logentry.AppendEntry(nil, c)
			same(t, again, writer.Write(c))
			if n := len(logentry.AppendEntry(nil, &Commit{Changes: c.Changes})); n > logentry.ChangesSizeBound(c.Changes) {
				t.Errorf("%d bytes were taken to be at most %d", n, logentry.ChangesSizeBound(c.Changes))
			}
			d, err := logentry.ParseEntry(again, 9)
			if err != nil {
				t.Fatalf("what was accepted is not accepted again: %v", err)
			}
			same(t, again, logentry.AppendEntry(nil, d))
		})
	})
}

// Values of fixed form.
func FuzzParseValues(f *testing.F) {
	f.Add(index.Tally{Count: 3, Revision: 4}.Encode())
	f.Add(index.IdempotencyRow{Revision: 7, ContentHash: [32]byte{1}, Millis: -5}.Encode())
	f.Add(index.IdempotencyRow{Revision: 7, ContentHash: [32]byte{1}, Millis: 5, Proposal: "p"}.Encode())
	f.Add(index.Marker{Epoch: Epoch{1}, Revision: 2, NextNumber: 3, Millis: 1e12, Hash: [32]byte{4}}.Encode())
	f.Add([]byte{0x80, 0x00, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := index.ParseTally(b); err == nil {
			same(t, b, v.Encode())
		}
		if v, err := index.ParseIdempotencyRow(b); err == nil {
			same(t, b, v.Encode())
		}
		if v, err := index.ParseMarker(b); err == nil {
			encoded := v.Encode()
			if v.HashedTerms { // of any older version
				encoded[0] = b[0]
			}
			same(t, b, encoded)
		}
	})
}

func fuzzStore(f *testing.F) *Store {
	s, err := Open(f.TempDir(), Options{MemTableBytes: MinMemTableBytes, BlockCacheBytes: 8 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	return s
}

// A position is read only from the very token that was made for it.
func FuzzParsePosition(f *testing.F) {
	s := fuzzStore(f)
	for _, p := range []Position{s.Head(), {Epoch: s.Epoch(), Revision: 5, Index: 0}, {Epoch: s.Epoch(), Revision: math.MaxUint64, Index: EndOfCommit}} {
		token := s.FormatPosition(p)
		if back, err := s.ParsePosition(token); err != nil || back != p {
			f.Fatalf("%v comes back as %v, %v", p, back, err)
		}
		last := token[len(token)-1]
		for _, spoiled := range []string{token, token[1:], token + "A", token + "\n", token + "=", token[:len(token)-1] + string(last+1), token[:4] + "\r" + token[4:]} {
			f.Add(spoiled)
		}
	}
	f.Fuzz(func(t *testing.T, token string) {
		p, err := s.ParsePosition(token)
		if err == nil {
			same(t, []byte(token), []byte(s.FormatPosition(p)))
			return
		}
		if e := AsError(err); e.Code != CodePositionGone || e.Oldest == nil {
			t.Errorf("%q: %v, want POSITION_GONE with the oldest", token, err)
		}
	})
}

// A sealed token opens only as it was made, and bound to the same.
func FuzzUnseal(f *testing.F) {
	s := fuzzStore(f)
	bound := []byte("query")
	token := s.Seal([]byte("page 7"), bound)
	last := token[len(token)-1]
	for _, spoiled := range []string{"", "A", token, token + "\n", token[:len(token)-1] + string(last+1), token[2:], token + token} {
		f.Add(spoiled)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain, err := s.Unseal(text, bound)
		if (err == nil) != (text == token) || err == nil && string(plain) != "page 7" {
			t.Errorf("%q opens as %q, %v", text, plain, err)
		}
		if err != nil && CodeOf(err) != CodeCursorForeign {
			t.Errorf("%q: %v, want CURSOR_FOREIGN", text, err)
		}
		if _, err := s.Unseal(token, []byte(text)); (err == nil) != (text == string(bound)) {
			t.Errorf("bound to %q: %v", text, err)
		}
		if again, err := s.Unseal(s.Seal([]byte(text), bound), bound); len(text) < MaxTokenBytes/2 && (err != nil || string(again) != text) {
			t.Errorf("%q comes back as %q, %v", text, again, err)
		}
	})
}

// A checkpoint with a correct checksum may still contain anything.
func FuzzReadCheckpoint(f *testing.F) {
	s := fuzzStore(f)
	_, err := s.Update(context.Background(), Meta{Principal: Principal{ID: "agent://a"}, IdempotencyKey: "k"}, func(tx *Tx) error {
		return tx.Apply(Patch{Op: Add, Quad: Quad{Subject: IRI("urn:s"), Predicate: IRI(RDFType), Object: IRI("urn:c"), Graph: DefaultGraph}})
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := s.Maintenance().Checkpoint(context.Background()); err != nil {
		f.Fatal(err)
	}
	paths, err := s.listCheckpoints()
	if err != nil || len(paths) != 1 {
		f.Fatal(paths, err)
	}
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		f.Fatal(err)
	}
	for cut := 0; cut < len(whole); cut += 40 {
		f.Add(whole[:cut])
	}
	f.Add(whole)
	f.Add(codec.AppendBytes(codec.AppendBytes([]byte{'E'}, []byte{0}), nil))
	f.Add(codec.AppendBytes(codec.AppendBytes([]byte{'S'}, bytes.Repeat([]byte{2}, 36)), []byte{1}))
	f.Add(binary.AppendUvarint([]byte{'T'}, archive.MaxRecordBytes+1))
	f.Add(binary.AppendUvarint([]byte{'T'}, archive.MaxRecordBytes))
	f.Add(binary.AppendUvarint([]byte{'T'}, 1<<39)) // more than there is memory
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		if _, err := archive.ReadCheckpointHead(r); err == nil {
			_ = archive.ReadRecords(r, someRecords(t))
		}
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			t.Fatal(err)
		}
		_ = archive.ReadRecords(bytes.NewReader(z.EncodeAll(b, nil)), someRecords(t)) // as records
	})
}

// someRecords looks at records as restoring them does.
func someRecords(t *testing.T) func(kind byte, key, value []byte) bool {
	return func(kind byte, key, value []byte) bool {
		if len(key)+len(value) > 2*archive.MaxRecordBytes {
			t.Errorf("a record of %d bytes", len(key)+len(value))
		}
		w := &indexTxn{err: codec.ErrMalformed} // writes nowhere
		_ = w.restoreRecord(kind, key, value)
		return true
	}
}

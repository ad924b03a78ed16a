package kgtest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"koine/kg"
)

var (
	urlSafe = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)
	uuidV5  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// testTokens tests the textual tokens of a store: positions, sealed cursors, and ids.
func testTokens(t *testing.T, f Factory) {
	store, other := f(t, kg.Options{}), f(t, kg.Options{})
	for range 3 {
		for _, s := range []*Store{store, other} {
			_, err := s.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{replace(quad("s", "p", fmt.Sprint("o", s.Head().Revision)), "")}))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("positions", func(t *testing.T) { testPositions(t, store, other) })
	t.Run("seals", func(t *testing.T) { testSeals(t, store, other) })
	t.Run("ids", func(t *testing.T) { testIDs(t, store, other) })
}

func testPositions(t *testing.T, store, other *Store) {
	head := store.Head()
	if head.Revision != 3 || head.Index != kg.EndOfCommit {
		t.Errorf("Head: got %+v, want the end of commit 3", head)
	}
	if oldest := store.Oldest(); oldest.Compare(kg.Position{Revision: 0, Index: kg.EndOfCommit}) != 0 || oldest.Epoch != head.Epoch {
		t.Errorf("Oldest: got %+v, want that before the first commit", oldest)
	}
	for _, p := range []kg.Position{head, store.Oldest(), {Epoch: head.Epoch, Revision: 2, Index: 1}, {Epoch: head.Epoch, Revision: 3}} {
		token := store.FormatPosition(p)
		if !urlSafe.MatchString(token) {
			t.Errorf("FormatPosition: %q cannot stand in a URL", token)
		}
		if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || bytes.Contains(raw, []byte{0, 0, 0, byte(p.Revision), byte(p.Index >> 24)}) {
			t.Errorf("the token %q tells its revision and index (%v)", token, err)
		}
		got, err := store.ParsePosition(token)
		if err != nil || got != p {
			t.Errorf("ParsePosition: got %+v, %v, want %+v", got, err, p)
		}
		for name, bad := range map[string]string{
			"cut": token[:len(token)-1], "longer": token + "A", "empty": "", "no token": "latest", "spaces": " " + token,
			"no UTF-8": "\xff\xfe", "very long": strings.Repeat(token, 10_000),
		} {
			if _, err := store.ParsePosition(bad); kg.CodeOf(err) != kg.CodePositionGone {
				t.Errorf("ParsePosition of a token that is %s: got %v, want %s", name, err, kg.CodePositionGone)
			}
		}
	}
	_, err := store.ParsePosition(other.FormatPosition(other.Head()))
	if e := kg.AsError(err); e.Code != kg.CodePositionGone || e.Oldest == nil || *e.Oldest != store.Oldest() {
		t.Errorf("ParsePosition of another store's: got %v, want %s with the oldest position", err, kg.CodePositionGone)
	}
	for name, p := range map[string]kg.Position{
		"of another store": other.Head(),
		"to come":          {Epoch: head.Epoch, Revision: 4},
		"far to come":      {Epoch: head.Epoch, Revision: 1 << 62, Index: kg.EndOfCommit},
	} {
		w, err := store.Watch(within(t), matchAll(), p)
		if e := kg.AsError(err); err == nil || e.Code != kg.CodePositionGone || e.Oldest == nil {
			t.Errorf("Watch from a position %s: got %v, want %s with the oldest position", name, err, kg.CodePositionGone)
		}
		if err == nil {
			w.Close()
		}
	}
}

func testSeals(t *testing.T, store, other *Store) {
	plain, bound := []byte("what only the store may read"), []byte("who asked for what")
	token := store.Seal(plain, bound)
	if !urlSafe.MatchString(token) {
		t.Errorf("Seal: %q cannot stand in a URL", token)
	}
	if raw, _ := base64.RawURLEncoding.DecodeString(token); bytes.Contains(raw, plain[:8]) || strings.Contains(token, "store") {
		t.Error("a sealed token shows what is in it")
	}
	store.Reopen()
	for _, p := range [][]byte{plain, {}} {
		if got, err := store.Unseal(store.Seal(p, bound), bound); err != nil || !bytes.Equal(got, p) {
			t.Errorf("Unseal: got %q, %v, want %q", got, err, p)
		}
	}
	if got, err := store.Unseal(token, bound); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("Unseal after opening again: got %q, %v, want %q", got, err, plain)
	}
	foreign := func(name string, s *Store, token string, bound []byte) {
		if got, err := s.Unseal(token, bound); kg.CodeOf(err) != kg.CodeCursorForeign {
			t.Errorf("%s: got %q, %v, want %s", name, got, err, kg.CodeCursorForeign)
		}
	}
	foreign("bound to something else", store, token, []byte("who asked for something else"))
	foreign("of another store", other, token, bound)
	foreign("empty", store, "", bound)
	foreign("no token", store, "next page please", bound)
	foreign("a position", store, store.FormatPosition(store.Head()), bound)
	for i := range token {
		changed := []byte(token)
		changed[i] ^= 1
		if i == len(token)-1 && len(token)%4 != 0 {
			continue // the last character may have unused bits
		}
		foreign(fmt.Sprintf("character %d changed", i), store, string(changed), bound)
		foreign(fmt.Sprintf("cut at %d", i), store, token[:i], bound)
	}
}

func testIDs(t *testing.T, store, other *Store) {
	seen := map[string]string{}
	note := func(what, id string) {
		if !uuidV5.MatchString(id) {
			t.Errorf("%s: %q is not a UUID of version 5", what, id)
		}
		if before, ok := seen[id]; ok {
			t.Errorf("%s and %s have the same id", what, before)
		}
		seen[id] = what
	}
	all := func() (out []string) {
		for r := kg.Revision(1); r <= 3; r++ {
			out = append(out, store.CommitID(r))
			for i := range uint32(3) {
				out = append(out, store.ChangeID(kg.Position{Epoch: store.Head().Epoch, Revision: r, Index: i}))
			}
			out = append(out, store.SnapshotChangeID(r, quad("s", "p", "o")), store.SnapshotChangeID(r, quad("s", "p", "\"o")),
				store.SnapshotChangeID(r, quadIn(kg.IRI("urn:g"), "s", "p", "o")))
		}
		return out
	}
	before := all()
	for i, id := range before {
		note(fmt.Sprint("id ", i), id)
	}
	note("a commit of another store", other.CommitID(1))
	store.Reopen()
	for i, id := range all() {
		if id != before[i] {
			t.Errorf("id %d is %s after opening again, and was %s", i, id, before[i])
		}
	}
}

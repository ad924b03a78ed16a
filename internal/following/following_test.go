package following_test

import (
	"context"
	"fmt"
	"testing"

	"koine/channels"
	"koine/channels/message"
	"koine/internal/caller"
	"koine/internal/following"
	"koine/kg"
)

// none has no messages.
type none struct{}

func (none) Message(context.Context, channels.Caller, message.ID) (*message.Message, error) {
	return nil, message.ErrNotFound()
}

func start(t *testing.T) (*kg.Store, *following.Service) {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, following.New(store, none{})
}

func as(name string, roles ...string) caller.Caller {
	return caller.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}}
}

// An agent follows up to MaxFollowed agents; following again has no effect, and a reader
// follows nobody.
func TestBounds(t *testing.T) {
	store, s := start(t)
	follow := func(by caller.Caller, whom string, want kg.Code) {
		t.Helper()
		if err := s.Follow(t.Context(), by, kg.CanonicalAgent(whom)); kg.CodeOf(err) != want {
			t.Errorf("%s follows %s: %v, want %q", by.Principal.ID, whom, err, want)
		}
	}
	if _, err := store.Update(t.Context(), kg.Meta{Principal: kg.SystemPrincipal(), Actor: "agent://ann"}, func(tx *kg.Tx) error {
		for i := range following.MaxFollowed - 1 {
			q := kg.Quad{Subject: kg.IRI("agent://ann"), Predicate: kg.IRI(kg.OwnVocabulary + "follows"), Object: kg.IRI(fmt.Sprint("agent://a", i)), Graph: following.Graph}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	follow(as("ann"), "the last", kg.CodeInvalid) // no id
	follow(as("ann"), "last", "")
	follow(as("ann"), "last", "")
	follow(as("ann"), "beyond", kg.CodeLimitExceeded)
	follow(as("ann"), "ann", kg.CodeInvalid)
	follow(as("ann", kg.RoleReader), "last", kg.CodePermissionDenied)
	if err := s.Unfollow(t.Context(), as("ann"), "agent://last"); err != nil {
		t.Fatal(err)
	}
	follow(as("ann"), "beyond", "")
	follow(as("bob"), "ann", "")
	list, more, err := s.Following(t.Context(), as("bob"), "agent://ann", "", 10)
	if err != nil || len(list) != 10 || !more {
		t.Errorf("following: %v %v %v", list, more, err)
	}
	if list, more, err = s.Followers(t.Context(), as("ann"), "agent://ann", "", 10); err != nil || len(list) != 1 || more {
		t.Errorf("followers: %v %v %v", list, more, err)
	}
	// Who has left follows nobody and is followed by nobody.
	if _, err := store.Update(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error { return following.Forget(tx, "agent://ann") }); err != nil {
		t.Fatal(err)
	}
	if list, _, err = s.Following(t.Context(), as("bob"), "agent://ann", "", 10); err != nil || len(list) != 0 {
		t.Errorf("after leaving: %v %v", list, err)
	}
	if list, _, err = s.Following(t.Context(), as("bob"), "agent://bob", "", 10); err != nil || len(list) != 0 {
		t.Errorf("bob still follows: %v %v", list, err)
	}
}

// The feed has the facts of followed agents in the graphs that the reader may read, page by
// page, from the beginning of the log to its end.
func TestFeedOfFacts(t *testing.T) {
	store, s := start(t)
	start := store.Head()
	for _, by := range []string{"ann", "eve"} {
		for i := range 5 {
			if _, err := store.Update(t.Context(), kg.Meta{Principal: as(by).Principal}, func(tx *kg.Tx) error {
				return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:", by, i)), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i))}})
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Follow(t.Context(), as("bob"), "agent://ann"); err != nil {
		t.Fatal(err)
	}
	var got []string
	at, more, pages := start, true, 0
	for more {
		page, next, again, err := s.Feed(t.Context(), as("bob"), following.FeedQuery{After: at, PageSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page {
			got = append(got, item.Fact.Subject.Value())
		}
		at, more = next, again
		if pages++; pages > 10 {
			t.Fatal("the pages do not end")
		}
	}
	if want := "[urn:ann0 urn:ann1 urn:ann2 urn:ann3 urn:ann4]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	newest, _, _, err := s.Feed(t.Context(), as("bob"), following.FeedQuery{PageSize: 2})
	if err != nil || len(newest) != 2 || newest[1].Fact.Subject.Value() != "urn:ann4" {
		t.Errorf("the newest: %v, %v", newest, err)
	}
}

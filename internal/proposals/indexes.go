package proposals

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/kg"
)

// indexes indexes the proposals: all in order, and the open ones by author and by expiry,
// so that no lookup walks over all proposals that ever existed.
type indexes struct {
	mu sync.Mutex // guards the fields below
	// order has all ids in order of creation: ids begin with their time. Returned
	// slices of it are never overwritten.
	order    []string
	open     map[string]*openProposal
	byAuthor map[kg.AgentID]map[string]*openProposal
	expiries *btree.BTreeG[*openProposal] // of open, the next to expire first
	held     int                          // open ones that hold a message
}

type openProposal struct {
	id      string
	author  kg.AgentID
	expires time.Time
	message bool // holds a message
}

func (w *openProposal) expiresBefore(other *openProposal) bool {
	return cmp.Or(w.expires.Compare(other.expires), cmp.Compare(w.id, other.id)) < 0
}

// updateEntry updates the index with the present state of a proposal.
func (l *indexes) updateEntry(id string, e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.order); n == 0 || l.order[n-1] < id {
		l.order = append(l.order, id)
	} else if i, known := slices.BinarySearch(l.order, id); !known {
		l.order = slices.Insert(slices.Clone(l.order), i, id)
	}
	if w := l.open[id]; w != nil {
		l.expiries.Delete(w)
		if w.message {
			l.held--
		}
		delete(l.open, id)
		if delete(l.byAuthor[w.author], id); len(l.byAuthor[w.author]) == 0 {
			delete(l.byAuthor, w.author)
		}
	}
	if !e.open {
		return
	}
	w := &openProposal{id: id, author: e.author, expires: e.expires, message: e.channel != ""}
	if l.open == nil {
		l.open, l.byAuthor = map[string]*openProposal{}, map[kg.AgentID]map[string]*openProposal{}
		l.expiries = btree.NewBTreeGOptions((*openProposal).expiresBefore, btree.Options{NoLocks: true})
	}
	if l.byAuthor[w.author] == nil {
		l.byAuthor[w.author] = map[string]*openProposal{}
	}
	l.open[id], l.byAuthor[w.author][id] = w, w
	l.expiries.Set(w)
	if w.message {
		l.held++
	}
}

// countHeld counts the messages that wait for a review: all of them, including those that
// have expired and not ended yet, and those of a principal.
func (l *indexes) countHeld(author kg.AgentID, now time.Time) (all, own int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.byAuthor[author] {
		if w.message && now.Before(w.expires) {
			own++
		}
	}
	return l.held, own
}

// listAll lists the proposals after one.
func (l *indexes) listAll(after string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, found := slices.BinarySearch(l.order, after)
	if found {
		i++
	}
	return l.order[i:len(l.order):len(l.order)]
}

// listOpen lists the proposals after one that have not ended; they may have expired.
func (l *indexes) listOpen(after string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l.open)), func(id string) bool { return id <= after })
}

// countOpen counts the pending proposals of a principal.
func (l *indexes) countOpen(author kg.AgentID, now time.Time) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.byAuthor[author] {
		if now.Before(w.expires) {
			n++
		}
	}
	return n
}

// firstExpired returns the first expired proposal that has not ended, "" for none.
func (l *indexes) firstExpired(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expiries == nil {
		return ""
	}
	if first, some := l.expiries.Min(); some && !now.Before(first.expires) {
		return first.id
	}
	return ""
}

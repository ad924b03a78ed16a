package kg

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/datadir"
	"koine/kg/internal/keys"
)

const (
	MaxKeptSchemes = 1000 // URI schemes beyond those of every store
	MaxNameBytes   = 64   // of a registered prefix or scheme
	MaxNamespace   = 2048 // bytes of a registered namespace
)

// A prefix is the statement
//
//	urn:koine:prefix:NAME  koine:namespace  "IRI"
//
// in SystemGraph, and a URI scheme that the operator allows is
//
//	urn:koine:scheme:NAME  koine:scheme  "NAME".
//
// Names are resolved by the newest of them, also where a view of the past is asked.
const (
	prefixSubject = "urn:koine:prefix:"
	schemeSubject = "urn:koine:scheme:"
)

var (
	propNamespace = IRI(OwnVocabulary + "namespace")
	propScheme    = IRI(OwnVocabulary + "scheme")
)

// names holds the prefixes and URI schemes registered in a store's log. Only the committer
// changes them once the store is open. Readers take no lock.
type names struct {
	prefixes *Prefixes
	kept     atomic.Pointer[map[string]string] // prefixes that are not built in
	schemes  atomic.Pointer[map[string]struct{}]

	fileMu sync.Mutex        // guards file; held while the file is moved to the log
	file   map[string]string // prefixes of an older directory that are not in the log yet
}

// Names are the registered prefixes, each with its namespace, and the registered URI schemes,
// beyond those of every store.
type Names struct {
	Prefixes map[string]string
	Schemes  map[string]bool
}

// Prefixes returns the built-in and the registered prefixes. It follows the log: a registered
// prefix is known from its commit on.
func (s *Store) Prefixes() *Prefixes { return s.names.prefixes }

// KeptPrefixes returns the registered prefixes, without the built-in ones, with their
// namespaces.
func (s *Store) KeptPrefixes() map[string]string { return maps.Clone(*s.names.kept.Load()) }

// KeptSchemes returns the registered URI schemes in order, without those of every store.
func (s *Store) KeptSchemes() []string {
	return slices.Sorted(maps.Keys(*s.names.schemes.Load()))
}

// KnowsScheme reports whether IRIs of the URI scheme are accepted. Every store knows the
// schemes of IsScheme and tel.
func (s *Store) KnowsScheme(name string) bool {
	if IsScheme(name) || strings.EqualFold(name, "tel") {
		return true
	}
	schemes := *s.names.schemes.Load()
	if len(schemes) == 0 {
		return false
	}
	_, ok := schemes[strings.ToLower(name)]
	return ok
}

// pendingPrefixes returns the prefixes of the file that are not in the log yet.
func (n *names) pendingPrefixes() map[string]string {
	n.fileMu.Lock()
	defer n.fileMu.Unlock()
	return maps.Clone(n.file)
}

// ChangeNames changes the registered names in one commit. change gets the present names and
// modifies them; it may be called more than once. Without a difference there is no commit.
// ChangeNames fails with CodePermissionDenied unless the principal is an administrator, with
// CodeInvalid for an invalid prefix or scheme, and with CodeLimitExceeded beyond the bounds.
func (s *Store) ChangeNames(ctx context.Context, m Meta, change func(*Names) error) (Receipt, error) {
	if !m.Principal.IsAdmin() {
		return Receipt{}, Errorf(CodePermissionDenied, "only an administrator may change prefixes and URI schemes")
	}
	s.names.fileMu.Lock()
	defer s.names.fileMu.Unlock()
	receipt, err := s.Update(ctx, m, func(tx *Tx) error {
		before, err := namesIn(tx.MatchOwn)
		if err != nil {
			return err
		}
		after := Names{maps.Clone(before.Prefixes), maps.Clone(before.Schemes)}
		for name, ns := range s.names.file {
			if after.Prefixes[name] == "" {
				after.Prefixes[name] = ns
			}
		}
		if err := change(&after); err != nil {
			return err
		}
		if err := after.validate(&before); err != nil {
			return err
		}
		return before.writeDifference(&after, tx)
	})
	if err != nil || m.DryRun || s.names.file == nil {
		return receipt, err
	}
	if err := datadir.RemoveFile(s.dir.Join(datadir.PrefixesName)); err != nil {
		return receipt, err
	}
	s.names.file = nil
	return receipt, nil
}

// RegisterPrefixes registers prefixes as a part of an update by koine itself whose content
// uses them. They must be new to the store.
func RegisterPrefixes(tx *Tx, prefixes map[string]string) error {
	before, err := namesIn(tx.MatchOwn)
	if err != nil {
		return err
	}
	after := Names{maps.Clone(before.Prefixes), before.Schemes}
	maps.Copy(after.Prefixes, prefixes)
	if err := after.validate(&before); err != nil {
		return err
	}
	return before.writeDifference(&after, tx)
}

// writeDifference writes the changes from n to after.
func (n *Names) writeDifference(after *Names, tx *Tx) error {
	for name, ns := range n.Prefixes {
		if after.Prefixes[name] != ns {
			if err := tx.ApplyOwn(Patch{Op: Remove, Quad: prefixQuad(name, ns)}); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Prefixes)) {
		if ns := after.Prefixes[name]; n.Prefixes[name] != ns {
			if err := tx.ApplyOwn(Patch{Op: Add, Quad: prefixQuad(name, ns)}); err != nil {
				return err
			}
		}
	}
	for name := range n.Schemes {
		if !after.Schemes[name] {
			if err := tx.ApplyOwn(Patch{Op: Remove, Quad: schemeQuad(name)}); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Schemes)) {
		if after.Schemes[name] && !n.Schemes[name] {
			if err := tx.ApplyOwn(Patch{Op: Add, Quad: schemeQuad(name)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// validate checks the names that are not in before.
func (n *Names) validate(before *Names) error {
	maps.DeleteFunc(n.Schemes, func(_ string, known bool) bool { return !known })
	if len(n.Prefixes) > MaxKeptPrefixes {
		return Errorf(CodeLimitExceeded, "%d prefixes exceed the limit of %d", len(n.Prefixes), MaxKeptPrefixes)
	}
	if len(n.Schemes) > MaxKeptSchemes {
		return Errorf(CodeLimitExceeded, "%d URI schemes exceed the limit of %d", len(n.Schemes), MaxKeptSchemes)
	}
	for name, ns := range n.Prefixes {
		if before.Prefixes[name] == ns {
			continue
		}
		if err := base.ValidPrefixOf(name, ns); err != nil {
			return err
		}
		if len(name) > MaxNameBytes || len(ns) > MaxNamespace {
			return Errorf(CodeLimitExceeded, "a prefix has at most %d bytes, and its namespace %d", MaxNameBytes, MaxNamespace)
		}
		if n.Schemes[strings.ToLower(name)] {
			return Errorf(CodeInvalid, "%s is a URI scheme in this store, and cannot be a prefix", name)
		}
	}
	for name := range n.Schemes {
		if before.Schemes[name] {
			continue
		}
		if !base.ValidScheme(name) || name != strings.ToLower(name) || len(name) > MaxNameBytes {
			return Errorf(CodeInvalid, "%q cannot be a URI scheme: use at most %d lower-case letters, digits, +, - and .", base.Clip(name), MaxNameBytes)
		}
		for prefix := range n.Prefixes {
			if strings.EqualFold(prefix, name) {
				return Errorf(CodeInvalid, "%s is a prefix in this store, and cannot be a URI scheme", prefix)
			}
		}
	}
	return nil
}

func prefixQuad(name, namespace string) Quad {
	return Quad{Subject: IRI(prefixSubject + name), Predicate: propNamespace, Object: String(namespace), Graph: SystemGraph}
}

func schemeQuad(name string) Quad {
	return Quad{Subject: IRI(schemeSubject + name), Predicate: propScheme, Object: String(name), Graph: SystemGraph}
}

// namesIn reads the registered names.
func namesIn(match func(Pattern) iter.Seq2[Statement, error]) (Names, error) {
	n := Names{map[string]string{}, map[string]bool{}}
	for _, p := range [...]Pattern{{Predicate: propNamespace, Graph: SystemGraph}, {Predicate: propScheme, Graph: SystemGraph}} {
		for st, err := range match(p) {
			if err != nil {
				return n, err
			}
			n.applyStatement(st.Quad, true)
		}
	}
	return n, nil
}

// applyStatement adds the name in a statement, or removes it if the statement no longer holds.
// It returns false if the statement is not about a name.
func (n *Names) applyStatement(q Quad, stands bool) bool {
	if q.Graph != SystemGraph {
		return false
	}
	switch q.Predicate {
	case propNamespace:
		name, ok := strings.CutPrefix(q.Subject.Value(), prefixSubject)
		switch {
		case !ok:
			return false
		case stands:
			n.Prefixes[name] = q.Object.Value()
		case n.Prefixes[name] == q.Object.Value():
			delete(n.Prefixes, name)
		}
		return true
	case propScheme:
		if stands {
			n.Schemes[q.Object.Value()] = true
		} else {
			delete(n.Schemes, q.Object.Value())
		}
		return true
	}
	return false
}

// loadNames reads the names when the store is opened: those of the log, and prefixes of a file
// that are not in the log yet.
func (s *Store) loadNames() error {
	snapshot, err := s.View(context.Background(), View{Principal: SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	n, err := namesIn(snapshot.Match)
	if err != nil {
		return err
	}
	s.names.file = s.dir.Prefixes
	for name, ns := range s.names.file {
		if n.Prefixes[name] == "" {
			n.Prefixes[name] = ns
		}
	}
	s.showNames(n)
	return nil
}

func (s *Store) showNames(n Names) {
	schemes := make(map[string]struct{}, len(n.Schemes))
	for name := range n.Schemes {
		schemes[name] = struct{}{}
	}
	s.names.kept.Store(&n.Prefixes)
	s.names.schemes.Store(&schemes)
	s.names.prefixes.Set(n.Prefixes)
}

// followNames applies a commit of one of koine's own graphs to the names, before any reader
// sees it. Only the committer calls it.
func (s *Store) followNames(c *Commit) {
	about := func(ch Change) bool {
		return ch.Quad.Graph == SystemGraph && (ch.Quad.Predicate == propNamespace || ch.Quad.Predicate == propScheme)
	}
	if !slices.ContainsFunc(c.Changes, about) {
		return
	}
	n := Names{s.KeptPrefixes(), map[string]bool{}}
	for name := range *s.names.schemes.Load() {
		n.Schemes[name] = true
	}
	for i := range c.Changes {
		n.applyStatement(c.Changes[i].Quad, len(c.Changes[i].After) > 0)
	}
	s.showNames(n)
}

// SchemeUse is a URI scheme with the number of terms that use it.
type SchemeUse struct {
	Name  string
	Terms uint64
	// Authority means that one of its IRIs begins with "scheme://".
	Authority bool
}

// maxSchemesCounted bounds the schemes that a scan of the dictionary counts.
const maxSchemesCounted = 10_000

// schemesInUse counts the schemes in the dictionary beyond those of every store, most used
// first.
func (s *Store) schemesInUse() ([]SchemeUse, error) {
	snapshot, err := s.View(context.Background(), View{Principal: SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	found := map[string]*SchemeUse{}
	at := snapshot.dict.KV.Scan(keys.NumberPrefix())
	defer at.Close()
	for at.Seek(keys.NumberPrefix()); at.Valid(); at.Next() {
		if err := at.Value(func(record []byte) error { return countScheme(found, record) }); err != nil {
			return nil, err
		}
	}
	var out []SchemeUse
	for _, use := range found {
		if !IsScheme(use.Name) && use.Name != "tel" {
			out = append(out, *use)
		}
	}
	slices.SortFunc(out, func(a, b SchemeUse) int {
		return cmp.Or(cmp.Compare(b.Terms, a.Terms), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// countScheme counts the scheme of a term record (appendTerm).
func countScheme(found map[string]*SchemeUse, record []byte) error {
	if len(record) == 0 {
		return codec.ErrMalformed
	}
	var iri []byte
	switch record[0] {
	case base.FormIRI:
		iri = record[1:]
	case base.FormTyped:
		t, err := base.ParseTerm(record)
		if err != nil {
			return err
		}
		iri = []byte(t.ExplicitDatatype())
	default:
		return nil
	}
	colon := slices.Index(iri, ':')
	if colon <= 0 {
		return nil
	}
	use := found[string(iri[:colon])]
	if use == nil {
		name := strings.ToLower(string(iri[:colon]))
		if use = found[name]; use == nil {
			if len(found) >= maxSchemesCounted || len(name) > MaxNameBytes {
				return nil
			}
			use = &SchemeUse{Name: name}
			found[name] = use
		}
	}
	use.Terms++
	use.Authority = use.Authority || strings.HasPrefix(string(iri[colon+1:min(len(iri), colon+3)]), "//")
	return nil
}

// upgradeNames moves the prefixes of a directory of format 1 into the log and removes their
// file. It also registers the URI schemes in its dictionary that IANA lists or that name an
// authority, so that existing writers keep working. It logs the others for the operator to
// decide. Repeating it has no effect.
func (s *Store) upgradeNames() error {
	uses, err := s.schemesInUse()
	if err != nil {
		return err
	}
	prefixes := s.KeptPrefixes()
	isPrefix := func(scheme string) bool {
		for name := range prefixes {
			if strings.EqualFold(name, scheme) {
				return true
			}
		}
		return false
	}
	var taken []string
	var told []string
	for _, use := range uses {
		fate := "not taken"
		if (use.Authority || base.IsIANAScheme(use.Name)) && len(taken) < MaxKeptSchemes && !isPrefix(use.Name) {
			taken, fate = append(taken, use.Name), "taken"
		}
		if len(told) < maxSchemesTold {
			told = append(told, fmt.Sprintf("%s (%d terms, %s)", use.Name, use.Terms, fate))
		}
	}
	if len(uses) > 0 {
		s.log.Info("URI schemes in use; koine scheme add allows more", "schemes", strings.Join(told, ", "), "count", len(uses))
	}
	meta := Meta{Principal: SystemPrincipal(), Justification: "Take prefixes and URI schemes into the log"}
	_, err = s.ChangeNames(context.Background(), meta, func(n *Names) error {
		for _, name := range taken {
			if len(n.Schemes) < MaxKeptSchemes {
				n.Schemes[name] = true
			}
		}
		return nil
	})
	return err
}

// maxSchemesTold bounds the schemes in the log line of an upgrade.
const maxSchemesTold = 100

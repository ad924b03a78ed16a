package kg

import (
	"context"
	"iter"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"koine/kg/internal/keys"
)

const agentScheme = "agent://"

// agentIDWanted ends the error about an id that no agent may have.
const agentIDWanted = "is not an agent id: use letters, digits and - . _ ~ @ +, or an IRI of a scheme in use"

// reservedIDs begin the ids of things that are no agents.
var reservedIDs = []string{"urn:koine:", "chan:direct:"}

// WellFormed returns CodeInvalid unless the id is one that an agent may take from now on:
// letters, digits and - . _ ~ @ + behind agent://, which has no slash, or an IRI with an
// authority or of a scheme in use; in the composed form of Unicode (NFC), and without
// marks that show a text as another one. Ids of koine's own things are refused. It is stricter than Valid, because stores hold
// ids of before it.
func (a AgentID) WellFormed() error {
	if err := a.Valid(); err != nil {
		return err
	}
	for _, reserved := range reservedIDs {
		if len(a) >= len(reserved) && strings.EqualFold(string(a[:len(reserved)]), reserved) {
			return Errorf(CodeInvalid, "%+q is not an agent id: %s names what is koine's own", clip(string(a)), reserved)
		}
	}
	ok := norm.NFC.IsNormalString(string(a))
	if name, bare := strings.CutPrefix(string(a), agentScheme); bare {
		ok = ok && strings.Trim(name, ".") != "" && !strings.ContainsFunc(name, notInName)
	} else {
		scheme, rest, _ := strings.Cut(string(a), ":")
		ok = ok && (IsScheme(scheme) || strings.HasPrefix(rest, "//")) && !strings.ContainsFunc(rest, misleading)
	}
	if !ok {
		e := Errorf(CodeInvalid, "%+q "+agentIDWanted, clip(string(a)))
		e.Hint = "Accents are composed (NFC), and there are no marks of direction."
		return e
	}
	return nil
}

// notInName tells whether a character is none of an agent's name.
func notInName(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) && !strings.ContainsRune("-._~@+", r)
}

// misleading tells whether a character is not seen, or changes how others are seen:
// control and format characters, direction marks among them, and variation selectors.
func misleading(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// CheckAgent returns CodeInvalid for an id that is not WellFormed, unless the agent is
// there already: on record, one that a key acts for, a member of a channel, or a source of
// statements.
func (s *Store) CheckAgent(ctx context.Context, id AgentID) error {
	malformed := id.WellFormed()
	if malformed == nil || id.Valid() != nil {
		return malformed
	}
	snapshot, err := s.View(ctx, View{Principal: SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if there, err := namesAgent(snapshot.Match, id); there || err != nil {
		return err
	}
	if n, err := s.Backed(id); err != nil || n > 0 {
		return err
	}
	return malformed
}

// CheckAgent is Store.CheckAgent within an update.
func (tx *Tx) CheckAgent(id AgentID) error {
	malformed := id.WellFormed()
	if malformed == nil || id.Valid() != nil {
		return malformed
	}
	if there, err := namesAgent(tx.MatchOwn, id); there || err != nil {
		return err
	}
	term := agentTerm(id)
	source, known, err := tx.w.resolveTerm(&term, nil, nil)
	if err != nil || known && tx.catalog.backed(string(keys.Source(source.Number()))) > 0 {
		return err
	}
	return malformed
}

// namesAgent tells whether the agent has a record, a key to act for it, or a place in a
// channel. Whatever writes these checks the id before, so that a malformed id has them only
// since before ids were checked.
func namesAgent(match func(Pattern) iter.Seq2[Statement, error], id AgentID) (bool, error) {
	patterns := []Pattern{
		{Subject: agentTerm(id), Graph: agentsGraph},
		{Predicate: IRI(OwnVocabulary + "keyActFor"), Object: String(string(id)), Graph: SystemGraph},
	}
	for _, property := range [...]string{"channelOwner", "channelModerator", "channelMember", "channelObserver"} {
		patterns = append(patterns, Pattern{Predicate: IRI(OwnVocabulary + property), Object: agentTerm(id)})
	}
	for _, p := range patterns {
		for _, err := range match(p) {
			return err == nil, err
		}
	}
	return false, nil
}

// agentsGraph holds the records of agents (package agents).
var agentsGraph = IRI(OwnGraphPrefix + "agents")

package views

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"koine/kg"
)

// IDView is the view in an id, as base64url of its JSON. It holds the
// conditions that determine the shown statements and assertions, and not the
// caller: an id grants nothing. Equal conditions have equal bytes: lists are
// sorted and without duplicates, a moment is replaced by its revision, and an
// age by the earliest admitted time.
type IDView struct {
	At                 kg.Revision `json:"at,omitempty"`
	Graphs             *[]string   `json:"graphs,omitempty"` // "" is the default graph
	AllGraphs          bool        `json:"allGraphs,omitempty"`
	IncludePending     bool        `json:"includePending,omitempty"`
	IncludeQuarantined bool        `json:"includeQuarantined,omitempty"`
	MinCertainty       float64     `json:"minCertainty,omitempty"`
	RecordedFrom       string      `json:"recordedFrom,omitempty"`
	RecordedUntil      string      `json:"recordedUntil,omitempty"`
	ValidAt            string      `json:"validAt,omitempty"`
	BelievedBy         *[]string   `json:"believedBy,omitempty"`
}

// CanonicalView returns the view for an id. v.At is 0 if no revision was
// named. now is the evaluation time of an age.
func CanonicalView(v kg.View, now time.Time) IDView {
	c := IDView{At: v.At, IncludeQuarantined: v.Doubted, MinCertainty: max(v.MinCertainty, 0), ValidAt: canonicalTime(v.ValidAt)}
	if v.Graphs != nil {
		names := make([]string, len(v.Graphs))
		for i, g := range v.Graphs {
			names[i] = g.Name()
		}
		c.Graphs = sortedSet(names)
	} else { // see kg.View: with named graphs these have no meaning
		c.AllGraphs, c.IncludePending = v.AllGraphs, v.IncludePending && !v.AllGraphs
	}
	recorded := v.Recorded
	if v.MaxAge > 0 {
		recorded = recorded.Intersect(kg.TimeSpan{From: now.Add(-v.MaxAge)})
	}
	c.RecordedFrom, c.RecordedUntil = canonicalTime(recorded.From), canonicalTime(recorded.Until)
	if v.Believed != nil {
		agents := make([]string, 0, len(v.Believed))
		for _, a := range v.Believed {
			if utf8.ValidString(string(a)) { // no agent id is otherwise
				agents = append(agents, string(a))
			}
		}
		c.BelievedBy = sortedSet(agents)
	}
	return c
}

func sortedSet(list []string) *[]string {
	slices.Sort(list)
	list = slices.Compact(list)
	return &list
}

// canonicalTime returns a time in seconds since 1970, "" for the zero time.
// RFC 3339 cannot represent all years of times in other zones.
func canonicalTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
}

func parseCanonicalTime(text string) (time.Time, error) {
	seconds, nanoseconds, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	n, errN := strconv.ParseInt(nanoseconds, 10, 32)
	if err != nil || errN != nil {
		return time.Time{}, kg.Errorf(kg.CodeInvalid, "%q is not a time", text)
	}
	return time.Unix(s, n).UTC(), nil
}

func (c *IDView) isPresent() bool {
	return c.At == 0 && c.Graphs == nil && !c.AllGraphs && !c.IncludePending && !c.IncludeQuarantined && c.MinCertainty == 0 &&
		c.RecordedFrom == "" && c.RecordedUntil == "" && c.ValidAt == "" && c.BelievedBy == nil
}

// IDs returns the ids of the view. It is an error if the ids would be too
// long.
func (c *IDView) IDs() (*IDs, error) {
	if c.isPresent() {
		return PresentIDs, nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	n := base64.RawURLEncoding.EncodedLen(len(text))
	if most := MaxNodeIDBytes - len(StatementIDPrefix) - len("@:") - hashedNameBytes; n > most {
		e := kg.Errorf(kg.CodeLimitExceeded, "an id in this view needs %d bytes for the view; at most %d are available", n, most)
		e.Hint = "Leave id out, or list fewer graphs or agents in the view."
		return nil, e
	}
	return &IDs{token: "@" + base64.RawURLEncoding.EncodeToString(text) + ":"}, nil
}

// parseViewToken parses the view in an id. The id may be forged, so it must
// equal the canonical form.
func parseViewToken(text string) (*ViewInput, error) {
	refuse := func(why string) (*ViewInput, error) {
		e := kg.Errorf(kg.CodeInvalid, "the view in the id %s", why)
		e.Hint = "Pass an id from an answer unchanged."
		return nil, e.At("id")
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return refuse("is not base64url")
	}
	var c IDView
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return refuse("is invalid")
	}
	v, err := c.toView()
	if err != nil {
		return refuse("is not one that was given out: " + kg.AsError(err).Message)
	}
	again := CanonicalView(v, time.Time{})
	if canonical, err := json.Marshal(&again); err != nil || !bytes.Equal(canonical, data) || again.isPresent() {
		return refuse("is invalid")
	}
	return c.toInput(&v), nil
}

// toView returns a view with the canonical form c.
func (c *IDView) toView() (v kg.View, err error) {
	v = kg.View{At: c.At, AllGraphs: c.AllGraphs, IncludePending: c.IncludePending, Doubted: c.IncludeQuarantined, MinCertainty: c.MinCertainty}
	if c.Graphs != nil {
		v.Graphs = make([]kg.Term, 0, len(*c.Graphs))
		for _, name := range *c.Graphs {
			g := kg.DefaultGraph
			if name != "" {
				if g, err = kg.ParseIRI(name); err != nil {
					return v, err
				}
			}
			v.Graphs = append(v.Graphs, g)
		}
	}
	for _, t := range []struct {
		text string
		to   *time.Time
	}{{c.RecordedFrom, &v.Recorded.From}, {c.RecordedUntil, &v.Recorded.Until}, {c.ValidAt, &v.ValidAt}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = parseCanonicalTime(t.text); err != nil {
			return v, err
		}
	}
	if c.BelievedBy != nil {
		v.Believed = make([]kg.AgentID, 0, len(*c.BelievedBy))
		for _, a := range *c.BelievedBy {
			v.Believed = append(v.Believed, kg.CanonicalAgent(a))
		}
	}
	return v, v.Valid()
}

// toInput returns the view as an argument.
func (c *IDView) toInput(v *kg.View) *ViewInput {
	in := &ViewInput{AllGraphs: &c.AllGraphs, IncludePending: &c.IncludePending, IncludeQuarantined: &c.IncludeQuarantined}
	if c.At != 0 {
		in.At = &kg.Moment{Revision: c.At}
	}
	for i := range v.Graphs {
		in.Graphs = append(in.Graphs, &v.Graphs[i])
	}
	if v.Graphs != nil && in.Graphs == nil {
		in.Graphs = []*kg.Term{}
	}
	if c.MinCertainty != 0 {
		in.MinCertainty = &c.MinCertainty
	}
	if !v.Recorded.IsZero() {
		in.RecordedAt = &TimeSpanInput{From: givenTime(v.Recorded.From), Until: givenTime(v.Recorded.Until)}
	}
	in.ValidAt = givenTime(v.ValidAt)
	if c.BelievedBy != nil {
		in.BelievedBy = *c.BelievedBy
	}
	return in
}

// givenTime returns nil for the zero time.
func givenTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

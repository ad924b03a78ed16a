package channels_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/channels"
	"koine/kg"
)

// What a message says is taken at each bound, and refused past it.
func TestBoundsOfAMessage(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channels.Private)
	list := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("x", i))
		}
		return out
	}
	for name, row := range map[string]struct {
		most int
		fill func(p *channels.Publication, n int)
	}{
		"parts": {channels.MaxParts, func(p *channels.Publication, n int) {
			for len(p.Parts) < n {
				p.Parts = append(p.Parts, p.Parts[0])
			}
		}},
		"artifacts":             {channels.MaxArtifactRefs, func(p *channels.Publication, n int) { p.ArtifactRefs = list(n) }},
		"bytes of an artifact":  {channels.MaxReferenceBytes, func(p *channels.Publication, n int) { p.ArtifactRefs = []string{strings.Repeat("x", n)} }},
		"characters of a key":   {channels.MaxKeyRunes, func(p *channels.Publication, n int) { p.IdempotencyKey = strings.Repeat("ä", n) }},
		"tags":                  {channels.MaxTags, func(p *channels.Publication, n int) { p.Tags = list(n) }},
		"characters of a tag":   {channels.MaxTagRunes, func(p *channels.Publication, n int) { p.Tags = []string{strings.Repeat("ä", n)} }},
		"characters of thread":  {channels.MaxThreadRunes, func(p *channels.Publication, n int) { p.Thread = strings.Repeat("ä", n) }},
		"characters of format":  {channels.MaxFormatRunes, func(p *channels.Publication, n int) { p.Format = strings.Repeat("ä", n) }},
		"bytes of the metadata": {channels.MaxMetadataBytes, func(p *channels.Publication, n int) { p.Metadata = []byte(`{"a":"` + strings.Repeat("x", n-8) + `"}`) }},
	} {
		for n, want := range map[int]kg.Code{row.most: "", row.most + 1: kg.CodeLimitExceeded} {
			p := channels.Publication{Channel: c.ID, Parts: text("hi")}
			row.fill(&p, n)
			_, err := s.Publish(within(t), as("ann"), p)
			wantCode(t, fmt.Sprintf("%d %s", n, name), err, want)
		}
	}
}

// A server keeps so many channels, deleted and direct ones included; a topic is so
// long.
func TestBoundsOfChannels(t *testing.T) {
	s := serve(t, channels.Options{MaxChannels: 3}, kg.Options{})
	long := strings.Repeat("ä", channels.MaxTopicRunes)
	_, err := s.Create(within(t), as("ann"), channels.Draft{Topic: long + "x"})
	wantCode(t, "a topic too long", err, kg.CodeLimitExceeded)
	c, err := s.Create(within(t), as("ann"), channels.Draft{Topic: long})
	wantCode(t, "the longest topic", err, "")
	wantCode(t, "delete", s.Delete(within(t), as("ann"), c.ID), "")
	s.make(t, channels.Private)
	direct := channels.Publication{To: "bob", Parts: text("hi")}
	_, err = s.Publish(within(t), as("ann"), direct)
	wantCode(t, "the last one", err, "")
	_, err = s.Create(within(t), as("ann"), channels.Draft{})
	wantCode(t, "one more", err, kg.CodeLimitExceeded)
	direct.To = "cleo"
	_, err = s.Publish(within(t), as("ann"), direct)
	wantCode(t, "one more direct one", err, kg.CodeLimitExceeded)
	direct.To = "bob"
	_, err = s.Publish(within(t), as("ann"), direct)
	wantCode(t, "in one that is there", err, "")
}

package channels_test

import (
	"encoding/json"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// Parts are returned as they were sent, whatever their texts look like: they are split by
// their ends alone.
func TestPartsComeBackAsTheyWere(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public)
	for i, texts := range [][]string{
		{`{}`},
		{`{"type":"text","text":"a"}`, `{"type":"text","text":"b"}`, `{"type":"data","data":[1,[2,{"x":[]}],"]},{"]}`},
		{`{"t":"\\"}`, `{"t":"\\\""}`, `{"t":"\",\\\\\"[{"}`, `{"\"":","}`},
		{`{ "spaced" : [ 1 , 2 ] , "more" : { } }`, `{"escape":"\u0022,\\u0022"}`},
		{`{"umlaut":"ä, „ö“, 🙂"}`, `{"":""}`},
	} {
		var parts []json.RawMessage
		for _, text := range texts {
			parts = append(parts, json.RawMessage(text))
		}
		r, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: parts})
		if err != nil {
			t.Fatal(i, err)
		}
		list, _, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{SinceSequence: at(r.Message.Sequence - 1)})
		if err != nil || len(list) != 1 || len(list[0].Parts) != len(texts) {
			t.Fatalf("%d: got %+v, %v, want %d parts", i, list, err, len(texts))
		}
		for j, part := range list[0].Parts {
			if string(part) != texts[j] {
				t.Errorf("%d: part %d is %s, want %s", i, j, part, texts[j])
			}
		}
	}
}

package sse

import (
	"bytes"
	"net/http"
)

// WriteSingle answers 200 text/event-stream with one event and ends, for protocols that
// report a refusal in a stream. It is an ordinary answer and takes no place among the
// streams of a server.
func WriteSingle(w http.ResponseWriter, e Event) error {
	if err := e.validate(); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, line := range []struct{ name, text string }{{"id: ", e.ID}, {"event: ", e.Name}} {
		if line.text != "" {
			b.WriteString(line.name + line.text + "\n")
		}
	}
	for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	_, err := w.Write(b.Bytes())
	return err
}

/* This Source Code Form is subject to the terms of the Mozilla Public
 * License, v. 2.0. If a copy of the MPL was not distributed with this
 * file, You can obtain one at http://mozilla.org/MPL/2.0/. */

package sse

import (
	"bytes"
	"net/http"
	"sync"
)

// Direct is a stream to one client without a loop, a queue or goroutines: an
// event is written by the goroutine that sends it. It is not safe for
// concurrent use.
type Direct struct {
	response   http.ResponseWriter
	controller *http.ResponseController
}

// OpenDirect answers with the header of an event stream and the server's
// Headers. The error is that of the response.
func (s *Server) OpenDirect(w http.ResponseWriter) (*Direct, error) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	for k, v := range s.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(http.StatusOK)
	d := &Direct{response: w, controller: http.NewResponseController(w)}
	return d, d.controller.Flush()
}

// Send writes the event as one block and flushes it. After an error, which is
// that of the response, nothing more can be sent.
func (d *Direct) Send(ev *Event) error {
	buffer := blocks.Get().(*[]byte)
	block := ev.AppendTo((*buffer)[:0])
	_, err := d.response.Write(block)
	if err == nil {
		err = d.controller.Flush()
	}
	if cap(block) <= maxPooledBlock {
		*buffer = block
		blocks.Put(buffer)
	}
	return err
}

// blocks recycles the buffers of blocks, so that an idle stream holds none.
var blocks = sync.Pool{New: func() any { return new([]byte) }}

// maxPooledBlock is the largest buffer worth keeping.
const maxPooledBlock = 64 << 10

// AppendTo appends the block of the event: the lines of those fields that are
// set, in the order id, event, data, retry, comment, and an empty line. Data
// and Comment are set if they are not nil; Data may span lines.
func (e *Event) AppendTo(b []byte) []byte {
	b = appendLine(b, "id: ", e.ID)
	b = appendLine(b, "event: ", e.Event)
	if e.Data != nil {
		rest, more := e.Data, true
		for more {
			var line []byte
			line, rest, more = bytes.Cut(rest, []byte{'\n'})
			b = append(b, "data: "...)
			b = append(b, line...)
			b = append(b, '\n')
		}
	}
	b = appendLine(b, "retry: ", e.Retry)
	if e.Comment != nil {
		b = append(b, ": "...)
		b = append(b, e.Comment...)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

func appendLine(b []byte, field string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	b = append(b, field...)
	b = append(b, value...)
	return append(b, '\n')
}

/* This Source Code Form is subject to the terms of the Mozilla Public
 * License, v. 2.0. If a copy of the MPL was not distributed with this
 * file, You can obtain one at http://mozilla.org/MPL/2.0/. */

package sse

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Direct is a stream to one client without a loop, a queue or goroutines: an
// event is written by the goroutine that sends it. It is not safe for
// concurrent use.
type Direct struct {
	response   http.ResponseWriter
	controller *http.ResponseController
	conn       io.Writer // set by Take, in place of the two above
	written    int64
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

// Take continues the stream on its connection, which was taken from the HTTP
// server after the header of a chunked answer was sent: each event is one chunk
// of HTTP/1.1 (RFC 9112, section 7.1) in one write. The response is not used any
// more.
func (d *Direct) Take(conn io.Writer) {
	d.response, d.controller, d.conn = nil, nil, conn
}

// Close ends the body of a stream on a connection.
func (d *Direct) Close() error {
	_, err := io.WriteString(d.conn, "0\r\n\r\n")
	return err
}

// Written returns the bytes of the events that were sent.
func (d *Direct) Written() int64 { return d.written }

// Send writes the event as one block and flushes it. After an error, which is
// that of the response, nothing more can be sent.
func (d *Direct) Send(ev *Event) error {
	buffer := blocks.Get().(*[]byte)
	block := ev.AppendTo(append((*buffer)[:0], chunkSize...))
	err := d.writeBlock(block)
	if cap(block) <= maxPooledBlock {
		*buffer = block
		blocks.Put(buffer)
	}
	return err
}

// writeBlock writes a block that follows room for the size of a chunk.
func (d *Direct) writeBlock(block []byte) (err error) {
	if d.conn != nil {
		return d.writeChunk(block)
	}
	n, err := d.response.Write(block[len(chunkSize):])
	d.written += int64(n)
	if err == nil {
		err = d.controller.Flush()
	}
	return err
}

func (d *Direct) writeChunk(block []byte) error {
	size := len(block) - len(chunkSize)
	var digits [len(chunkSize)]byte
	hex := strconv.AppendInt(digits[:0], int64(size), 16)
	at := len(chunkSize) - 2 - len(hex)
	copy(block[at:], hex)
	n, err := d.conn.Write(append(block, "\r\n"...)[at:])
	d.written += int64(min(n, size))
	return err
}

// chunkSize is the room for the size of a chunk.
const chunkSize = "????????????????\r\n"

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

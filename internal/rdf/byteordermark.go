package rdf

import (
	"errors"
	"io"
)

const byteOrderMark = "\ufeff"

// withoutMark skips a byte order mark at the beginning, which every format allows. Elsewhere it is
// an ordinary character.
func withoutMark(r io.Reader) io.Reader { return &markReader{r: r} }

type markReader struct {
	r     io.Reader
	begun bool
	head  []byte // read ahead and not returned yet
	err   error  // error of the read ahead
}

func (m *markReader) Read(b []byte) (int, error) {
	if !m.begun {
		m.begun = true
		head := make([]byte, len(byteOrderMark))
		n, err := io.ReadFull(m.r, head)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if m.head, m.err = head[:n], err; string(m.head) == byteOrderMark {
			m.head = nil
		}
	}
	if len(m.head) > 0 {
		n := copy(b, m.head)
		m.head = m.head[n:]
		return n, nil
	}
	if m.err != nil {
		return 0, m.err
	}
	return m.r.Read(b)
}

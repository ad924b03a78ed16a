package rdf

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"koine/kg"
)

// readLines reads N-Triples and N-Quads (RDF 1.1 N-Quads, section 4).
func readLines(r io.Reader, f Format, o Options) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		in := newBlockReader(r, o.LineBytes())
		defer in.close()
		l := &lineReader{parser: newLineParser(f, o), options: o, lineLimit: o.LineBytes(), yield: yield}
		for {
			b := in.next()
			if !l.readBlock(b) {
				return
			}
			if b.err != nil {
				if !errors.Is(b.err, io.EOF) {
					yield(kg.Quad{}, o.errorAt(l.line+1, b.err))
				}
				return
			}
			in.recycleBuffer(b.lines)
		}
	}
}

type lineReader struct {
	parser    *lineParser
	options   Options
	lineLimit int // largest length of a line in bytes
	line      int
	yield     func(kg.Quad, error) bool
}

// readBlock yields the quads of a block's lines and reports whether to continue.
func (l *lineReader) readBlock(b block) bool {
	rest := b.lines
	broken := b.err != nil && !errors.Is(b.err, io.EOF)
	for len(rest) > 0 {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if !ended && broken {
			return true // a partial line before the error that follows
		}
		rest = after
		l.line++
		if !l.readLine(line, b.skipped && len(rest) == 0) {
			return false
		}
	}
	return true
}

func (l *lineReader) readLine(line []byte, skipped bool) bool {
	var q kg.Quad
	var ok bool
	var err error
	if skipped || len(line) > l.lineLimit {
		err = tooLong("a line is longer than %d bytes", l.lineLimit)
	} else {
		q, ok, err = l.parser.parse(line)
	}
	if err != nil {
		failure := &SyntaxError{Document: l.options.Name, Line: l.line, Err: err}
		if !l.options.ContinueOnError {
			l.yield(kg.Quad{}, failure)
			return false
		}
		if l.options.Rejected != nil {
			l.options.Rejected(failure)
		}
		return true
	}
	return !ok || l.yield(q, nil)
}

package journal

import (
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// Read returns up to n messages of a channel in order, starting with sequence
// from, as the viewer sees them.
func Read(snapshot *kg.Snapshot, id channel.ID, from int64, n int, by message.Viewer) ([]*message.Message, error) {
	list, _, err := ReadRun(snapshot, id, from, n, false, by)
	return list, err
}

// ReadRun is like readMessages but returns at most MaxPageBytes of content, and at
// least one message: the first messages or, with last, the last ones. cut reports that
// some were omitted.
func ReadRun(snapshot *kg.Snapshot, id channel.ID, from int64, n int, last bool, by message.Viewer) (out []*message.Message, cut bool, err error) {
	out = make([]*message.Message, 0, n)
	var rows []kg.Row
	for row, err := range snapshot.Numbered(id.MessagesGraph(), from) {
		if err != nil {
			return nil, false, err
		}
		if rows = append(rows, row); len(rows) == n {
			break
		}
	}
	if len(rows) == 0 {
		return out, false, nil
	}
	r := &messageReader{snapshot: snapshot, channel: id, contents: snapshot.Sweep(), sequences: snapshot.SweepAsserted()}
	defer r.close()
	size := 0
	for i := range rows {
		m, err := r.readMessage(&rows[i], by)
		if err != nil {
			return nil, false, err
		}
		out = append(out, m)
		for size += m.Size(); size > message.MaxPageBytes && len(out) > 1; cut = true {
			if !last {
				return out[:len(out)-1], true, nil
			}
			size -= out[0].Size()
			out = out[1:]
		}
	}
	return out, cut, nil
}

// messageReader reads messages in sequence order. Subject ids are assigned in the same
// order, so the statements of a page of messages are adjacent in the index.
type messageReader struct {
	snapshot *kg.Snapshot
	channel  channel.ID
	// contents scans the statements about messages. Only the sequence statements need
	// their assertions, and each takes a lookup: sequences does these in ascending
	// order.
	contents, sequences *kg.Sweep
}

func (r *messageReader) close() {
	r.contents.Close()
	r.sequences.Close()
}

// readMessage returns the message of a sequence row, as the viewer sees it.
func (r *messageReader) readMessage(row *kg.Row, by message.Viewer) (*message.Message, error) {
	subject, err := r.snapshot.Term(row.Subject)
	if err != nil {
		return nil, err
	}
	m := &message.Message{Channel: r.channel, ID: message.IDIn(subject)}
	for r.sequences.Seek(kg.IDPattern{Subject: row.Subject, Predicate: row.Predicate, Graph: row.Graph}, nil); r.sequences.Next(); {
		list, err := r.snapshot.Assertions(*r.sequences.Row())
		if err != nil {
			return nil, err
		}
		m.Revision, m.Time = list[0].Revision, list[0].Time
	}
	if err := r.sequences.Err(); err != nil {
		return nil, err
	}
	if err := r.readStatements(m, row.Subject, row.Graph); err != nil {
		return nil, err
	}
	if m.Private && by.MayRead(m) {
		partition, known, err := r.snapshot.ID(m.ContentGraph())
		if err != nil {
			return nil, err
		}
		if known {
			if err := r.readStatements(m, row.Subject, partition); err != nil {
				return nil, err
			}
		}
	}
	m.RedactFor(by)
	return m, nil
}

// readStatements adds the statements about the message in a graph.
func (r *messageReader) readStatements(m *message.Message, subject, graph kg.ID) error {
	for r.contents.Seek(kg.IDPattern{Subject: subject, Graph: graph}, nil); r.contents.Next(); {
		row := r.contents.Row()
		property, err := r.snapshot.Term(row.Predicate)
		if err != nil {
			return err
		}
		object, err := r.snapshot.Term(row.Object)
		if err != nil {
			return err
		}
		if err := m.ApplyStatement(property, object); err != nil {
			return err
		}
	}
	return r.contents.Err()
}

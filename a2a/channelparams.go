package a2a

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Readers of params that the methods of the channels extension share.

// largest is the greatest integer that every JSON reader handles exactly. Sequences and
// times above it are clamped.
const largest = 1<<53 - 1

func clampSequence(n uint64) int64 { return int64(min(n, largest)) }

// readPageSize reads the page size, clamped to its range (the domain sets the upper bound).
// It returns 0 if absent.
func (o *object) readPageSize() int {
	n, ok := o.readClamped("pageSize", 1, math.MaxInt32)
	if !ok {
		return 0
	}
	return int(n)
}

// readClamped reads an integer and clamps it between two bounds.
func (o *object) readClamped(name string, low, high int64) (n int64, ok bool) {
	text, ok := o.readNumber(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64) // out of range, it returns the nearest value
	if err != nil && n == 0 {
		o.failAt(name, "must be a whole number, not %s", clipText(text))
		return 0, false
	}
	return min(max(n, low), high), true
}

// readMillis reads a time in milliseconds since the epoch; zero if absent.
func (o *object) readMillis(name string) time.Time {
	n, ok := o.readNatural(name)
	if !ok {
		return time.Time{}
	}
	if n > lastMilli {
		o.failAt(name, "must be a time in milliseconds since the epoch, before the year 10000")
		return time.Time{}
	}
	return time.UnixMilli(int64(n)).UTC()
}

// lastMilli is the last millisecond of the year 9999.
const lastMilli = 253_402_300_799_999

// readRequiredAgent reads a required agent.
func (o *object) readRequiredAgent(name string) kg.AgentID {
	if !o.hasMember(name) {
		o.addKnown(name)
		o.failAt(name, "is required")
		return ""
	}
	return o.readAgent(name)
}

// readTexts reads a list of strings; nil if absent.
func (o *object) readTexts(name string) []string {
	elements, ok := o.readArray(name)
	if !ok {
		return nil
	}
	list := make([]string, 0, len(elements))
	for i, raw := range elements {
		if raw[0] != '"' {
			o.failAt(elementPath(name, i), "must be a string, not %s", kindOf(raw))
			return nil
		}
		list = append(list, decodeString(raw))
	}
	return list
}

// readAgentList reads a list of agents.
func (o *object) readAgentList(name string) (list []kg.AgentID) {
	for i, text := range o.readTexts(name) {
		id, err := caller.ParseAgent(text)
		if err != nil {
			o.failure.setAt(joinPath(o.path, elementPath(name, i)), kg.AsError(err))
			return nil
		}
		list = append(list, id)
	}
	return list
}

// readContent reads an object of the caller's own and returns it unchanged, except for a
// credential, which must not be stored, and for koine's controls, of which these
// methods have none.
func (o *object) readContent(name string) []byte {
	raw := o.peekMember(name)
	members, ok := o.readMember(name)
	if !ok || o.failure.err != nil {
		return nil
	}
	own, _ := members.readMember("koine")
	own.checkAllRead()
	members.takeMember("securityToken")
	kept, taken := make([][]byte, 0, len(members.members)), 0
	for _, m := range splitObject(bytes.TrimSpace(raw)) {
		if m.name == "koine" || m.name == "securityToken" {
			taken++
			continue
		}
		quoted, err := appendJSON(nil, m.name)
		if err != nil {
			o.failure.setAt(joinPath(o.path, name), kg.AsError(err))
			return nil
		}
		kept = append(kept, append(append(quoted, ':'), m.value...))
	}
	switch {
	case taken == 0:
		return raw
	case len(kept) == 0:
		return nil
	}
	return append(append([]byte{'{'}, bytes.Join(kept, []byte{','})...), '}')
}

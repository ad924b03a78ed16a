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

func bounded(n uint64) int64 { return int64(min(n, largest)) }

// pageSize reads the page size, clamped to its range (the domain sets the upper bound).
// It returns 0 if absent.
func (o *object) pageSize() int {
	n, ok := o.clamped("pageSize", 1, math.MaxInt32)
	if !ok {
		return 0
	}
	return int(n)
}

// clamped reads an integer and clamps it between two bounds.
func (o *object) clamped(name string, low, high int64) (n int64, ok bool) {
	text, ok := o.number(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64) // out of range, it returns the nearest value
	if err != nil && n == 0 {
		o.fail(name, "must be a whole number, not %s", clip(text))
		return 0, false
	}
	return min(max(n, low), high), true
}

// millis reads a time in milliseconds since the epoch; zero if absent.
func (o *object) millis(name string) time.Time {
	n, ok := o.natural(name)
	if !ok {
		return time.Time{}
	}
	if n > lastMilli {
		o.fail(name, "must be a time in milliseconds since the epoch, before the year 10000")
		return time.Time{}
	}
	return time.UnixMilli(int64(n)).UTC()
}

// lastMilli is the last millisecond of the year 9999.
const lastMilli = 253_402_300_799_999

// requiredAgent reads a required agent.
func (o *object) requiredAgent(name string) kg.AgentID {
	if !o.has(name) {
		o.know(name)
		o.fail(name, "is required")
		return ""
	}
	return o.agent(name)
}

// texts reads a list of strings; nil if absent.
func (o *object) texts(name string) []string {
	elements, ok := o.array(name)
	if !ok {
		return nil
	}
	list := make([]string, 0, len(elements))
	for i, raw := range elements {
		if raw[0] != '"' {
			o.fail(index(name, i), "must be a string, not %s", kindOf(raw))
			return nil
		}
		list = append(list, unquote(raw))
	}
	return list
}

// agentList reads a list of agents.
func (o *object) agentList(name string) (list []kg.AgentID) {
	for i, text := range o.texts(name) {
		id, err := caller.ParseAgent(text)
		if err != nil {
			o.failure.set(join(o.path, index(name, i)), kg.AsError(err))
			return nil
		}
		list = append(list, id)
	}
	return list
}

// content reads an object of the caller's own and returns it unchanged, except for a
// credential, which must not be stored, and for koine's controls, of which these
// methods have none.
func (o *object) content(name string) []byte {
	raw := o.peek(name)
	members, ok := o.object(name)
	if !ok || o.failure.err != nil {
		return nil
	}
	own, _ := members.object("koine")
	own.done()
	members.take("securityToken")
	kept, taken := make([][]byte, 0, len(members.members)), 0
	for _, m := range split(bytes.TrimSpace(raw)) {
		if m.name == "koine" || m.name == "securityToken" {
			taken++
			continue
		}
		quoted, err := appendJSON(nil, m.name)
		if err != nil {
			o.failure.set(join(o.path, name), kg.AsError(err))
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

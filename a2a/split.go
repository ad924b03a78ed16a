package a2a

// Splitting scanned JSON without decoding its content: the values are slices of the
// request's body.

// splitObject returns the members of an object.
func splitObject(raw []byte) []member {
	members := make([]member, 0, 4)
	i := skipSpace(raw, 1)
	for raw[i] != '}' {
		nameEnd := stringEnd(raw, i)
		name := memberName(raw[i:nameEnd])
		i = skipSpace(raw, nameEnd)
		i = skipSpace(raw, i+1) // ':'
		end := valueEnd(raw, i)
		members = append(members, member{name, raw[i:end]})
		i = skipSpace(raw, end)
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return members
}

// patchNames are the names that an update repeats ten thousand times, interned to save
// copies.
var patchNames = func() map[string]string {
	names := map[string]string{}
	for _, name := range [...]string{"op", "statement", "subject", "predicate", "object", "id", "value", "type", "graph", "certainty", "provenance", "language", "validFrom", "validTo"} {
		names[`"`+name+`"`] = name
	}
	return names
}()

func memberName(quoted []byte) string {
	if name, ok := patchNames[string(quoted)]; ok {
		return name
	}
	return decodeString(quoted)
}

// splitArray returns the elements of an array.
func splitArray(raw []byte) [][]byte {
	elements := [][]byte{}
	i := skipSpace(raw, 1)
	for raw[i] != ']' {
		end := valueEnd(raw, i)
		elements = append(elements, raw[i:end])
		i = skipSpace(raw, end)
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return elements
}

func skipSpace(raw []byte, i int) int {
	for raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r' {
		i++
	}
	return i
}

// valueEnd returns the index after the value that starts at i.
func valueEnd(raw []byte, i int) int {
	switch raw[i] {
	case '"':
		return stringEnd(raw, i)
	case '{', '[':
		return containerEnd(raw, i)
	}
	for i < len(raw) {
		switch raw[i] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			return i
		}
		i++
	}
	return i
}

func containerEnd(raw []byte, i int) int {
	for open := 0; ; i++ {
		switch raw[i] {
		case '{', '[':
			open++
		case '}', ']':
			if open--; open == 0 {
				return i + 1
			}
		case '"':
			i = stringEnd(raw, i) - 1
		}
	}
}

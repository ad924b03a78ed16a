package a2a

// Taking scanned JSON apart without decoding what is inside: the values are
// slices of the request's body.

// split gives the members of an object.
func split(raw []byte) []member {
	var members []member
	i := skipSpace(raw, 1)
	for raw[i] != '}' {
		nameEnd := stringEnd(raw, i)
		name := unquote(raw[i:nameEnd])
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

// splitArray gives the elements of an array.
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

// valueEnd is the index behind the value that begins at i.
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

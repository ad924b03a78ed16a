package base

import "strings"

// canonicalTag returns a language tag, given in lower case, in the case that RFC 5646
// recommends (section 2.1.1): after the first subtag and before any singleton, subtags of
// two letters are in upper case and those of four begin with a capital.
//
// Terms keep the lower case in the log and the index, and are spelled on output. The
// spelling therefore does not depend on the first writer of a tag, and nothing stored has
// to be rewritten.
func canonicalTag(lower string) string {
	at := strings.IndexByte(lower, '-')
	if at <= 1 { // no second subtag, or a private one (x-…)
		return lower
	}
	var out []byte
	for at < len(lower) {
		begin := at + 1
		end := len(lower)
		if n := strings.IndexByte(lower[begin:], '-'); n >= 0 {
			end = begin + n
		}
		upTo := begin // letters that become capitals
		switch end - begin {
		case 1:
			at = len(lower) // a singleton: the rest keeps its case
			continue
		case 2:
			upTo = end
		case 4:
			upTo = begin + 1
		}
		for i := begin; i < upTo; i++ {
			if c := lower[i]; c >= 'a' && c <= 'z' {
				if out == nil {
					out = []byte(lower)
				}
				out[i] = c - 'a' + 'A'
			}
		}
		at = end
	}
	if out == nil {
		return lower
	}
	return string(out)
}

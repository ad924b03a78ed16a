package rdf

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"koine/kg"
)

// maxKeptLabel is the longest blank node label that is kept unchanged. It keeps labels from
// growing when a document is exported and imported repeatedly.
const maxKeptLabel = 48

var labelEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// DocumentTag returns the tag of a document with this content: its blank nodes get the same
// labels whenever it is read.
func DocumentTag(content [sha256.Size]byte) string {
	return "d" + labelEncoding.EncodeToString(content[:10])
}

// RandomTag returns a tag for a document with unknown content: its blank nodes are new each time.
func RandomTag() string {
	var b [10]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return "r" + labelEncoding.EncodeToString(b[:])
}

// blankNodes maps a document's blank nodes to labels in the store.
type blankNodes struct {
	tag  string
	anon int
}

// namedNode returns the node for the document's _:label. The mapping is one-to-one:
// "tag-label" for a short and plain label, else "tag.hash".
func (b *blankNodes) namedNode(label []byte) kg.Term {
	if plainLabel(label) {
		buf := make([]byte, 0, 64+maxKeptLabel)
		buf = append(buf, b.tag...)
		buf = append(buf, '-')
		buf = append(buf, label...)
		return kg.Blank(string(buf))
	}
	sum := sha256.Sum256(label)
	return kg.Blank(b.tag + "." + labelEncoding.EncodeToString(sum[:16]))
}

// freshNode returns a node without a label in the document: [] or a list cell. These are
// numbered in document order.
func (b *blankNodes) freshNode() kg.Term {
	b.anon++
	return kg.Blank(b.tag + "--" + strconv.Itoa(b.anon))
}

func plainLabel(label []byte) bool {
	if len(label) == 0 || len(label) > maxKeptLabel || label[0] == '-' {
		return false
	}
	for _, c := range label {
		if !isAlnum(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// validTag reports whether a caller's tag can begin a label.
func validTag(tag string) bool {
	return tag != "" && len(tag) <= 64 && strings.IndexFunc(tag, func(r rune) bool {
		return r > 0x7f || !isAlnum(byte(r))
	}) < 0
}

package rdf

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"koine/kg"
)

// maxKeptLabel is the longest blank node label that is taken over as it is.
// With the bound, labels do not grow without end when a document is exported
// and read again and again.
const maxKeptLabel = 48

var labelEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// DocumentTag is the tag of the document with this content: its blank nodes
// get the same labels whenever it is read.
func DocumentTag(content [sha256.Size]byte) string {
	return "d" + labelEncoding.EncodeToString(content[:10])
}

// RandomTag is a tag for a document whose content is not known beforehand:
// its blank nodes are new ones every time.
func RandomTag() string {
	var b [10]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return "r" + labelEncoding.EncodeToString(b[:])
}

// blankNodes gives a document's blank nodes their labels in the store.
type blankNodes struct {
	tag  string
	anon int
}

// named is the node that the document calls _:label. The mapping is
// one-to-one: "tag-label" where the label is short and plain, and "tag.hash"
// for all others.
func (b *blankNodes) named(label []byte) kg.Term {
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

// fresh is a node that the document gives no label: [] or a list cell. They
// are numbered in the order of the document.
func (b *blankNodes) fresh() kg.Term {
	b.anon++
	return kg.Blank(b.tag + "--" + decimal(b.anon))
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

// validTag tells whether a tag given from outside can begin a label.
func validTag(tag string) bool {
	return tag != "" && len(tag) <= 64 && strings.IndexFunc(tag, func(r rune) bool {
		return r > 0x7f || !isAlnum(byte(r))
	}) < 0
}

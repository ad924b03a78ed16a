package kg

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync/atomic"

	"github.com/google/uuid"

	"koine/kg/internal/base"
)

// sealer makes the tokens that go outside. Their keys come from the directory's
// secret.
type sealer struct {
	aead     cipher.AEAD
	mac      []byte
	position cipher.Block // of one block: the same position gives the same token
	last     atomic.Pointer[formatted]
}

// formatted is the position that was made a token of last: most answers of a moment
// are about the same.
type formatted struct {
	position Position
	token    string
}

func newSealer(secret []byte) (*sealer, error) {
	block, err := aes.NewCipher(deriveKey(secret, "cursor"))
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	position, err := aes.NewCipher(deriveKey(secret, "position block"))
	return &sealer{aead: aead, mac: deriveKey(secret, "position"), position: position}, err
}

func deriveKey(secret []byte, purpose string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("koine " + purpose))
	return h.Sum(nil)
}

const sealVersion = 1

// MaxTokenBytes bounds the tokens that are looked at.
const MaxTokenBytes = 4 << 10

// Seal encrypts and authenticates plain as a URL-safe token that only this
// store opens, and only with the same bound: a hash of what the token belongs
// to, such as query, view and principal.
func (s *Store) Seal(plain, bound []byte) string {
	token := make([]byte, 1+s.sealer.aead.NonceSize(), 1+s.sealer.aead.NonceSize()+len(plain)+s.sealer.aead.Overhead())
	token[0] = sealVersion
	_, _ = rand.Read(token[1:]) // never fails
	token = s.sealer.aead.Seal(token, token[1:], plain, bound)
	return base64.RawURLEncoding.EncodeToString(token)
}

// Unseal opens what Seal made. Anything else is CodeCursorForeign.
func (s *Store) Unseal(token string, bound []byte) ([]byte, error) {
	foreign := Errorf(CodeCursorForeign, "the cursor is not of this store, query, view and caller")
	foreign.Hint = "start again from the first page"
	raw, ok := decodeToken(token)
	n := 1 + s.sealer.aead.NonceSize()
	if !ok || len(raw) < n || raw[0] != sealVersion {
		return nil, foreign
	}
	plain, err := s.sealer.aead.Open(nil, raw[1:n], raw[n:], bound)
	if err != nil {
		return nil, foreign
	}
	return plain, nil
}

// decodeToken gives the bytes of a token in the one form in which it is written:
// the decoder by itself overlooks line ends and spare bits.
func decodeToken(token string) (raw []byte, ok bool) {
	if len(token) > MaxTokenBytes {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	return raw, err == nil && base64.RawURLEncoding.EncodeToString(raw) == token
}

const (
	positionVersion = 2
	positionBytes   = 1 + aes.BlockSize + positionMAC
	positionMAC     = 12
)

// FormatPosition is the position as an opaque, URL-safe token: the same every
// time. It is authenticated together with the epoch, so that one of another log
// is recognised, and encrypted: the index of a change tells how many stand before
// it in its commit, which its reader may not see.
func (s *Store) FormatPosition(p Position) string {
	p.Epoch = s.dir.Epoch
	if last := s.sealer.last.Load(); last != nil && last.position == p {
		return last.token
	}
	var plain [aes.BlockSize]byte
	binary.BigEndian.PutUint64(plain[:], uint64(p.Revision))
	binary.BigEndian.PutUint32(plain[8:], p.Index)
	b := make([]byte, 1+aes.BlockSize, positionBytes+sha256.Size)
	b[0] = positionVersion
	s.sealer.position.Encrypt(b[1:], plain[:])
	token := base64.RawURLEncoding.EncodeToString(s.signPosition(b))
	s.sealer.last.Store(&formatted{p, token})
	return token
}

func (s *Store) signPosition(b []byte) []byte {
	h := hmac.New(sha256.New, s.sealer.mac)
	h.Write(s.dir.Epoch[:])
	h.Write(b)
	return h.Sum(b)[:positionBytes]
}

// ParsePosition reads a token that FormatPosition made. Any other, and one of
// another log, is CodePositionGone with the oldest position that can be had.
func (s *Store) ParsePosition(token string) (Position, error) {
	raw, ok := decodeToken(token)
	if !ok || len(raw) != positionBytes || raw[0] != positionVersion ||
		!hmac.Equal(raw, s.signPosition(append([]byte(nil), raw[:positionBytes-positionMAC]...))) {
		return Position{}, s.errPositionGone("the position is not of this log")
	}
	var plain [aes.BlockSize]byte
	s.sealer.position.Decrypt(plain[:], raw[1:])
	return Position{s.dir.Epoch, Revision(binary.BigEndian.Uint64(plain[:])), binary.BigEndian.Uint32(plain[8:])}, nil
}

func (s *Store) errPositionGone(why string) *Error {
	e := Errorf(CodePositionGone, "%s", why)
	oldest := s.Oldest()
	e.Oldest = &oldest
	e.Hint = "start from a snapshot, or from the oldest position"
	return e
}

// CommitID is the UUID of a commit: version 5 of epoch and revision, so that it
// is the same wherever the log is read.
func (s *Store) CommitID(r Revision) string {
	return s.newUUID(binary.BigEndian.AppendUint64([]byte{'c'}, uint64(r)))
}

// ChangeID is the UUID of the change at the position of its Event: the last
// change of a commit is at EndOfCommit.
func (s *Store) ChangeID(p Position) string {
	b := binary.BigEndian.AppendUint64([]byte{'p'}, uint64(p.Revision))
	return s.newUUID(binary.BigEndian.AppendUint32(b, p.Index))
}

// SnapshotChangeID is the UUID of a statement as an element of the snapshot of
// a revision.
func (s *Store) SnapshotChangeID(r Revision, q Quad) string {
	b := binary.BigEndian.AppendUint64([]byte{'s'}, uint64(r))
	for _, t := range [...]Term{q.Subject, q.Predicate, q.Object, q.Graph} {
		record := base.AppendTerm(nil, t)
		b = binary.AppendUvarint(b, uint64(len(record)))
		b = append(b, record...)
	}
	return s.newUUID(b)
}

func (s *Store) newUUID(name []byte) string {
	return uuid.NewSHA1(uuid.UUID(s.dir.Epoch), name).String()
}

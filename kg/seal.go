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

	"koine/kg/base"
)

// sealer makes opaque tokens for clients, with keys derived from the directory's secret.
type sealer struct {
	aead     cipher.AEAD
	mac      []byte
	position cipher.Block // one block: equal positions give equal tokens
	last     atomic.Pointer[formatted]
}

// formatted is the last position formatted, with its token: most answers of a moment have the
// same.
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

// MaxTokenBytes bounds the tokens that are parsed.
const MaxTokenBytes = 4 << 10

// Seal encrypts and authenticates plain as a URL-safe token. Only this store opens it, and
// only with the same bound: a hash of the token's context, such as query, view and principal.
func (s *Store) Seal(plain, bound []byte) string {
	token := make([]byte, 1+s.sealer.aead.NonceSize(), 1+s.sealer.aead.NonceSize()+len(plain)+s.sealer.aead.Overhead())
	token[0] = sealVersion
	_, _ = rand.Read(token[1:]) // never fails
	token = s.sealer.aead.Seal(token, token[1:], plain, bound)
	return base64.RawURLEncoding.EncodeToString(token)
}

// Unseal returns the plain text of a token from Seal. Any other token is CodeCursorForeign.
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

// decodeToken decodes a token in its canonical form: the decoder alone would accept line ends
// and spare bits.
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

// FormatPosition returns the position as an opaque, URL-safe token, always the same. It is
// authenticated with the epoch, so that a token of another log is recognised. It is encrypted
// because the index of a change reveals how many changes, perhaps hidden ones, precede it in
// the commit.
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

// ParsePosition parses a token from FormatPosition. Any other token, and one of another log,
// is CodePositionGone with the oldest available position.
func (s *Store) ParsePosition(token string) (Position, error) {
	raw, ok := decodeToken(token)
	if !ok || len(raw) != positionBytes || raw[0] != positionVersion ||
		!hmac.Equal(raw, s.signPosition(append([]byte(nil), raw[:positionBytes-positionMAC]...))) {
		return Position{}, s.errPositionGone("the position is not of this log")
	}
	var plain [aes.BlockSize]byte
	s.sealer.position.Decrypt(plain[:], raw[1:])
	return Position{Epoch: s.dir.Epoch, Revision: Revision(binary.BigEndian.Uint64(plain[:])), Index: binary.BigEndian.Uint32(plain[8:])}, nil
}

func (s *Store) errPositionGone(why string) *Error {
	e := Errorf(CodePositionGone, "%s", why)
	oldest := s.Oldest()
	e.Oldest = &oldest
	e.Hint = "start from a snapshot, or from the oldest position"
	return e
}

// CommitID returns the UUID of a commit: version 5 of epoch and revision, the same for each
// reader.
func (s *Store) CommitID(r Revision) string {
	return s.newUUID(binary.BigEndian.AppendUint64([]byte{'c'}, uint64(r)))
}

// ChangeID returns the UUID of the change at an Event's position. The last change of a commit
// is at EndOfCommit.
func (s *Store) ChangeID(p Position) string {
	b := binary.BigEndian.AppendUint64([]byte{'p'}, uint64(p.Revision))
	return s.newUUID(binary.BigEndian.AppendUint32(b, p.Index))
}

// SnapshotChangeID returns the UUID of a statement as an element of the snapshot of a
// revision.
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

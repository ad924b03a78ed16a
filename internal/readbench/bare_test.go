package readbench

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"koine/internal/garbage"
)

// bareServer is the twin: it reads statements with raw iterators, resolves terms by a map, and
// writes JSON by hand, as long as koine's. It has no parser, planner, rights, limits, times or
// revisions, and serves one question at each path.
type bareServer struct {
	db              *badger.DB
	tail            string // behind the data of each answer
	starring, actor uint64

	mu    sync.RWMutex
	terms map[uint64]term // those that were read
}

// term is a term of the dictionary.
type term struct {
	text    string
	literal bool
}

const (
	labelIRI    = "http://www.w3.org/2000/01/rdf-schema#label"
	typeIRI     = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
	starringIRI = "http://rdf.freebase.com/ns/film/film/starring"
	directorIRI = "http://rdf.freebase.com/ns/film/film/directed_by"
	actorIRI    = "http://rdf.freebase.com/ns/film/performance/actor"
	stringIRI   = "http://www.w3.org/2001/XMLSchema#string"
)

// The keys are as wide as koine's: a prefix, and nine bytes for each of subject, predicate,
// object and graph; a number, or the text of a term, for the dictionary.
const (
	bySubject = 0x10
	byText    = 0x01
	byNumber  = 0x02
	idSize    = 9
	keySize   = 1 + 4*idSize
)

func appendID(key []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(key, byNumber), number)
}

func idAt(key []byte, i int) uint64 { return binary.BigEndian.Uint64(key[1+i*idSize+1:]) }

func termKey(text string) []byte { return append([]byte{byText}, text...) }

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{byNumber}, n) }

// fill writes the statements of N-Quads without graphs, datatypes or languages.
func (s *bareServer) fill(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	batch := s.db.NewWriteBatch()
	numbers := map[string]uint64{}
	number := func(text string) uint64 {
		n, known := numbers[text]
		if !known {
			n = uint64(len(numbers) + 1)
			numbers[text] = n
			err = errors.Join(err, batch.Set(termKey(text), binary.BigEndian.AppendUint64(nil, n)), batch.Set(numberKey(n), []byte(text)))
		}
		return n
	}
	for lines := bufio.NewScanner(file); lines.Scan() && err == nil; {
		subject, rest, _ := strings.Cut(lines.Text(), " ")
		predicate, rest, _ := strings.Cut(rest, " ")
		object, whole := strings.CutSuffix(rest, " .")
		if object, isLiteral := strings.CutSuffix(object, `"`); !whole || object[0] == '"' != isLiteral {
			return fmt.Errorf("the statement %s has a datatype or a language", lines.Text())
		}
		key := append(make([]byte, 0, keySize), bySubject)
		for _, text := range []string{subject, predicate, object} {
			key = appendID(key, number(text))
		}
		err = errors.Join(err, batch.Set(appendID(key, 0), make([]byte, 8)))
	}
	s.starring, s.actor = number("<"+starringIRI+">"), number("<"+actorIRI+">")
	if err != nil {
		return err
	}
	return errors.Join(batch.Flush(), s.db.Flatten(1))
}

// number looks a term up, 0 if there is none.
func number(txn *badger.Txn, text string) (n uint64, err error) {
	item, err := txn.Get(termKey(text))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return 0, nil
	}
	if err == nil {
		err = item.Value(func(value []byte) error {
			n = binary.BigEndian.Uint64(value)
			return nil
		})
	}
	return n, err
}

func (s *bareServer) term(txn *badger.Txn, n uint64) (term, error) {
	s.mu.RLock()
	t, known := s.terms[n]
	s.mu.RUnlock()
	if known {
		return t, nil
	}
	item, err := txn.Get(numberKey(n))
	if err != nil {
		return t, err
	}
	raw, err := item.ValueCopy(nil)
	if err != nil {
		return t, err
	}
	t.text = string(raw)
	if t.literal = raw[0] == '"'; t.literal {
		t.text, err = strconv.Unquote(t.text)
	} else if raw[0] == '<' {
		t.text = t.text[1 : len(t.text)-1]
	}
	s.mu.Lock()
	s.terms[n] = t
	s.mu.Unlock()
	return t, err
}

// readIRI reads the variable of a GraphQL request.
func readIRI(r *http.Request) (string, error) {
	var request struct {
		Query     string
		Variables struct{ IRI string }
	}
	err := json.NewDecoder(r.Body).Decode(&request)
	return request.Variables.IRI, err
}

// appendText appends a JSON string without escapes, which nearly all are.
func appendText(out []byte, text string) []byte {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] == '"' || text[i] == '\\' {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic(err)
			}
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

func (s *bareServer) appendObject(out []byte, t term) []byte {
	if !t.literal {
		return append(appendText(append(out, `{"iri":`...), t.text), '}')
	}
	return append(appendText(append(out, `{"lexical":`...), t.text), `,"datatype":"`+stringIRI+`","language":null}`...)
}

// serve answers a request with what question writes.
func (s *bareServer) serve(question func(out []byte, txn *badger.Txn, it *badger.Iterator, id uint64) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		iri, err := readIRI(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		txn := s.db.NewTransaction(false)
		defer txn.Discard()
		id, err := number(txn, "<"+iri+">")
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{bySubject}})
		defer it.Close()
		out := appendText(append(make([]byte, 0, 4096), `{"data":{"entity":{"iri":`...), iri)
		if err == nil {
			out, err = question(out, txn, it, id)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out = append(append(out, `}}`...), s.tail...)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(out)))
		_, _ = w.Write(out) // a client that left needs no answer
	}
}

// film writes all statements of a film.
func (s *bareServer) film(out []byte, txn *badger.Txn, it *badger.Iterator, id uint64) ([]byte, error) {
	out = append(out, `,"out":{"nodes":[`...)
	prefix := appendID([]byte{bySubject}, id)
	first := true
	for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
		item := it.Item()
		key := item.Key()
		predicate, err := s.term(txn, idAt(key, 1))
		if err != nil {
			return nil, err
		}
		object, err := s.term(txn, idAt(key, 2))
		if err != nil {
			return nil, err
		}
		if err := item.Value(func([]byte) error { return nil }); err != nil {
			return nil, err
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = appendText(append(out, `{"predicate":`...), predicate.text)
		out = append(s.appendObject(append(out, `,"object":`...), object), '}')
	}
	return append(out, `]}`...), nil
}

// hops writes the actors of a film's performances, below each of them or in one list.
func (s *bareServer) hops(nested bool) func(out []byte, txn *badger.Txn, it *badger.Iterator, id uint64) ([]byte, error) {
	return func(out []byte, txn *badger.Txn, it *badger.Iterator, id uint64) ([]byte, error) {
		var performances []uint64
		prefix := appendID(appendID([]byte{bySubject}, id), s.starring)
		for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
			performances = append(performances, idAt(it.Item().Key(), 2))
		}
		if nested {
			out = append(out, `,"out":{"nodes":[`...)
		} else {
			out = append(out, `,"follow":{"nodes":[`...)
		}
		first := true
		var seen []uint64
		for _, p := range performances {
			if nested {
				if !first {
					out = append(out, ',')
				}
				out = append(out, `{"object":{"out":{"nodes":[`...)
				first = true
			}
			prefix := appendID(appendID([]byte{bySubject}, p), s.actor)
			for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
				id := idAt(it.Item().Key(), 2)
				if !nested && slices.Contains(seen, id) {
					continue // a path reaches each once
				}
				seen = append(seen, id)
				actor, err := s.term(txn, id)
				if err != nil {
					return nil, err
				}
				if !first {
					out = append(out, ',')
				}
				first = false
				if nested {
					out = append(s.appendObject(append(out, `{"object":`...), actor), '}')
				} else {
					out = s.appendObject(out, actor)
				}
			}
			if nested {
				out, first = append(out, `]}}}`...), false
			}
		}
		return append(out, `]}`...), nil
	}
}

// echo answers a JSON body with itself.
func echo(w http.ResponseWriter, r *http.Request) {
	var body any
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&body), json.NewEncoder(w).Encode(body)); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// runBare serves until the process is killed. It has koine's bound of garbage: with Go's
// default it would collect permanently, with so little live.
func runBare(file, dir, tail string) error {
	garbage.Limit(256 << 20)
	db, err := badger.Open(badger.DefaultOptions(dir).WithLoggingLevel(badger.ERROR).WithNumVersionsToKeep(1).WithDetectConflicts(false))
	if err != nil {
		return err
	}
	s := &bareServer{db: db, tail: tail, terms: map[uint64]term{}}
	if err := s.fill(file); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/film", s.serve(s.film))
	mux.Handle("/hops", s.serve(s.hops(true)))
	mux.Handle("/path", s.serve(s.hops(false)))
	mux.HandleFunc("/echo", echo)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
	return http.Serve(listener, mux)
}

package readbench

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	programs = flag.String("koine", "", "programs by commas, each NAME=PATH; none builds this tree")
	films    = flag.Int("films", 2000, "films that are asked for, each once in a round")
	clients  = flag.Int("clients", 16, "connections to each side")
)

// The environment of the twin: the file of its statements, its directory, and the end of each
// of its answers.
const (
	bareFile = "KOINE_READS_FILE"
	bareDir  = "KOINE_READS_DIR"
	bareTail = "KOINE_READS_TAIL"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(bareFile); file != "" {
		fmt.Fprintln(os.Stderr, runBare(file, os.Getenv(bareDir), os.Getenv(bareTail)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// question is what is asked of koine, and the path of the twin that answers the same.
type question struct {
	name, twin, query string            // without a path the twin is not asked
	knowledge         bool              // by knowledge/query
	most              int               // films that it is asked for, 0 for all
	peers             map[string]string // the same in the languages of other servers; %s is the film
}

var questions = []question{
	{name: "film", twin: "/film", peers: map[string]string{
		"virtuoso": `SELECT ?p ?o { <%s> ?p ?o }`,
		"dgraph":   `{ q(func: eq(xid, %q)) { <` + labelIRI + `> <` + typeIRI + `> { xid } <` + starringIRI + `> { uid } <` + directorIRI + `> { xid } } }`,
	}, query: `query Film($iri: IRI!) { entity(iri: $iri) { iri out(first: 500) { nodes { predicate object { ... on Entity { iri } ... on Literal { lexical datatype language } } } } } }`},
	{name: "hops", twin: "/hops", peers: map[string]string{
		"virtuoso": `SELECT ?role ?actor { <%s> <` + starringIRI + `> ?role . ?role <` + actorIRI + `> ?actor }`,
		"dgraph":   `{ q(func: eq(xid, %q)) { <` + starringIRI + `> { <` + actorIRI + `> { xid } } } }`,
	}, query: `query Hops($iri: IRI!) { entity(iri: $iri) { iri out(where: {predicate: {eq: "` + starringIRI + `"}}, first: 500) { nodes { object { ... on Entity { out(where: {predicate: {eq: "` + actorIRI + `"}}, first: 10) { nodes { object { ... on Entity { iri } } } } } } } } } }`},
	{name: "path", twin: "/path", peers: map[string]string{
		"virtuoso": `SELECT DISTINCT ?actor { <%s> <` + starringIRI + `>/<` + actorIRI + `> ?actor }`,
		"dgraph":   `{ var(func: eq(xid, %q)) { <` + starringIRI + `> { actors as <` + actorIRI + `> } } q(func: uid(actors)) { xid } }`,
	}, query: `query Path($iri: IRI!) { entity(iri: $iri) { iri follow(path: "<` + starringIRI + `>/<` + actorIRI + `>", first: 500) { nodes { iri } } } }`},
	{name: "entity", twin: "/echo", peers: map[string]string{
		"virtuoso": `SELECT ?type ?label ?director { <%[1]s> a ?type ; <` + labelIRI + `> ?label OPTIONAL { <%[1]s> <` + directorIRI + `> ?director } }`,
		"dgraph":   `{ q(func: eq(xid, %q)) { <` + labelIRI + `> <` + typeIRI + `> { xid } <` + directorIRI + `> { xid } } }`,
	}, query: `query Film($iri: IRI!) { entity(iri: $iri) { iri types label director: value(predicate: "` + directorIRI + `") } }`},
	{name: "knowledge", twin: "/echo", query: `query Film($iri: IRI!) { entity(iri: $iri) { iri types label director: value(predicate: "` + directorIRI + `") } }`, knowledge: true},
	{name: "directors", most: 200, peers: map[string]string{
		"virtuoso": `SELECT ?director (COUNT(*) AS ?films) { ?film a <http://rdf.freebase.com/ns/film/film> ; <` + directorIRI + `> ?director } GROUP BY ?director ORDER BY DESC(?films) LIMIT 10`,
		"dgraph":   `{ var(func: has(<~` + directorIRI + `>)) { films as count(<~` + directorIRI + `>) } q(func: uid(films), orderdesc: val(films), first: 10) { xid val(films) } }`,
	}, query: `{ entities(where: {type: {eq: "http://rdf.freebase.com/ns/film/film"}}) { groups(by: [{property: "` + directorIRI + `", as: "director"}], orderBy: [{as: "count", direction: DESC}], first: 10) { values count } } }`},
	{name: "directorsByMatch", most: 200, query: `{ match(pattern: {triples: [{s: "?film", p: "rdf:type", o: "http://rdf.freebase.com/ns/film/film"}, {s: "?film", p: "` + directorIRI + `", o: "?director"}]}) { groups(by: [{var: "director"}], orderBy: [{as: "count", direction: DESC}], first: 10) { values count } } }`},
}

// request returns the request for a film, nil if the side cannot be asked.
func (s *side) request(q *question, film string) []byte {
	if s.peer != nil {
		return s.peer.request(q, film)
	}
	if s.twin && q.twin == "" {
		return nil
	}
	body, err := json.Marshal(map[string]any{"query": q.query, "variables": map[string]string{"iri": film}})
	path := "/graphql"
	if q.knowledge {
		path, body = "/a2a", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":%s}`, body)
	}
	if s.twin {
		path = q.twin
	}
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// side is a server with its clients.
type side struct {
	name    string
	process *exec.Cmd
	address string
	conns   []*conn
	twin    bool
	peer    *peer // nil for koine and the twin

	used []time.Duration // of the server's processors, in each round
}

// BenchmarkReads asks each side for every film in turns. An op is a round of them. It reports
// for each side the processor time of its server for an answer, and that of the first side, which
// is the twin if it is asked, beside it: the medians of the rounds.
func BenchmarkReads(b *testing.B) {
	all, films := startSides(b)
	for _, q := range questions {
		asked := films
		if q.most > 0 {
			asked = films[:min(q.most, len(films))]
		}
		var sides []*side
		for _, s := range all {
			if s.request(&q, films[0]) != nil {
				sides = append(sides, s)
			}
		}
		b.Run(q.name, func(b *testing.B) {
			if b.N == 1 {
				compareAnswers(b, &q, sides, asked)
				return // the first call only finds out how long an op takes
			}
			requests := make([][][]byte, len(sides))
			for i, s := range sides {
				for _, film := range asked {
					requests[i] = append(requests[i], s.request(&q, film))
				}
				s.round(b, requests[i]) // warm
				s.used = nil
			}
			for n := range b.N {
				for i := range sides {
					i = (i + n) % len(sides)
					sides[i].round(b, requests[i])
				}
			}
			b.ReportMetric(0, "ns/op")
			for i, s := range sides {
				answers, ratios := make([]float64, b.N), make([]float64, b.N)
				for n, used := range s.used {
					answers[n] = float64(used.Nanoseconds()) / float64(len(asked)) / 1000
					ratios[n] = sides[0].used[n].Seconds() / used.Seconds()
				}
				b.ReportMetric(median(answers), s.name+"-µs")
				if i > 0 {
					b.ReportMetric(median(ratios), s.name+"-ratio")
				}
			}
		})
	}
}

func median(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }

// round asks for every film once, each by the client that is free for it.
func (s *side) round(b *testing.B, requests [][]byte) {
	b.Helper()
	used := s.processorTime(b)
	var next atomic.Int64
	var all sync.WaitGroup
	for _, c := range s.conns {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(requests); i = int(next.Add(1)) - 1 {
				if answer, err := c.exchange(requests[i]); err != nil || bytes.Contains(answer, []byte(`"errors"`)) {
					b.Errorf("%s: %v %s", s.name, err, answer)
					return
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	s.used = append(s.used, s.processorTime(b)-used)
}

var blankNode = regexp.MustCompile(`_:[^"]*`)

// compareAnswers checks that the sides answer the same, and answers of the same length, to a
// tenth of the questions that the twin does not echo.
func compareAnswers(b *testing.B, q *question, sides []*side, asked []string) {
	b.Helper()
	if q.twin == "/echo" || !sides[0].twin {
		return
	}
	for _, film := range asked[:len(asked)/10] {
		var want any
		var length int
		for i, s := range sides {
			answer, err := s.conns[0].exchange(s.request(q, film))
			if err != nil {
				b.Fatal(s.name, err)
			}
			if s.peer != nil {
				if n, wanted := s.peer.countResults(answer), countNodes(want); n != wanted {
					b.Fatalf("%s answers %d results, and the twin %d: %s", s.name, n, wanted, answer)
				}
				continue
			}
			var got struct{ Data any }
			if err := json.Unmarshal(blankNode.ReplaceAll(answer, []byte("_:b")), &got); err != nil {
				b.Fatalf("%s: %v in %s", s.name, err, answer)
			}
			sortLists(got.Data)
			if i == 0 {
				want, length = got.Data, len(answer)
				continue
			}
			if !reflect.DeepEqual(got.Data, want) || i == 1 && len(answer) != length {
				b.Fatalf("%s answers %v, in %d bytes, and the twin %v, in %d", s.name, got.Data, len(answer), want, length)
			}
		}
	}
}

// sortLists sorts the lists of a JSON value by their elements' texts.
func sortLists(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			sortLists(v)
		}
	case []any:
		for _, v := range value {
			sortLists(v)
		}
		slices.SortFunc(value, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
}

// startSides starts the twin, koine's builds, and the peers that are asked for, with the film
// graph.
func startSides(b *testing.B) (sides []*side, asked []string) {
	b.Helper()
	graph, err := filepath.Abs(cmp.Or(os.Getenv("KOINE_FILMS"), "../../../shared/data/movies.nq.gz"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(graph); err != nil {
		b.Skip("KOINE_FILMS names no film graph (docs/benchmarks.md)")
	}
	list := *programs
	if list == "" {
		path := filepath.Join(b.TempDir(), "koine")
		runCommand(b, "go", "build", "-o", path, "koine/cmd/koine")
		list = "koine=" + path
	}
	file := filepath.Join(b.TempDir(), "films.nq")
	var tail string
	for program := range strings.SplitSeq(list, ",") {
		name, path, _ := strings.Cut(program, "=")
		data := filepath.Join(b.TempDir(), "data")
		runCommand(b, path, "load", "--quiet", "--data", data, graph)
		if len(sides) == 0 {
			runCommand(b, path, "export", "--data", data, "-o", file) // with the names of blank nodes that answers show
		}
		s := &side{name: name}
		s.start(b, exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", data))
		if sides = append(sides, s); tail == "" {
			tail = s.tailOfAnswers(b)
		}
	}
	twin := &side{name: "twin", twin: true}
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), bareFile+"="+file, bareDir+"="+b.TempDir(), bareTail+"="+tail)
	twin.start(b, process)
	sides = slices.Insert(sides, 0, twin)
	for name := range strings.SplitSeq(*with, ",") {
		if name != "" {
			sides = append(sides, startPeer(b, name, file))
		}
	}
	for _, s := range sides { // now, because a connection without a request is closed after some seconds
		for range *clients {
			s.conns = append(s.conns, s.connect(b))
		}
	}
	return sides, chooseFilms(b, file)
}

func runCommand(b *testing.B, name string, arguments ...string) {
	b.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		b.Fatalf("%s %v: %v: %s", name, arguments, err, out)
	}
}

// tailOfAnswers returns what comes behind the data of an answer.
func (s *side) tailOfAnswers(b *testing.B) string {
	b.Helper()
	answer, err := s.connect(b).exchange(s.request(&questions[0], "urn:none"))
	at := bytes.Index(answer, []byte(`,"extensions"`))
	if err != nil || at < 0 {
		b.Fatalf("%v in %s", err, answer)
	}
	return string(answer[at:])
}

// chooseFilms returns films of the file by chance, the same in each run.
func chooseFilms(b *testing.B, file string) (chosen []string) {
	b.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if subject, rest, _ := strings.Cut(line, " "); strings.HasPrefix(rest, "<"+starringIRI+">") {
			chosen = append(chosen, strings.Trim(subject, "<>"))
		}
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	return chosen[:min(*films, len(chosen))]
}

var listening = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)

// start starts the process and waits for its address.
func (s *side) start(b *testing.B, process *exec.Cmd) {
	b.Helper()
	s.process = process
	out, err := process.StderrPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = process.Process.Kill() // one that has ended is as good
		_ = process.Wait()
	})
	var said []string
	for lines := bufio.NewScanner(out); s.address == "" && lines.Scan(); {
		said = append(said, lines.Text())
		s.address = listening.FindString(lines.Text())
	}
	if s.address == "" {
		b.Fatal(s.name, " does not listen: ", strings.Join(said, "\n"))
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with the process
}

// connect connects a client to the side.
func (s *side) connect(b *testing.B) *conn {
	b.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		b.Fatal(err)
	}
	client := &conn{Conn: c, in: bufio.NewReader(c), address: s.address}
	b.Cleanup(func() { client.Close() })
	return client
}

// processorTime is the time that the threads of the server have run.
func (s *side) processorTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.process.Process.Pid))
	if err != nil || len(files) == 0 {
		b.Fatal(s.name, "has no threads", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		ran, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}

// conn is a connection that does as little as a client can.
type conn struct {
	net.Conn
	address string
	ended   bool // by the server, behind the last answer
	in      *bufio.Reader
	body    []byte
}

// exchange sends a request and returns the body of its answer, which is valid until the next one.
func (c *conn) exchange(request []byte) ([]byte, error) {
	if c.ended {
		if err := c.reconnect(); err != nil {
			return nil, err
		}
	}
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	length, chunked := -1, false
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return nil, fmt.Errorf("%s", line)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "Content-Length":
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		case "Connection":
			c.ended = string(value) == "close"
		case "Transfer-Encoding":
			chunked = true
		}
	}
	c.body = c.body[:0]
	if !chunked {
		return c.read(length)
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return nil, err
		}
		if _, err := c.read(int(n) + len("\r\n")); err != nil {
			return nil, err
		}
		if c.body = c.body[:len(c.body)-len("\r\n")]; n == 0 {
			return c.body, nil
		}
	}
}

// reconnect connects again to a server that ends the connection with each answer.
func (c *conn) reconnect() (err error) {
	c.Close()
	if c.Conn, err = net.Dial("tcp", c.address); err != nil {
		return err
	}
	c.in.Reset(c.Conn)
	c.ended = false
	return nil
}

// read appends bytes to the body.
func (c *conn) read(n int) ([]byte, error) {
	if n < 0 {
		return nil, errors.New("an answer without its length")
	}
	at := len(c.body)
	c.body = append(c.body, make([]byte, n)...)
	_, err := io.ReadFull(c.in, c.body[at:])
	return c.body, err
}

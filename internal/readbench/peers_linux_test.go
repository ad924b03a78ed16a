package readbench

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var with = flag.String("with", "", "other servers beside koine, by commas: virtuoso and dgraph, which have to be installed")

// peer is another server, asked in its own language.
type peer struct {
	name string
	// start starts the server in a directory, with the statements of a file, and returns its
	// process and address.
	start func(b *testing.B, dir, file string) (process *exec.Cmd, address string)
	// encode returns the request for a question in the server's language.
	encode func(query string) []byte
	// countResults returns the number of results in an answer.
	countResults func(answer []byte) int
}

var peers = []*peer{
	{name: "virtuoso", start: startVirtuoso, encode: encodeSPARQL, countResults: countBindings},
	{name: "dgraph", start: startDgraph, encode: encodeDQL, countResults: countInnermost},
}

// request returns the request for a film, nil if the question is not for the peer.
func (p *peer) request(q *question, film string) []byte {
	query, ok := q.peers[p.name]
	if !ok {
		return nil
	}
	if q.most == 0 {
		query = fmt.Sprintf(query, film)
	}
	return p.encode(query)
}

// startPeer starts the peer with the name.
func startPeer(b *testing.B, name, file string) *side {
	b.Helper()
	for _, p := range peers {
		if p.name == name {
			s := &side{name: name, peer: p}
			s.process, s.address = p.start(b, b.TempDir(), file)
			return s
		}
	}
	b.Fatalf("there is no server %s to compare with", name)
	return nil
}

// countNodes returns the number of the innermost nodes in an answer of koine's.
func countNodes(value any) (n int) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			list, ok := v.([]any)
			if name != "nodes" || !ok {
				n += countNodes(v)
				continue
			}
			for _, node := range list {
				if hasNodes(node) {
					n += countNodes(node)
				} else {
					n++
				}
			}
		}
	case []any:
		for _, v := range value {
			n += countNodes(v)
		}
	}
	return n
}

func hasNodes(value any) bool {
	m, ok := value.(map[string]any)
	if !ok {
		return false
	}
	if _, ok := m["nodes"]; ok {
		return true
	}
	for _, v := range m {
		if hasNodes(v) {
			return true
		}
	}
	return false
}

// freePort returns the address of a port that is free.
func freePort(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startProcess starts a server and waits until it answers at the address.
func startProcess(b *testing.B, process *exec.Cmd, address string) {
	b.Helper()
	log, err := os.Create(filepath.Join(process.Dir, "output"))
	if err != nil {
		b.Fatal(err)
	}
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = process.Process.Kill() // one that has ended is as good
		_ = process.Wait()
		log.Close()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name()) // what there is of it
			b.Fatalf("%s does not listen: %v\n%s", process.Path, err, said)
		}
	}
}

// virtuosoSettings gives it a gigabyte of buffers, and a thread for each query and connection, as
// its documentation recommends for two processors.
const virtuosoSettings = `[Database]
DatabaseFile = %[1]s/v.db
ErrorLogFile = %[1]s/v.log
LockFile = %[1]s/v.lck
TransactionFile = %[1]s/v.trx
xa_persistent_file = %[1]s/v.pxa
FileExtend = 200
MaxCheckpointRemap = 2000
[TempDatabase]
DatabaseFile = %[1]s/t.db
TransactionFile = %[1]s/t.trx
[Parameters]
ServerPort = %[2]s
DisableUnixSocket = 1
NumberOfBuffers = 120000
MaxDirtyBuffers = 90000
DirsAllowed = %[1]s, %[4]s
ThreadsPerQuery = 1
MaxClientConnections = 100
[HTTPServer]
ServerPort = %[3]s
ServerRoot = %[1]s
MaxClientConnections = 100
ServerThreads = 100
KeepAliveTimeout = 600
MaxKeepAlives = 100
[SPARQL]
ResultSetMaxRows = 10000
`

func startVirtuoso(b *testing.B, dir, file string) (*exec.Cmd, string) {
	b.Helper()
	settings, sql, web := filepath.Join(dir, "v.ini"), freePort(b), freePort(b)
	if err := os.WriteFile(settings, fmt.Appendf(nil, virtuosoSettings, dir, sql, web, filepath.Dir(file)), 0o600); err != nil {
		b.Fatal(err)
	}
	process := exec.Command("virtuoso-t", "+foreground", "+configfile", settings)
	process.Dir = dir
	startProcess(b, process, web)
	const nquads = 512
	load := fmt.Sprintf("DB.DBA.TTLP_MT(file_to_string_output('%s'), '', 'urn:films', %d); checkpoint;", file, nquads)
	runCommand(b, "isql-vt", sql, "dba", "dba", "exec="+load)
	return process, web
}

func encodeSPARQL(query string) []byte {
	form := url.Values{"query": {query}, "format": {"application/sparql-results+json"}}.Encode()
	return fmt.Appendf(nil, "POST /sparql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", len(form), form)
}

func countBindings(answer []byte) int {
	var results struct {
		Results struct{ Bindings []json.RawMessage }
	}
	if err := json.Unmarshal(bytes.TrimSpace(answer), &results); err != nil {
		return -1
	}
	return len(results.Results.Bindings)
}

// The ports of Dgraph, to which an offset is added.
const (
	zeroPort      = 5080
	alphaPort     = 7080
	alphaHTTPPort = 8080
	alphaRPCPort  = 9080
)

// dgraphSchema has what the questions look up. Entities have their IRIs as xid.
const dgraphSchema = `xid: string @index(hash) @upsert .
<` + labelIRI + `>: [string] .
<` + directorIRI + `>: [uid] @reverse .
`

func startDgraph(b *testing.B, dir, file string) (*exec.Cmd, string) {
	b.Helper()
	offset := 10_000 + rand.IntN(20_000)
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port+offset) }
	run := func(name, listens string, arguments ...string) *exec.Cmd {
		process := exec.Command("dgraph", append(arguments, "--bindall=false", "--port_offset", strconv.Itoa(offset))...)
		if process.Dir = filepath.Join(dir, name); os.Mkdir(process.Dir, 0o700) != nil {
			b.Fatal("no directory for ", name)
		}
		startProcess(b, process, listens)
		return process
	}
	run("zero", at(zeroPort), "zero", "--my="+at(zeroPort))
	alpha := run("alpha", at(alphaRPCPort), "alpha", "--my="+at(alphaPort), "--zero="+at(zeroPort), "--telemetry=reports=false; sentry=false;")
	putDgraphSchema(b, at(alphaHTTPPort))
	data := filepath.Join(dir, "films.rdf") // it goes by the name
	if err := os.Symlink(file, data); err != nil {
		b.Fatal(err)
	}
	runCommand(b, "dgraph", "live", "-f", data, "--format", "rdf", "--upsertPredicate", "xid", "-b", "10000", "--alpha", at(alphaRPCPort), "--zero", at(zeroPort))
	return alpha, at(alphaHTTPPort)
}

// putDgraphSchema puts the schema as soon as the server takes it, which is after it listens.
func putDgraphSchema(b *testing.B, address string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		answer, err := http.Post("http://"+address+"/alter", "text/plain", strings.NewReader(dgraphSchema))
		var said []byte
		if err == nil {
			said, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		if err == nil && bytes.Contains(said, []byte("Success")) {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("the schema is not taken: %v %s", err, said)
		}
	}
}

func encodeDQL(query string) []byte {
	return fmt.Appendf(nil, "POST /query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/dql\r\nContent-Length: %d\r\n\r\n%s", len(query), query)
}

// countInnermost returns the number of the elements of the innermost lists.
func countInnermost(answer []byte) int {
	var results struct{ Data any }
	if err := json.Unmarshal(answer, &results); err != nil {
		return -1
	}
	_, n := countElements(results.Data)
	return n
}

// countElements counts the elements of the innermost lists in a value, if it has any.
func countElements(value any) (found bool, n int) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			inner, k := countElements(v)
			found, n = found || inner, n+k
		}
	case []any:
		found = true
		for _, v := range value {
			if inner, k := countElements(v); inner {
				n += k
			} else {
				n++
			}
		}
	}
	return found, n
}

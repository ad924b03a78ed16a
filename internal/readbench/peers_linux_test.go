package readbench

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var with = flag.String("with", "", "other servers beside koine, by commas: virtuoso, which has to be installed")

// peer is another server, asked in its own language.
type peer struct {
	name string
	// start starts the server in a directory, with the statements of a file, and returns its
	// process and address.
	start func(b *testing.B, dir, file string) (process *exec.Cmd, address string)
	// request returns the request for a question in the server's language.
	encode func(query string) []byte
	// countResults returns the number of results in an answer.
	countResults func(answer []byte) int
}

var peers = []*peer{{name: "virtuoso", start: startVirtuoso, encode: encodeSPARQL, countResults: countBindings}}

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
	settings, sql, http := filepath.Join(dir, "v.ini"), freePort(b), freePort(b)
	if err := os.WriteFile(settings, fmt.Appendf(nil, virtuosoSettings, dir, sql, http, filepath.Dir(file)), 0o600); err != nil {
		b.Fatal(err)
	}
	process := exec.Command("virtuoso-t", "+foreground", "+configfile", settings)
	process.Dir = dir
	startProcess(b, process, http)
	const nquads = 512
	load := fmt.Sprintf("DB.DBA.TTLP_MT(file_to_string_output('%s'), '', 'urn:films', %d); checkpoint;", file, nquads)
	runCommand(b, "isql-vt", sql, "dba", "dba", "exec="+load)
	return process, http
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

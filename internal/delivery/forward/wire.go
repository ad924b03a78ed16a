package forward

import (
	"errors"
	"net/http"

	"koine/internal/tasks"
	"koine/kg"
)

// Op is an operation of A2A that an upstream is called with.
type Op int

// The operations.
const (
	Send       Op = iota // SendMessage
	SendStream           // SendStreamingMessage
	Get                  // GetTask
	Subscribe            // SubscribeToTask
	Cancel               // CancelTask
)

// streams reports whether the answer is a stream of events.
func (o Op) streams() bool { return o == SendStream || o == Subscribe }

// Call is a call of an upstream.
type Call struct {
	Op Op
	// Task and Context are ids of the upstream; "" if it has given none.
	Task, Context string
	Message       *tasks.Message // of Send and SendStream
	Hops          int            // number of servers that forwarded the message, with this one
}

// Request is the request of a call.
type Request struct {
	Method, Path string // Path is below the URL of the upstream
	Header       http.Header
	Body         []byte
}

// Answer is an object that an upstream sends.
type Answer struct {
	// Task and Context are ids of the upstream; Task is "" for a message without a task.
	Task, Context string
	State         tasks.State    // "" leaves the state unchanged
	Message       *tasks.Message // of the state, or the answer
	Chunks        []tasks.Chunk  // of artifacts
	Whole         bool           // Chunks are all artifacts of the task
}

// Wire writes calls in the bindings of A2A and reads the answers.
type Wire interface {
	Request(Dialect, *Call) (*Request, error)
	// Read reads the body of an answer or the data of an event.
	//
	// Errors: ErrTaskUnknown, ErrUnsupported and *Refusal for an error of the upstream;
	// ErrNoAnswer. Any other error means that the answer is malformed.
	Read(d Dialect, op Op, status int, data []byte) (*Answer, error)
}

// Errors of an upstream.
var (
	ErrTaskUnknown = errors.New("agent does not know the task")
	ErrUnsupported = errors.New("agent does not support the operation")
	// ErrNoAnswer reports a response that is not one of A2A, such as a proxy's.
	ErrNoAnswer = errors.New("agent gave no answer of A2A")
	// ErrMalformed reports an answer that cannot be read.
	ErrMalformed = errors.New("answer of the agent is malformed")
)

// Refusal is another error of an upstream.
type Refusal struct {
	Reason string // in A2A; the texts of an upstream may contain anything and are dropped
}

func (r *Refusal) Error() string { return "agent refused the call: " + r.Reason }

// Binding is a binding of A2A.
type Binding string

// The bindings, named as in cards.
const (
	JSONRPC  Binding = "JSONRPC"
	HTTPJSON Binding = "HTTP+JSON"
)

// Version is a version of A2A.
type Version string

// The versions.
const (
	V1  Version = "1.0"
	V03 Version = "0.3"
)

// Dialect is the form of A2A that an upstream speaks.
type Dialect struct {
	Binding Binding `json:"binding"`
	Version Version `json:"version"`
}

// check returns an error for a dialect that is not spoken.
func (d Dialect) check() error {
	switch {
	case d.Binding != JSONRPC && d.Binding != HTTPJSON:
		return kg.Errorf(kg.CodeInvalid, "must be %s or %s", JSONRPC, HTTPJSON).At("binding")
	case d.Version != V1 && (d.Version != V03 || d.Binding != JSONRPC):
		return kg.Errorf(kg.CodeInvalid, "must be %s, or %s with the binding %s", V1, V03, JSONRPC).At("protocolVersion")
	}
	return nil
}

package base

import (
	"time"

	"koine/internal/push"
	"koine/internal/tasks"
)

// Codec reads the params of a version of A2A, and gives results the form that they
// have there. Params are an object in JSON. What a version does not know is left
// out of what is read; errors are *kg.Error with CodeInvalid.
type Codec interface {
	// ReadSend reads the params of sending a message.
	ReadSend(params []byte) (*Send, error)
	// ReadTask reads those that name a task.
	ReadTask(params []byte) (*TaskRef, error)
	// ReadList reads those of listing tasks.
	ReadList(params []byte) (*List, error)
	// ReadPush reads those that set a push notification configuration.
	ReadPush(params []byte) (*push.Config, error)
	// ReadPushRef reads those that name one, or the task of them.
	ReadPushRef(params []byte) (*PushRef, error)

	// Task, Message, Status and Chunk are the objects themselves.
	Task(*tasks.Task) any
	Message(m *tasks.Message, of About) any
	Status(e *tasks.Event, of About) any
	Chunk(c *tasks.Chunk, of About) any

	// Push is a push notification configuration, without its credentials, and Pushes are
	// all of a task. NoPush is the answer where one was deleted.
	Push(*push.Config) any
	Pushes([]push.Config) any
	NoPush() any

	// Result wraps an object as sending a message answers with it, and streams send
	// it.
	Result(object any) any
}

// About is the task that something belongs to; all of it is "" for an answer without
// a task.
type About struct {
	Task    tasks.TaskID
	Context string
}

// Of is what belongs to a task.
func Of(t *tasks.Task) About { return About{t.ID, t.Context} }

// Send is a message that is sent.
type Send struct {
	Message tasks.Message
	Task    tasks.TaskID // "" for a new one
	Context string
	// Wait until nothing more comes; otherwise the answer is the task as it is made.
	Wait bool
	// History is how many messages the answer has; negative is all.
	History int
	// Push is to be set along with the message; nil for none.
	Push *push.Config
}

// PushRef names a push notification configuration.
type PushRef struct {
	Task tasks.TaskID
	ID   string // "" for that which was set without one
}

// TaskRef names a task, and says how much of it is wanted.
type TaskRef struct {
	ID      tasks.TaskID
	History int
}

// List asks for tasks.
type List struct {
	Context   string
	State     tasks.State // "" for all
	Since     time.Time
	First     int
	After     string
	History   int
	Artifacts bool
}

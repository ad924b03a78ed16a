package base

import (
	"time"

	"koine/internal/delivery/push"
	"koine/internal/tasks"
)

// Codec decodes the params of a version of A2A and encodes results. Params are a JSON
// object. Unknown members are ignored; errors are *kg.Error with CodeInvalid.
type Codec interface {
	// ReadSend reads the params of a method that sends a message.
	ReadSend(params []byte) (*Send, error)
	// ReadTask reads params that name a task.
	ReadTask(params []byte) (*TaskRef, error)
	// ReadList reads the params of listing tasks.
	ReadList(params []byte) (*List, error)
	// ReadPush reads params that set a push notification configuration.
	ReadPush(params []byte) (*push.Config, error)
	// ReadPushRef reads params that name a push notification configuration, or the task
	// of several.
	ReadPushRef(params []byte) (*PushRef, error)

	// Task, Message, Status and Chunk encode objects.
	Task(*tasks.Task) any
	Message(m *tasks.Message, of About) any
	Status(e *tasks.Event, of About) any
	Chunk(c *tasks.Chunk, of About) any

	// Push encodes a push notification configuration without its credentials, Pushes
	// all of a task. NoPush is the answer to a deletion.
	Push(*push.Config) any
	Pushes([]push.Config) any
	NoPush() any

	// Result wraps an object for the answer to a sent message, and for streams.
	Result(object any) any
}

// About is the task and context of an object; both are "" for an answer without a task.
type About struct {
	Task    tasks.TaskID
	Context string
}

// Of returns the About of a task.
func Of(t *tasks.Task) About { return About{t.ID, t.Context} }

// Send is a message to be sent.
type Send struct {
	Message tasks.Message
	Task    tasks.TaskID // "" for a new task
	Context string
	// Wait delays the answer until the task settles; otherwise the answer is the task
	// as created.
	Wait bool
	// History is the number of messages in the answer; negative for all.
	History int
	// Push is a configuration to set with the message; nil for none.
	Push *push.Config
}

// PushRef names a push notification configuration.
type PushRef struct {
	Task tasks.TaskID
	ID   string // "" for the one that was set without an id
}

// TaskRef names a task and the amount of history to return.
type TaskRef struct {
	ID      tasks.TaskID
	History int
}

// List selects tasks.
type List struct {
	Context   string
	State     tasks.State // "" for all
	Since     time.Time
	First     int
	After     string
	History   int
	Artifacts bool
}

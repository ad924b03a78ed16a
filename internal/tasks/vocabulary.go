package tasks

import (
	"koine/internal/systemgraph"
	"koine/kg"
)

// The classes.
const (
	taskClass     = "Task"
	messageClass  = "TaskMessage"
	artifactClass = "Artifact"
)

// The properties of a task.
const (
	propContext  = "taskContext"
	propCreator  = "taskCreator"
	propHandler  = "taskHandler"
	propState    = "taskState"
	propStatus   = "taskStatus"   // JSON: state, time, and number of the message
	propMessages = "taskMessages" // number of messages
	propMetadata = "taskMetadata"
	propParent   = "taskParent"
	propUser     = "taskUser"
	propFailure  = "taskFailure"
	propCreated  = "taskCreatedAt"
	propVersion  = "taskVersion"
	propOpen     = "taskOpen" // names the handler until the task ends
	// propMailFrom is the number of the oldest message in the mailbox of the handler.
	// If it is absent, the newest messages are in the mailbox, without a gap.
	propMailFrom = "taskMailFrom"
)

// The properties of a journal of tasks: its two agents, from its first task on.
const (
	propListCreator = "tasksOf"
	propListHandler = "tasksFor"
)

// The properties of messages and artifacts.
const (
	propTask       = "task"
	propNumber     = "taskMessageNumber"
	propKey        = "taskKey" // the id chosen by the sender
	propRole       = "taskRole"
	propAuthor     = "taskAuthor"
	propParts      = "taskParts"
	propExtensions = "taskExtensions"
	propReferences = "taskReference"
	propSaid       = "taskSaidAt"
	propHops       = "taskHops" // number of servers that forwarded the message, if any
	// propOnce is the hash of author, message id and content of the message that
	// created or continued the task.
	propOnce = "taskOnce"
	// propMail names the handler until it acknowledges the message. On a task it means
	// that the cancellation is unacknowledged.
	propMail     = "taskMail"
	propName     = "taskArtifactName"
	propText     = "taskArtifactDescription"
	propChunk    = "taskArtifactChunk"
	propChunks   = "taskArtifactChunks" // number of chunks
	propBytes    = "taskArtifactBytes"  // sum of chunkCost
	propComplete = "taskArtifactComplete"
)

var (
	classOfTask = systemgraph.Property(taskClass)
	rdfType     = kg.IRI(kg.RDFType)
)

package tasks

import (
	"koine/internal/records"
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
	propStatus   = "taskStatus"   // JSON: the state, when it came, and which message came with it
	propMessages = "taskMessages" // how many there are
	propMetadata = "taskMetadata"
	propParent   = "taskParent"
	propUser     = "taskUser"
	propFailure  = "taskFailure"
	propCreated  = "taskCreatedAt"
	propVersion  = "taskVersion"
	propOpen     = "taskOpen" // names the handler until the task ends
	// propMailFrom is the number of the oldest message that is in the mailbox of the
	// handler. While it is not there, those in the mailbox are the newest without a gap.
	propMailFrom = "taskMailFrom"
)

// The properties of a journal of tasks: whose it is. They are there from its first task
// on.
const (
	propListCreator = "tasksOf"
	propListHandler = "tasksFor"
)

// The properties of what belongs to a task: messages and artifacts.
const (
	propTask       = "task"
	propNumber     = "taskMessageNumber"
	propKey        = "taskKey" // the id that was given by who sent it
	propRole       = "taskRole"
	propAuthor     = "taskAuthor"
	propParts      = "taskParts"
	propExtensions = "taskExtensions"
	propReferences = "taskReference"
	propSaid       = "taskSaidAt"
	// propOnce is the hash of author, message id and content of what made or went on with
	// the task.
	propOnce = "taskOnce"
	// propMail names the handler until it has acknowledged the message. Of a task it says
	// that its cancel is to be acknowledged.
	propMail     = "taskMail"
	propName     = "taskArtifactName"
	propText     = "taskArtifactDescription"
	propChunk    = "taskArtifactChunk"
	propChunks   = "taskArtifactChunks" // how many there are
	propBytes    = "taskArtifactBytes"  // what they cost together: see chunkCost
	propComplete = "taskArtifactComplete"
)

var (
	classOfTask = records.Property(taskClass)
	rdfType     = kg.IRI(kg.RDFType)
)

package v1

import (
	"koine/a2a/internal/base"
	"koine/internal/tasks"
)

// form is the form of the common objects in 1.0.
var form = base.Form[part]{
	Roles: map[tasks.Role]string{tasks.User: "ROLE_USER", tasks.Agent: "ROLE_AGENT"},
	States: map[tasks.State]string{
		tasks.Submitted: "TASK_STATE_SUBMITTED", tasks.Working: "TASK_STATE_WORKING", tasks.InputRequired: "TASK_STATE_INPUT_REQUIRED",
		tasks.AuthRequired: "TASK_STATE_AUTH_REQUIRED", tasks.Completed: "TASK_STATE_COMPLETED", tasks.Failed: "TASK_STATE_FAILED",
		tasks.Canceled: "TASK_STATE_CANCELED", tasks.Rejected: "TASK_STATE_REJECTED",
	},
	Read: readPart, Write: writePart,
}

type (
	task     = base.Task[part]
	status   = base.Status[part]
	message  = base.Message[part]
	artifact = base.Artifact[part]
)

// statusUpdate is a TaskStatusUpdateEvent.
type statusUpdate struct {
	Task    tasks.TaskID `json:"taskId"`
	Context string       `json:"contextId"`
	Status  *status      `json:"status"`
}

// artifactUpdate is a TaskArtifactUpdateEvent.
type artifactUpdate struct {
	Task     tasks.TaskID `json:"taskId"`
	Context  string       `json:"contextId"`
	Artifact *artifact    `json:"artifact"`
	Append   bool         `json:"append,omitempty"`
	Last     bool         `json:"lastChunk,omitempty"`
}

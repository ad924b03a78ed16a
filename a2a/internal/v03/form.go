package v03

import (
	"koine/a2a/internal/base"
	"koine/internal/tasks"
)

// form is the form of the common objects in 0.3.
var form = base.Form[part]{
	Kinds: true,
	Roles: map[tasks.Role]string{tasks.User: "user", tasks.Agent: "agent"},
	States: map[tasks.State]string{
		tasks.Submitted: "submitted", tasks.Working: "working", tasks.InputRequired: "input-required", tasks.AuthRequired: "auth-required",
		tasks.Completed: "completed", tasks.Failed: "failed", tasks.Canceled: "canceled", tasks.Rejected: "rejected",
	},
	Read: readPart, Write: writePart,
}

type message = base.Message[part]

// statusUpdate is a TaskStatusUpdateEvent.
type statusUpdate struct {
	Kind    string             `json:"kind"`
	Task    tasks.TaskID       `json:"taskId"`
	Context string             `json:"contextId"`
	Status  *base.Status[part] `json:"status"`
	Final   bool               `json:"final"`
}

// artifactUpdate is a TaskArtifactUpdateEvent.
type artifactUpdate struct {
	Kind     string               `json:"kind"`
	Task     tasks.TaskID         `json:"taskId"`
	Context  string               `json:"contextId"`
	Artifact *base.Artifact[part] `json:"artifact"`
	Append   bool                 `json:"append"`
	Last     bool                 `json:"lastChunk"`
}

package graph

import (
	"context"
	"encoding/json"

	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/tasks"
	"koine/kg"
)

// Artifact is a result that the handler of a task delivers.
type Artifact struct {
	record *tasks.Artifact
	task   tasks.TaskID
}

func (a *Artifact) byteSize() int {
	return sizeOfParts(a.record.Parts) + len(a.record.Metadata) + len(a.record.Name) + len(a.record.Description)
}

// Artifacts resolves the artifact references of a channel message.
func (m *Message) Artifacts(ctx context.Context) ([]*Artifact, error) {
	out := make([]*Artifact, len(m.record.ArtifactRefs))
	for i, ref := range m.record.ArtifactRefs {
		var err error
		if out[i], err = artifactIfAny(ctx, ref); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// artifactIfAny returns the artifact of a reference, nil if the caller cannot
// see one.
func artifactIfAny(ctx context.Context, ref string) (*Artifact, error) {
	r := runOf(ctx)
	task, id, ok := tasks.ParseArtifact(ref)
	if !ok || r.engine.deps.Tasks == nil {
		return nil, nil
	}
	service, by, err := r.taskService()
	if err != nil {
		return nil, err
	}
	found, err := service.Artifact(ctx, by, task, id)
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a := &Artifact{record: found, task: task}
	return a, r.chargeBytes(a.byteSize())
}

// ID is the IRI of the artifact's entity.
func (a *Artifact) ID() string { return a.task.ArtifactEntity(a.record.ID).Value() }

// ArtifactID is unique within the task.
func (a *Artifact) ArtifactID() string { return a.record.ID }

// TaskID is the id of the artifact's task.
func (a *Artifact) TaskID() string { return string(a.task) }

// Name is nil if the artifact has none.
func (a *Artifact) Name() *string { return nilIfEmpty(a.record.Name) }

// Description is nil if the artifact has none.
func (a *Artifact) Description() *string { return nilIfEmpty(a.record.Description) }

// Parts is the content of the artifact.
func (a *Artifact) Parts() []Part { return shownParts(a.record.Parts) }

// Text joins the texts of the parts.
func (a *Artifact) Text() string { return textOf(a.record.Parts) }

// Metadata is a JSON object, nil for none.
func (a *Artifact) Metadata() json.RawMessage { return a.record.Metadata }

// Extensions are the URIs of the extensions that the artifact follows.
func (a *Artifact) Extensions() []string { return notNil(a.record.Extensions) }

// Complete reports whether the handler marked the artifact as complete.
func (a *Artifact) Complete() bool { return a.record.Complete }

// Entity is the artifact as an entity.
func (a *Artifact) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	return knowledge.ReadOwnEntity(ctx, f, a.task.ArtifactEntity(a.record.ID))
}

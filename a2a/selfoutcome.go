package a2a

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"koine/internal/tasks"
)

// outcome collects the results of a message to koine: artifacts, and a summary with the
// last of them.
type outcome struct {
	job     *tasks.Job
	texts   []string
	refused bool // the last order was refused
	ended   bool
}

func (o *outcome) addText(text string) {
	if text != "" {
		o.texts = append(o.texts, text)
	}
}

// pieceBytes is the part of a result in one chunk: three bytes are four in base64.
const pieceBytes = tasks.MaxMessageBytes / 4 * 3 / 3 * 3

// reportResult reports the result of a part as an artifact: one part of data, or if that is
// too large, pieces of the JSON as a file, chunk by chunk.
func (o *outcome) reportResult(ctx context.Context, n int, of *order, result json.RawMessage) error {
	a := tasks.Artifact{ID: "result-" + strconv.Itoa(n+1), Name: of.method, Complete: true}
	last := n == len(o.job.Message.Parts)-1 || o.refused
	if of.parts != nil {
		a.Parts = of.parts(result)
		return o.reportChunk(ctx, tasks.Chunk{Artifact: a}, last)
	}
	if len(result) <= tasks.MaxMessageBytes {
		a.Parts = []tasks.Part{tasks.DataPart(result)}
		return o.reportChunk(ctx, tasks.Chunk{Artifact: a}, last)
	}
	for more := false; len(result) > 0; more = true {
		piece := result[:min(len(result), pieceBytes)]
		result = result[len(piece):]
		raw := base64.StdEncoding.EncodeToString(piece)
		a.Parts = []tasks.Part{{Raw: &raw, MediaType: "application/json", Filename: "result.json"}}
		a.Complete = len(result) == 0
		if err := o.reportChunk(ctx, tasks.Chunk{Artifact: a, Append: more}, last && a.Complete); err != nil {
			return err
		}
	}
	return nil
}

// reportChunk reports a chunk, and ends the task with the last.
func (o *outcome) reportChunk(ctx context.Context, c tasks.Chunk, last bool) error {
	r := tasks.Report{Artifacts: []tasks.Chunk{c}}
	if last {
		r.State, r.Message, o.ended = tasks.Completed, o.summaryMessage(), true
		if o.refused {
			r.State = tasks.Rejected
		}
	}
	return o.job.Report(ctx, r)
}

func (o *outcome) summaryMessage() *tasks.Message {
	if len(o.texts) == 0 {
		return nil
	}
	return &tasks.Message{Parts: []tasks.Part{tasks.TextPart(strings.Join(o.texts, "\n"))}}
}

// endTask completes the task if no artifact did.
func (o *outcome) endTask(ctx context.Context) error {
	if o.ended {
		return nil
	}
	return o.job.Report(ctx, tasks.Report{State: tasks.Completed, Message: o.summaryMessage()})
}

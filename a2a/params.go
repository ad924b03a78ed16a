package a2a

import (
	"time"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/kg"
)

// languages are the supported query languages.
var languages = []string{"graphql"}

// operationParams are the common params of knowledge/query and knowledge/subscribe
// (knowledge graph extension, sections 4.1 and 4.3).
type operationParams struct {
	operation.Request
	language string
	controls controls
}

// readOperation reads them; the text of the operation is the member queryName. The
// caller reads its other members before and calls checkAllRead.
func (c *call) readOperation(params *object, queryName string, controls ...string) operationParams {
	var p operationParams
	p.Query = params.readRequired(queryName)
	p.language, _ = params.readText("queryLanguage")
	p.OperationName, _ = params.readText("operationName")
	p.Variables = params.readValues("variables")
	p.TaskID, _ = params.readText("taskId")
	p.SessionID, _ = params.readText("sessionId")
	p.View.MinCertainty, _ = params.readCertainty("requiredCertainty")
	p.controls = readControls(params, controls...)
	p.Method, p.Metadata = c.method, p.controls.metadata
	p.Principal, p.Actor = c.caller.Principal, c.caller.Actor
	p.View.Principal = c.caller.Principal
	p.View.Recorded = p.controls.recordedAt
	p.View.ValidAt, p.View.Believed = p.controls.validAt, p.controls.believedBy
	return p
}

// otherLanguage reports whether the operation is in an unsupported language.
func (p *operationParams) otherLanguage() bool {
	return p.language != "" && p.language != languages[0]
}

// maxAge limits an age to the range of a Duration.
const maxAge = uint64(1<<63-1) / uint64(time.Second)

// readAge reads a number of seconds. An age of 0 would match nothing.
func (o *object) readAge(name string) time.Duration {
	n, ok := o.readNatural(name)
	if ok && n == 0 {
		o.failAt(name, "must be at least 1")
	}
	return time.Duration(min(n, maxAge)) * time.Second
}

// readAgent reads an agent; "" if absent.
func (o *object) readAgent(name string) kg.AgentID {
	text, ok := o.readText(name)
	if !ok {
		return ""
	}
	id, err := caller.ParseAgent(text)
	if err != nil {
		o.failure.setAt(joinPath(o.path, name), kg.AsError(err))
	}
	return id
}

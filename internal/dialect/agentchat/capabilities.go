package agentchat

import (
	"cmp"
	"net/http"
	"slices"
)

// standardCapabilities are the capabilities of the specification. They are always listed.
var standardCapabilities = []capability{
	{Tag: "code-generation", Description: "writes code"},
	{Tag: "code-review", Description: "reviews code"},
	{Tag: "conversation", Description: "converses with people"},
	{Tag: "data-analysis", Description: "analyses data"},
	{Tag: "file-management", Description: "reads, writes and organises files"},
	{Tag: "image-analysis", Description: "describes and analyses images"},
	{Tag: "image-generation", Description: "makes images"},
	{Tag: "knowledge-base", Description: "answers from a body of knowledge"},
	{Tag: "summarization", Description: "summarises texts"},
	{Tag: "task-execution", Description: "carries out tasks"},
	{Tag: "task-planning", Description: "breaks work down into tasks"},
	{Tag: "translation", Description: "translates between languages"},
	{Tag: "web-search", Description: "searches the web"},
}

type capability struct {
	Tag         string `json:"tag"`
	Description string `json:"description"`
	Agents      int    `json:"agents"`
}

// listCapabilities lists the standard capabilities and those of registered agents.
func (h *Handler) listCapabilities(_ http.ResponseWriter, r *http.Request, _ *requester) (int, any, error) {
	counts, err := h.deps.Agents.Capabilities(r.Context())
	if err != nil {
		return 0, nil, err
	}
	list := slices.Clone(standardCapabilities)
	for _, c := range counts {
		at, found := slices.BinarySearchFunc(list, c.Tag, func(one capability, tag string) int { return cmp.Compare(one.Tag, tag) })
		if !found {
			list = slices.Insert(list, at, capability{Tag: c.Tag})
		}
		list[at].Agents = c.Agents
	}
	return http.StatusOK, struct {
		Capabilities []capability `json:"capabilities"`
	}{list}, nil
}

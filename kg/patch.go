package kg

// Op is what a patch asks for, and what a change is seen as.
type Op uint8

// The operations (knowledge graph extension, section 3, PatchOperationType).
const (
	// Add asserts the statement for its source. Again: updates that source's
	// assertion.
	Add Op = iota + 1
	// Remove takes the statement away with all its assertions, or, where the
	// patch names a source, that source's assertion only: the statement lives
	// while another source backs it.
	Remove
	// Replace removes every statement with the same subject, predicate and
	// graph and adds this one.
	Replace
)

func (o Op) String() string {
	switch o {
	case Add:
		return "add"
	case Remove:
		return "remove"
	case Replace:
		return "replace"
	}
	return "none"
}

// Patch is one wish for a change.
type Patch struct {
	Op   Op
	Quad Quad
	// Source is whose assertion is made or withdrawn. For Add and Replace ""
	// stands for Meta.Actor; for Remove "" means the whole statement.
	Source       AgentID
	Certainty    float64
	HasCertainty bool
	Provenance   []byte // JSON, or nil
}

// MaxPatches bounds the changes of one commit, MaxCommitBytes their encoded
// size before compression.
const (
	MaxPatches     = 10_000
	MaxCommitBytes = 12 << 20
)

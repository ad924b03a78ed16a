package celrules

import (
	"strings"
	"time"

	"github.com/google/cel-go/cel"

	"koine/kg"
)

// On is the kind of request that a rule judges.
type On string

// The kinds of requests.
const (
	OnUpdate    On = "update"    // each change of an update
	OnMessage   On = "message"   // a message, before it is published
	OnQuery     On = "query"     // a query, before it is executed
	OnSubscribe On = "subscribe" // a subscription, before it begins
	OnRead      On = "read"      // statements in every read
)

// Effect is the effect of a rule that holds.
type Effect string

// The effects.
const (
	Reject    Effect = "reject"    // the update is refused with a result; a message is not published
	Review    Effect = "review"    // the update or message is held until others have approved it
	Tag       Effect = "tag"       // the message gets the rule's tags
	Violation Effect = "violation" // the update is refused with an error
	Hide      Effect = "hide"      // the statement is invisible to the caller
	Refuse    Effect = "refuse"    // the query or subscription is refused with an error
)

// effects are the permitted effects for each kind of request.
var effects = map[On][]Effect{
	OnUpdate:    {Reject, Review, Violation},
	OnMessage:   {Reject, Violation, Review, Tag},
	OnQuery:     {Refuse},
	OnSubscribe: {Refuse},
	OnRead:      {Hide},
}

// Limits of a file of rules.
const (
	MaxFileBytes       = 1 << 20
	MaxRules           = 256
	MaxNameBytes       = 128
	MaxMessageBytes    = 1 << 10
	MaxExpressionBytes = 8 << 10
	MaxApprovals       = 16
	maxExpressionDepth = 64
)

// MaxExpiry is the longest time that a rule may let a proposal wait.
const MaxExpiry = 366 * 24 * time.Hour

// Rule is one compiled rule.
type Rule struct {
	Name    string
	On      On
	When    string
	Effect  Effect
	Message string
	// Hold is the review that the rule requires; nil unless Effect is Review.
	Hold *kg.Hold
	// Tags are those that the message gets; only if Effect is Tag.
	Tags []string

	program cel.Program
}

// compile checks and compiles the expression; cost limits one evaluation.
func (r *Rule) compile(env *cel.Env, cost uint64) error {
	ast, issues := env.Compile(r.When)
	if err := issues.Err(); err != nil {
		return err
	}
	if ast.OutputType() != cel.BoolType && ast.OutputType() != cel.DynType {
		return kg.Errorf(kg.CodeInvalid, "the condition must have type bool, not %s", ast.OutputType())
	}
	var err error
	// No EvalOptions that track state: they disable the cost limit.
	r.program, err = env.Program(ast, cel.CostLimit(cost), cel.CostTracking(estimator{}), cel.InterruptCheckFrequency(interruptEvery),
		cel.CustomDecoratorV2(chargeCalls))
	return err
}

// interruptEvery is the number of steps of a loop between checks of the deadline. A
// step may traverse a long text.
const interruptEvery = 4

// reason is the reason given to the caller.
func (r *Rule) reason() string {
	if r.Message != "" {
		return r.Message
	}
	return "Rule " + r.Name
}

// oneLine joins the lines of a CEL error.
func oneLine(err error) string {
	var parts []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "|") {
			parts = append(parts, strings.TrimPrefix(line, "ERROR: <input>:"))
		}
	}
	return strings.Join(parts, "; ")
}

package rules

import (
	"strings"
	"time"

	"github.com/google/cel-go/cel"

	"koine/kg"
)

// On is what a rule is about.
type On string

// What rules are about.
const (
	OnUpdate    On = "update"    // each change that an update makes
	OnMessage   On = "message"   // a message, before it is published
	OnQuery     On = "query"     // a query, before it is executed
	OnSubscribe On = "subscribe" // a subscription, before it begins
	OnRead      On = "read"      // statements, wherever they are read
)

// Effect is what becomes of what a rule is true of.
type Effect string

// The effects.
const (
	Reject    Effect = "reject"    // the update is refused with a result; of a message, nothing is published
	Review    Effect = "review"    // the update is held until others have approved it
	Violation Effect = "violation" // the update is refused with an error
	Hide      Effect = "hide"      // the statement is not there for the caller
	Refuse    Effect = "refuse"    // the query or subscription is refused with an error
)

// effects are those that make sense on something.
var effects = map[On][]Effect{
	OnUpdate:    {Reject, Review, Violation},
	OnMessage:   {Reject, Violation},
	OnQuery:     {Refuse},
	OnSubscribe: {Refuse},
	OnRead:      {Hide},
}

// Bounds of a file of rules.
const (
	MaxFileBytes       = 1 << 20
	MaxRules           = 256
	MaxNameBytes       = 128
	MaxMessageBytes    = 1 << 10
	MaxExpressionBytes = 8 << 10
	MaxApprovals       = 16
	maxExpressionDepth = 64
)

// MaxExpiry is the longest that a rule lets a proposal wait.
const MaxExpiry = 366 * 24 * time.Hour

// Rule is one rule, compiled.
type Rule struct {
	Name    string
	On      On
	When    string
	Effect  Effect
	Message string
	// Hold is what it takes to let through what the rule holds; nil unless
	// Effect is Review.
	Hold *kg.Hold

	program cel.Program
}

// compile checks the expression and makes it ready, with the cost that one
// evaluation may have.
func (r *Rule) compile(env *cel.Env, cost uint64) error {
	ast, issues := env.Compile(r.When)
	if err := issues.Err(); err != nil {
		return err
	}
	if ast.OutputType() != cel.BoolType && ast.OutputType() != cel.DynType {
		return kg.Errorf(kg.CodeInvalid, "a condition is true or false, not of type %s", ast.OutputType())
	}
	var err error
	// No EvalOptions that track state: they switch the cost limit off.
	r.program, err = env.Program(ast, cel.CostLimit(cost), cel.CostTracking(estimator{}), cel.InterruptCheckFrequency(interruptEvery),
		cel.CustomDecoratorV2(price))
	return err
}

// interruptEvery is after how many steps of a loop an evaluation looks at its
// deadline. A step may traverse a long text.
const interruptEvery = 4

// text is what a caller is told about the rule.
func (r *Rule) text() string {
	if r.Message != "" {
		return r.Message
	}
	return "Rule " + r.Name
}

// oneLine puts what CEL says of an expression into one line.
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

package celrules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"gopkg.in/yaml.v3"

	"koine/channels"
	"koine/kg"
)

// Defaults of Options.
const (
	DefaultRuleCost      = 100_000
	DefaultJudgementCost = 10_000_000
	DefaultJudgementTime = 2 * time.Second
)

// Options limits judging. The zero Options is valid.
type Options struct {
	// RuleCost limits one evaluation of one rule, in the units of CEL's cost model,
	// about one for each step; JudgementCost limits all evaluations of one update,
	// query or subscription.
	RuleCost, JudgementCost uint64
	JudgementTime           time.Duration
	// Messages finds the messages of an update (channels.Service.Judged); nil without
	// channels.
	Messages func(context.Context, kg.Judgement) ([]channels.JudgedMessage, error)
}

func (o Options) withDefaults() Options {
	o.RuleCost = cmp.Or(o.RuleCost, DefaultRuleCost)
	o.JudgementCost = cmp.Or(o.JudgementCost, DefaultJudgementCost)
	o.JudgementTime = cmp.Or(o.JudgementTime, DefaultJudgementTime)
	return o
}

// Set holds the rules of one file. It is immutable and safe for concurrent use.
type Set struct {
	options Options
	rules   map[On][]*Rule
	scans   []*Rule // on messages, that hold or tag: only Scan evaluates them
}

// Parse parses a file of rules. Errors name the line.
func Parse(text []byte, o Options) (*Set, error) {
	s := &Set{options: o.withDefaults(), rules: map[On][]*Rule{}}
	if len(text) > MaxFileBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the file of rules exceeds the limit of %d bytes", MaxFileBytes)
	}
	p := parser{set: s, envs: map[On]*cel.Env{}, names: map[string]int{}}
	var document fileNode
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, kg.Errorf(kg.CodeInvalid, "%w", err)
	}
	if n := len(document.Rules); n > MaxRules {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "line %d: the file has %d rules, more than the limit of %d", document.Rules[MaxRules].Line, n, MaxRules)
	}
	var errs []error
	for i := range document.Rules {
		if err := p.parseRule(&document.Rules[i]); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", document.Rules[i].Line, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "%w", err)
	}
	return s, nil
}

// Rules lists the rules in the order of the file, those on updates first.
func (s *Set) Rules() []*Rule {
	var list []*Rule
	for _, on := range []On{OnUpdate, OnMessage, OnQuery, OnSubscribe, OnRead} {
		list = append(list, s.rules[on]...)
		if on == OnMessage {
			list = append(list, s.scans...)
		}
	}
	return list
}

// fileNode is the parsed file; each rule keeps its line.
type fileNode struct {
	Rules []yaml.Node `yaml:"rules"`
}

// ruleNode is a rule as written in the file.
type ruleNode struct {
	Name    string   `yaml:"name"`
	On      On       `yaml:"on"`
	When    string   `yaml:"when"`
	Effect  Effect   `yaml:"effect"`
	Message string   `yaml:"message"`
	Tags    []string `yaml:"tags"`
	Review  *struct {
		Approvals *int     `yaml:"approvals"`
		Role      string   `yaml:"role"`
		Roles     []string `yaml:"roles"`
		Expires   string   `yaml:"expires"`
	} `yaml:"review"`
}

type parser struct {
	set   *Set
	envs  map[On]*cel.Env
	names map[string]int // line of each rule
}

// ruleMembers are the members of a rule; yaml.Node.Decode has no KnownFields.
var ruleMembers = []string{"name", "on", "when", "effect", "message", "tags", "review"}

func (p *parser) parseRule(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return errors.New("a rule must be a mapping with name, on, when and effect")
	}
	for i := 0; i < len(node.Content); i += 2 {
		if key := node.Content[i]; !slices.Contains(ruleMembers, key.Value) {
			return fmt.Errorf("unknown member %q of a rule: use %v", key.Value, ruleMembers)
		}
	}
	var n ruleNode
	if err := node.Decode(&n); err != nil {
		return err
	}
	r := &Rule{Name: n.Name, On: n.On, When: n.When, Effect: n.Effect, Message: n.Message}
	if err := p.validate(r, node.Line); err != nil {
		return err
	}
	if err := r.setTags(n.Tags); err != nil {
		return fmt.Errorf("rule %s: tags: %w", r.Name, err)
	}
	if n.Review != nil && r.Effect != Review {
		return fmt.Errorf("rule %s: review requires effect review", r.Name)
	}
	if r.Effect == Review {
		var err error
		if r.Hold, err = parseHold(&n); err != nil {
			return fmt.Errorf("rule %s: review: %w", r.Name, err)
		}
	}
	env, ok := p.envs[r.On]
	if !ok {
		var err error
		if env, err = newEnvironment(r.On); err != nil {
			return err
		}
		p.envs[r.On] = env
	}
	if err := r.compile(env, p.set.options.RuleCost); err != nil {
		return fmt.Errorf("rule %s: when: %s", r.Name, oneLine(err))
	}
	if r.On == OnMessage && (r.Effect == Review || r.Effect == Tag) {
		p.set.scans = append(p.set.scans, r)
		return nil
	}
	p.set.rules[r.On] = append(p.set.rules[r.On], r)
	return nil
}

// validate validates a rule except for its expression.
func (p *parser) validate(r *Rule, line int) error {
	switch {
	case r.Name == "":
		return errors.New("a rule requires a name")
	case len(r.Name) > MaxNameBytes:
		return fmt.Errorf("the name of a rule may have at most %d bytes", MaxNameBytes)
	case p.names[r.Name] != 0:
		return fmt.Errorf("rule %s: line %d has a rule of the same name", r.Name, p.names[r.Name])
	case effects[r.On] == nil:
		return fmt.Errorf("rule %s: on must be update, message, query, subscribe or read, not %q", r.Name, r.On)
	case !slices.Contains(effects[r.On], r.Effect):
		return fmt.Errorf("rule %s: on %s the effect must be one of %v, not %q", r.Name, r.On, effects[r.On], r.Effect)
	case r.When == "":
		return fmt.Errorf("rule %s: when is missing: write true to hold always", r.Name)
	case len(r.When) > MaxExpressionBytes:
		return fmt.Errorf("rule %s: the condition may have at most %d bytes", r.Name, MaxExpressionBytes)
	case len(r.Message) > MaxMessageBytes:
		return fmt.Errorf("rule %s: the message may have at most %d bytes", r.Name, MaxMessageBytes)
	}
	p.names[r.Name] = line
	return nil
}

// parseHold parses the review that a rule requires.
func parseHold(n *ruleNode) (*kg.Hold, error) {
	h := &kg.Hold{Approvals: 1, Rules: []string{n.Name}}
	if n.Review == nil {
		return h, nil
	}
	if n.Review.Approvals != nil {
		h.Approvals = *n.Review.Approvals
	}
	if h.Approvals < 1 || h.Approvals > MaxApprovals {
		return nil, fmt.Errorf("approvals must be between 1 and %d, not %d", MaxApprovals, h.Approvals)
	}
	h.Roles = n.Review.Roles
	if n.Review.Role != "" {
		h.Roles = append(h.Roles, n.Review.Role)
	}
	if n.Review.Expires != "" {
		var err error
		if h.Expires, err = time.ParseDuration(n.Review.Expires); err != nil || h.Expires <= 0 || h.Expires > MaxExpiry {
			return nil, fmt.Errorf("expires must be a duration such as 72h, at most %s, not %q", MaxExpiry, n.Review.Expires)
		}
	}
	return h, nil
}

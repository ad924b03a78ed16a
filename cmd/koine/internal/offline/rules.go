package offline

import (
	"fmt"
	"os"

	"koine/cmd/koine/internal/cli"
	"koine/internal/celrules"
)

// RulesCommand contains the commands on rules that need no server.
type RulesCommand struct {
	Check rulesCheckCommand `cmd:"" help:"Validate a rules file."`
}

// rulesCheckCommand parses a rules file as the server does.
type rulesCheckCommand struct {
	File string `arg:"" help:"Rules file." type:"path"`
}

// Help is shown by --help.
func (rulesCheckCommand) Help() string {
	return `Parses the file as koine serve --policy does, and reports the line of each error. The exit code is 3 if the server would refuse the file.

Examples:
  koine rules check policy.yaml`
}

// Run parses the file and lists its rules.
func (c *rulesCheckCommand) Run(t cli.Terminal) error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return cli.AsUsage(err)
	}
	set, err := celrules.Parse(text, celrules.Options{})
	if err != nil {
		return err
	}
	for _, r := range set.Rules() {
		fmt.Fprintf(t.Out, "%-9s %-9s %s\n", r.On, r.Effect, r.Name)
	}
	if n := len(set.Rules()); n == 1 {
		t.Notef("1 rule")
	} else {
		t.Notef("%d rules", n)
	}
	return nil
}

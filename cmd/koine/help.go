package main

// helpCommandName is the name of helpCommand.
const helpCommandName = "help"

// helpCommand shows the help of a command: koine help load is koine load --help.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"Command, for example: channel publish."`
}

// Run prints the help. It ends with the parserExit panic, as --help does.
func (c *helpCommand) Run(t terminal) error {
	parser, err := newParser(t, func(status int) { panic(parserExit{status}) })
	if err != nil {
		return err
	}
	_, err = parser.Parse(append(c.Command, "--help"))
	return plainUsage(err)
}

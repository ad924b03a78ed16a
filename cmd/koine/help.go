package main

// helpCommandName is how helpCommand is called.
const helpCommandName = "help"

// helpCommand shows the help of a command: koine help load is koine load --help.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command, such as: channel publish."`
}

// Run shows it, and ends by unwinding as --help does.
func (c *helpCommand) Run(t terminal) error {
	parser, err := newParser(t, func(status int) { panic(parserExit{status}) })
	if err != nil {
		return err
	}
	_, err = parser.Parse(append(c.Command, "--help"))
	return plainUsage(err)
}

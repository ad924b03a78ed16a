package client

import (
	"cmp"
	"os"
)

// DefaultAddress is where "koine serve" listens when it is not told.
const DefaultAddress = "http://127.0.0.1:8080"

// Environment is the address and the options that the environment says, in the same
// variables as for the command line: KOINE_URL (DefaultAddress without it), KOINE_KEY
// and KOINE_AS.
func Environment() (address string, o Options) {
	return cmp.Or(os.Getenv("KOINE_URL"), DefaultAddress), Options{Key: os.Getenv("KOINE_KEY"), Agent: os.Getenv("KOINE_AS")}
}

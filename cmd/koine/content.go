package main

import (
	"bytes"
	"log/slog"
	"os"
	"time"

	"koine/channels"
	"koine/cmd/koine/internal/cli"
	"koine/internal/celrules"
	"koine/internal/delivery"
	"koine/internal/scan"
	"koine/kg"
)

// contentFlags name the web hook that judges messages before they are published, and bound
// the messages that wait for a review.
type contentFlags struct {
	ContentHook        string        `help:"Web hook that judges each message before it is published: accept, reject, hold or tag it." placeholder:"URL"`
	ContentHookSecret  string        `help:"File with the secret that signs the calls of the content hook." placeholder:"FILE" type:"path"`
	ContentHookPrivate bool          `help:"Allow a content hook at a private or loopback address."`
	ContentHookTime    time.Duration `help:"How long the judgement of one message may take." default:"2s" placeholder:"TIME"`
	ContentHookFailure string        `help:"What happens to a message that the content hook does not judge in time: accept, reject or hold." enum:"accept,reject,hold" default:"reject" placeholder:"accept|reject|hold"`
	ContentHookCalls   int           `help:"Calls of the content hook under way." default:"32" placeholder:"N"`
	ContentHookBytes   int           `help:"Size of a call of the content hook. A larger message counts as not judged." default:"1048576" placeholder:"N"`
	ContentHookRole    []string      `help:"Role that reviews the messages which the content hook holds, beside administrators; may be repeated (default: reviewer)." placeholder:"ROLE"`
	HeldMessages       int           `help:"Messages that may wait for a review." default:"10000" placeholder:"N"`
	HeldPerAgent       int           `help:"Messages of one agent that may wait for a review." default:"20" placeholder:"N"`
}

// Validate checks the bounds of the flags.
func (f *contentFlags) Validate() error {
	for _, n := range []struct {
		flag        string
		value, most int
	}{{"content-hook-calls", f.ContentHookCalls, 1 << 12}, {"content-hook-bytes", f.ContentHookBytes, 64 << 20}, {"held-messages", f.HeldMessages, 1_000_000}, {"held-per-agent", f.HeldPerAgent, 1_000_000}} {
		if err := cli.CheckRange(n.flag, n.value, 1, n.most); err != nil {
			return err
		}
	}
	return cli.CheckRange("content-hook-time", f.ContentHookTime, time.Millisecond, scan.MaxTimeout)
}

// newContentHook returns the content hook; nil without --content-hook.
func (f *contentFlags) newContentHook(log *slog.Logger) (*scan.Hook, error) {
	if f.ContentHook == "" {
		return nil, nil
	}
	var secret []byte
	if f.ContentHookSecret != "" {
		text, err := os.ReadFile(f.ContentHookSecret)
		if err != nil {
			return nil, cli.Usagef("--content-hook-secret: %w", err)
		}
		if secret = bytes.TrimSpace(text); len(secret) == 0 {
			return nil, cli.Usagef("--content-hook-secret: %s is empty", f.ContentHookSecret)
		}
	}
	hook, err := scan.NewHook(scan.HookOptions{
		Target: delivery.Target{URL: f.ContentHook}, Secret: secret, AllowPrivate: f.ContentHookPrivate, Timeout: f.ContentHookTime, MaxBytes: f.ContentHookBytes,
		MaxCalls: f.ContentHookCalls, OnFailure: scan.OnFailure(f.ContentHookFailure), Hold: kg.Hold{Approvals: 1, Roles: f.ContentHookRole}, Logger: log,
	})
	if err != nil {
		e := *kg.AsError(err)
		if e.Hint != "" {
			e.Hint = "Start the server with --content-hook-private to allow it."
		}
		return nil, cli.Usagef("--content-hook: %w", &e)
	}
	return hook, nil
}

// lateScanner is a scanner that is set after the channels service, because the rules need
// that service.
type lateScanner struct{ channels.Scanner }

// newScanner returns the scanner of messages. Both arguments may be nil.
func newScanner(file *celrules.File, hook *scan.Hook) *scan.Scanner {
	if file == nil {
		return scan.New(nil, hook)
	}
	return scan.New(file, hook)
}

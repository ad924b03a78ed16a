package kgtest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// maxLine bounds what a child says in one line.
const maxLine = 1 << 20

// Child runs the test binary again, as the process that a kill test kills: settings
// are variables of the environment by which its TestMain knows that. Each line that
// the child says goes to heard, also those that come behind its end, because they
// were said before. It is killed with SIGKILL when heard has enough, and when the time
// is up. An end of its own is an error, as is one of heard, which ends it too.
func Child(lives time.Duration, heard func(line []byte) (enough bool, err error), settings ...string) error {
	var stderr bytes.Buffer
	child := exec.Command(os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), settings...), &stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return err
	}
	kill := func() { _ = child.Process.Kill() }
	defer time.AfterFunc(lives, kill).Stop()
	in := bufio.NewScanner(out)
	in.Buffer(nil, maxLine)
	for err == nil && in.Scan() {
		var enough bool
		if enough, err = heard(in.Bytes()); enough {
			kill()
		}
	}
	if err == nil {
		err = in.Err()
	}
	if err != nil {
		kill()
	}
	_ = child.Wait() // says that it was killed
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); err == nil && (!ok || status.Signal() != syscall.SIGKILL) {
		err = fmt.Errorf("the child ended by itself: %v", child.ProcessState)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return nil
}

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

// maxLine is the largest length of a line that a child writes.
const maxLine = 1 << 20

// Child runs the test binary again as the victim of a kill test. settings are environment
// variables that tell the TestMain of the child so. heard receives each line that the child
// writes, including lines still in the pipe after its death. The child is killed with SIGKILL
// when heard reports enough or the time is up. It is an error if the child exits by itself.
// An error of heard kills the child, too.
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
	_ = child.Wait() // reports that it was killed
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); err == nil && (!ok || status.Signal() != syscall.SIGKILL) {
		err = fmt.Errorf("the child ended by itself: %v", child.ProcessState)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return nil
}

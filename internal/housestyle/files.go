package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// eachFile calls fn for every tracked file that mayCount accepts: those of the work tree,
// or those of a commit.
func eachFile(commit string, fn func(name string, text []byte) error) error {
	root, err := runGit("", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	top := strings.TrimSpace(string(root))
	if commit != "" {
		return eachFileOf(top, commit, fn)
	}
	// Files that are new and not ignored count before they are added.
	list, err := runGit(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if !mayCount(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted in the work tree
		}
		if err == nil {
			err = fn(name, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eachFileOf(top, commit string, fn func(name string, text []byte) error) error {
	archive, err := runGit(top, "archive", "--format=tar", commit)
	if err != nil {
		return err
	}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !mayCount(h.Name) {
			continue
		}
		text, err := io.ReadAll(r)
		if err == nil {
			err = fn(h.Name, text)
		}
		if err != nil {
			return err
		}
	}
}

func runGit(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(failure.Bytes()))
	}
	return out, nil
}

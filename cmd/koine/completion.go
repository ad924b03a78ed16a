package main

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/cli"
)

//go:embed completion
var completionScripts embed.FS

// completionCommand prints the completion script of a shell.
type completionCommand struct {
	Shell string `arg:"" help:"Shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help is shown by --help.
func (completionCommand) Help() string {
	return `The script asks koine for the commands, flags and values that can follow, so it does not change with the version.

  bash   echo 'source <(koine completion bash)' >> ~/.bashrc
  zsh    echo 'source <(koine completion zsh)' >> ~/.zshrc      (after compinit)
  fish   koine completion fish > ~/.config/fish/completions/koine.fish`
}

// Run prints the script.
func (c *completionCommand) Run(t cli.Terminal) error {
	script, err := completionScripts.ReadFile("completion/koine." + c.Shell)
	if err != nil {
		return err
	}
	_, err = t.Out.Write(script)
	return err
}

// completeCommand prints the words that can complete a command line, each followed by a
// tab and its description. The scripts of completionCommand call it.
type completeCommand struct {
	Shell string `help:"Shell that asks." enum:"bash,zsh,fish" required:""`
	Line  string `arg:"" help:"Command line up to the cursor."`
}

// Run prints the completions of the last word.
func (c *completeCommand) Run(t cli.Terminal) error {
	parser, err := newParser(t, func(int) {})
	if err != nil {
		return err
	}
	words := splitLine(c.Line)
	last := words[len(words)-1]
	// bash replaces only the part of the word after the last of its own separators.
	kept := 0
	if c.Shell == "bash" {
		kept = strings.LastIndexAny(last, "=:") + 1
	}
	for _, w := range completeWords(parser.Model.Node, words[1:]) {
		if _, err := fmt.Fprintf(t.Out, "%s\t%s\n", w.word[kept:], w.help); err != nil {
			return err
		}
	}
	return nil
}

// completion is a word that can complete a command line.
type completion struct{ word, help string }

// splitLine splits a command line into words and removes quotes and backslashes. The last
// word is the one being typed and may be empty.
func splitLine(line string) []string {
	words := []string{""}
	var quote rune
	escaped := false
	for _, r := range line {
		last := &words[len(words)-1]
		switch {
		case escaped:
			escaped = false
			*last += string(r)
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				*last += string(r)
			}
		case r == '"' || r == '\'':
			quote = r
		case r == ' ' || r == '\t' || r == '\n':
			if *last != "" {
				words = append(words, "")
			}
		default:
			*last += string(r)
		}
	}
	if len(words) == 1 {
		words = append(words, "")
	}
	return words
}

// completeWords lists the completions of the last word. The words before it are the
// command line without the program's name.
func completeWords(node *kong.Node, words []string) []completion {
	before, last := words[:len(words)-1], words[len(words)-1]
	program, helping := node, false // set after the word help: its arguments are commands
	var open *kong.Flag             // the flag that takes the next word as its value
	arguments, flagsEnd := 0, false
	for _, word := range before {
		switch {
		case open != nil:
			open = nil
		case flagsEnd:
			arguments++
		case word == "--":
			flagsEnd = true
		case strings.HasPrefix(word, "-"):
			if f := flagOf(node, word); f != nil && !strings.Contains(word, "=") && takesValue(f) {
				open = f
			}
		default:
			child := childOf(node, word)
			switch {
			case child == nil || arguments > 0:
				arguments++
			case node == program && child.Name == helpCommandName && !helping:
				helping = true
			default:
				node = child
			}
		}
	}
	var list []completion
	name, _, assigned := strings.Cut(last, "=")
	switch {
	case open != nil:
		list = valuesOf(open.Value, "")
	case !flagsEnd && strings.HasPrefix(last, "--") && assigned:
		if f := flagOf(node, name); f != nil {
			list = valuesOf(f.Value, name+"=")
		}
	case !flagsEnd && strings.HasPrefix(last, "-"):
		list = flagsOf(node, before)
	default:
		if arguments == 0 {
			for _, child := range node.Children {
				if !child.Hidden {
					list = append(list, completion{child.Name, child.Help})
				}
			}
		}
		if arguments < len(node.Positional) && !helping {
			list = append(list, valuesOf(node.Positional[arguments], "")...)
		}
	}
	return slices.DeleteFunc(list, func(c completion) bool { return !strings.HasPrefix(c.word, last) })
}

// flagsOf lists the flags of a command and its parents that can still be given.
func flagsOf(node *kong.Node, given []string) (list []completion) {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			used := slices.ContainsFunc(given, func(word string) bool { return flagOf(node, word) == f })
			if used && !f.IsCumulative() {
				continue
			}
			list = append(list, completion{"--" + f.Name, f.Help})
		}
	}
	return list
}

// flagOf returns the flag that a word names, or nil.
func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// valuesOf lists the values that a flag or an argument accepts, from the tag enum, or from
// the tag completes if the command validates the value itself.
func valuesOf(v *kong.Value, prefix string) (list []completion) {
	for value := range strings.SplitSeq(cmp.Or(v.Enum, v.Tag.Get("completes")), ",") {
		if value = strings.TrimSpace(value); value != "" {
			list = append(list, completion{prefix + value, ""})
		}
	}
	return list
}

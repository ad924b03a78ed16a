package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
)

// The possible next words of a command line.
func TestCompletions(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	for line, want := range map[string]string{
		"koine ch":                                   "channel check",
		"koine channel re":                           "remove rename retract",
		"/usr/bin/koine --quiet channel pub":         "publish",
		"koine --config koine.yaml chan":             "channel",
		"koine help ch":                              "channel check",
		"koine help channel tai":                     "tail",
		"koine export --format n":                    "nquads ntriples",
		"koine load --format=t":                      "--format=trig --format=turtle",
		"koine serve --auth ":                        "open keys jwt",
		"koine serve --new-graphs ":                  "private read-only read-write",
		"koine review list --status a":               "applied",
		"koine --log-level ":                         "debug info warn error",
		"koine load a.nq ch":                         "",
		"koine comp":                                 "completion",
		"koine completion ":                          "bash zsh fish",
		"koine serve --names ":                       "strict lenient",
		"koine serve --names=s":                      "--names=strict",
		"koine serve --names=strict --name":          "",
		"koine channel create 'the lab' --membe":     "--member --members-by",
		"koine channel create x --member a --membe":  "--member --members-by",
		`koine channel publish the\ lab "a b" --as=`: "",
		"koine serve -- --na":                        "",
		"koine nothing --qui":                        "--quiet",
	} {
		out, err := exec.CommandContext(t.Context(), "koine", "complete", "--shell", "zsh", "--", line).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		var words []string
		for l := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(l, "\t")
			words = append(words, strings.TrimSpace(word))
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// The scripts complete in their shells.
func TestCompletionScripts(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	t.Setenv("HOME", t.TempDir())
	for shell, script := range map[string]string{
		"bash": `source <(koine completion bash)
for COMP_LINE in "koine chan" "koine serve --names=str" "koine channel re"; do
  COMP_POINT=${#COMP_LINE}; COMP_WORDS=($COMP_LINE); _koine; echo "${COMPREPLY[@]}"
done`,
		"fish": `koine completion fish | source
for line in "koine chan" "koine serve --names=str" "koine channel re"
  echo (complete -C "$line" | cut -f1)
end`,
		// A terminal of its own, where a key completes the line and prints it.
		"zsh": `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'autoload -Uz compinit; compinit -u -D; source <(koine completion zsh)'
zpty -w z 'completed() { zle complete-word; print -r -- "[$BUFFER]"; BUFFER= }; zle -N completed; bindkey "^X" completed; print rea""dy'
zpty -r -m z text $'*ready*'
for line in "koine chan" "koine serve --names=str" "koine channel ren"; do
  zpty -w -n z "$line"$'\C-x'
  zpty -r -m z text $'*\\[koine*\\]*'
  text=${text##*\[}
  print -r -- "${text%%\]*}"
done
zpty -d z`,
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Fatalf("%s is missing: scripts/install-test-tools.sh installs it", shell)
			}
			output, err := exec.CommandContext(t.Context(), shell, "-c", script).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			want := map[string][]string{
				"bash": {"channel", "strict", "remove rename retract"},
				"fish": {"channel", "--names=strict", "remove rename retract"},
				"zsh":  {"koine channel ", "koine serve --names=strict ", "koine channel rename "},
			}[shell]
			if got := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n"); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

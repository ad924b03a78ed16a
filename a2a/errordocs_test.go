package a2a

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

var (
	reasonInRow = regexp.MustCompile("`([A-Z_]+)`")
	numberInRow = regexp.MustCompile(`-?\d+`)
)

// tableOf returns the cells of the first table below a heading of a document, without
// the header.
func tableOf(t *testing.T, file, head string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n"+head+"\n")
	if !ok {
		t.Fatalf("%s has no table %q", file, head)
	}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

// codeOf returns the code behind the reason that clients know.
func codeOf(reason string) kg.Code {
	for code, name := range rename {
		if name == reason && code != kg.CodeAccessChanged { // clients know it as RESYNC
			return code
		}
	}
	return kg.Code(reason)
}

// The table of docs/reference/json-rpc.md is that of the code: the number of each
// reason in updates and subscriptions, and the status of a stream.
func TestErrorsOfTheDocument(t *testing.T) {
	const file = "../docs/reference/json-rpc.md"
	checked := 0
	for _, cells := range tableOf(t, file, "| reason | query | update | subscribe | HTTP when a stream is asked for |") {
		for _, reason := range reasonInRow.FindAllStringSubmatch(cells[0], -1) {
			row, ok := errorTable.Of(codeOf(reason[1]))
			if !ok {
				continue // of the methods themselves, such as TOO_MANY_STREAMS
			}
			for i, f := range map[int]family{2: updates, 3: subscriptions} {
				want := row.rpc
				if want == own {
					want = f.own
				}
				if shown := numberInRow.FindString(cells[i]); shown != "" && shown != strconv.Itoa(want) {
					t.Errorf("%s: %s is %s in column %d, the code has %d", file, reason[1], shown, i+1, want)
				}
				checked++
			}
			if shown := numberInRow.FindString(cells[4]); shown != "" && shown != strconv.Itoa(row.stream) {
				t.Errorf("%s: %s has the status %s, the code has %d", file, reason[1], shown, row.stream)
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d numbers were compared", checked)
	}
}

// The statuses of docs/reference/errors.md are those of a stream that cannot be
// established.
func TestStatusesOfTheDocument(t *testing.T) {
	const file = "../docs/reference/errors.md"
	checked, codes := 0, kgtest.Codes(t, "../kg")
	for _, cells := range tableOf(t, file, "| reason | status | cause | do |") {
		for _, code := range codes {
			row, ok := errorTable.Of(code)
			if !ok || code == kg.CodeDataDirInUse || cells[0] != "`"+string(code)+"`" {
				continue
			}
			if cells[1] != strconv.Itoa(row.stream) {
				t.Errorf("%s: %s has the status %s, the code has %d", file, code, cells[1], row.stream)
			}
			checked++
		}
	}
	// Only opening a store returns DATA_DIR_IN_USE and FORMAT_UNKNOWN, and INTERNAL has no answer.
	if checked != len(codes)-3 {
		t.Errorf("%d of %d statuses were compared", checked, len(codes)-3)
	}
}

// The table of docs/reference/channels.md is that of the code.
func TestChannelErrorsOfTheDocument(t *testing.T) {
	const file = "../docs/reference/channels.md"
	checked := 0
	for _, cells := range tableOf(t, file, "| code | error | reasons | HTTP when a stream is asked for |") {
		for _, reason := range reasonInRow.FindAllStringSubmatch(cells[2], -1) {
			row, ok := channelErrors.Of(codeOf(reason[1]))
			if !ok {
				continue
			}
			want := []int{row.rpc}
			if row.rpc == own {
				want = []int{channelStreams.own, channelCalls.own}
			}
			shown, _ := strconv.Atoi(numberInRow.FindString(cells[0]))
			if shown != want[0] && shown != want[len(want)-1] {
				t.Errorf("%s: %s is %d, the code has %d", file, reason[1], shown, want)
			}
			checked++
		}
	}
	if checked < 25 {
		t.Errorf("%d numbers were compared", checked)
	}
}

package footprint

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Read returns the footprint of a running process.
func Read(pid int) (Footprint, error) {
	var f Footprint
	err := readFields(fmt.Sprintf("/proc/%d/status", pid), map[string]*int64{
		"VmRSS": &f.Resident, "VmHWM": &f.Peak, "RssAnon": &f.Private, "RssFile": &f.Mapped,
	})
	if err != nil {
		return Footprint{}, err
	}
	for _, n := range []*int64{&f.Resident, &f.Peak, &f.Private, &f.Mapped} {
		*n <<= 10 // the file has KiB
	}
	if err := readFields(fmt.Sprintf("/proc/%d/io", pid), map[string]*int64{"write_bytes": &f.Written}); err != nil {
		return Footprint{}, err
	}
	f.Processor, err = readProcessorTime(pid)
	return f, err
}

// readFields reads the first number of each named line of the form "name: number".
func readFields(path string, into map[string]*int64) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	left := len(into)
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		n, ok := into[name]
		if !ok {
			continue
		}
		fields := strings.Fields(value)
		if len(fields) == 0 {
			return fmt.Errorf("%s: %s has no value", path, name)
		}
		if *n, err = strconv.ParseInt(fields[0], 10, 64); err != nil {
			return fmt.Errorf("%s: %s: %w", path, name, err)
		}
		left--
	}
	if left > 0 {
		return fmt.Errorf("%s lacks %d of its fields", path, left)
	}
	return nil
}

// ticks is the number of units of processor time in a second: Linux always has 100.
const ticks = 100

// readProcessorTime reads user and system time of all threads, ended ones included.
func readProcessorTime(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(raw), ") ") // the name of the program may have spaces
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s has %d fields after the name", path, len(fields))
	}
	var sum int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"koine/kg"
)

// historyTime is the time for which history is kept; 0 keeps all of it.
type historyTime time.Duration

// maxHistoryDays keeps the duration within the range of time.Duration.
const maxHistoryDays = 36_500

// UnmarshalText reads "all", a number of days ("30d"), or a Go duration ("36h").
func (h *historyTime) UnmarshalText(text []byte) error {
	if string(text) == "all" {
		*h = 0
		return nil
	}
	var d time.Duration
	var err error
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 64)
		d = time.Duration(min(n, maxHistoryDays+1)) * 24 * time.Hour
	} else {
		d, err = time.ParseDuration(string(text))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is neither all nor a duration such as 30d or 36h", text)
	case d < kg.MinHistory:
		return fmt.Errorf("must be at least %s, not %s", kg.MinHistory, text)
	case d > maxHistoryDays*24*time.Hour:
		return fmt.Errorf("must be at most %dd, or all", maxHistoryDays)
	}
	*h = historyTime(d)
	return nil
}

package main

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// A server lets garbage accumulate, unless GOGC is set.
func TestServerLetsGarbageGather(t *testing.T) {
	for gogc, least := range map[string]int{"": 101, "70": 70} {
		t.Setenv("GOGC", gogc)
		_, url := startServer(t)
		_, text := ask(t, http.MethodGet, url+"/metrics", "ann", "")
		found := regexp.MustCompile(`(?m)^go_gc_gogc_percent (\d+)$`).FindStringSubmatch(text)
		if found == nil {
			t.Fatal("the metrics do not say the percentage")
		}
		if percent, _ := strconv.Atoi(found[1]); percent < least || gogc != "" && percent != least {
			t.Errorf("GOGC=%s: the percentage is %d", gogc, percent)
		}
	}
}

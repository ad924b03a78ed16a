package main

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// A server lets garbage gather, unless GOGC says how much.
func TestServerLetsGarbageGather(t *testing.T) {
	for gogc, least := range map[string]int{"": 101, "70": 70} {
		t.Setenv("GOGC", gogc)
		_, url := startServer(t)
		response, err := http.Get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^go_gc_gogc_percent (\d+)$`).FindSubmatch(text)
		if found == nil {
			t.Fatal("the metrics do not say the percentage")
		}
		if percent, _ := strconv.Atoi(string(found[1])); percent < least || gogc != "" && percent != least {
			t.Errorf("GOGC=%s: the percentage is %d", gogc, percent)
		}
	}
}

package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"koine/cmd/koine/internal/buildinfo"
)

// The metrics name the build: version, commit and date as koine version has them.
func TestMetricsNameTheBuild(t *testing.T) {
	_, url := startServer(t)
	response := get(t, url+"/metrics")
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	b := buildinfo.Current()
	if want := fmt.Sprintf("koine_build_info{commit=%q,date=%q,goversion=%q,version=%q} 1\n", b.Commit, b.Date, runtime.Version(), b.Version); b.Version == "" || !strings.Contains(string(text), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

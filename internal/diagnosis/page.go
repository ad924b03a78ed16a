package diagnosis

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"koine/kg"
)

// Share is a part of the memory with a name.
type Share struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Options are shown beside the records.
type Options struct {
	Version string
	Store   *kg.Store
	Memory  []Share // the table of shares
}

// Report is the content of the page.
type Report struct {
	Version    string        `json:"version"`
	Uptime     time.Duration `json:"uptime"` // nanoseconds
	Statements uint64        `json:"statements"`
	Revision   kg.Revision   `json:"revision"`
	Queue      int           `json:"queueLength"`
	QueueBound int           `json:"queueBound"`
	Refused    kg.Code       `json:"updatesRefused,omitempty"`
	Watchers   int           `json:"watchers"`
	MaxLag     kg.Revision   `json:"watcherLag"`
	Waits      []Wait        `json:"waits"`
	Slowest    []Slow        `json:"slowest"`
	Shares     []Share       `json:"memoryShares"`
	Use        []Share       `json:"memoryUse"`
}

// Wait is the time of updates in a stage since the start.
type Wait struct {
	Name    string        `json:"name"`
	Count   int64         `json:"count"`
	Mean    time.Duration `json:"mean"` // nanoseconds, as the next
	Longest time.Duration `json:"longest"`
	Share   float64       `json:"share"` // of the time of all stages, in percent; of judging, of executing
}

// report returns the present state.
func (r *Recorder) report(o Options) Report {
	now := time.Now()
	s := o.Store.Stats()
	return Report{
		Version: o.Version, Uptime: now.Sub(r.began), Statements: s.Statements, Revision: s.Revision,
		Queue: s.QueueLength, QueueBound: s.QueueBound, Refused: s.Refused, Watchers: s.Watchers, MaxLag: s.MaxLag,
		Waits: r.listWaits(), Slowest: r.slow.listSlowest(now), Shares: o.Memory, Use: readMemory(),
	}
}

func (r *Recorder) listWaits() []Wait {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all time.Duration
	for i := range r.waits[:judgeStage] {
		all += r.waits[i].sum
	}
	list := make([]Wait, len(r.waits))
	for i, w := range r.waits {
		list[i] = Wait{Name: stageNames[i], Count: w.count, Longest: w.longest}
		if w.count > 0 {
			list[i].Mean = w.sum / time.Duration(w.count)
			list[i].Share = 100 * float64(w.sum) / float64(max(all, 1))
		}
	}
	return list
}

// readMemory returns the memory of the process.
func readMemory() []Share {
	names := []struct{ name, metric string }{
		{"live heap after the last collection", "/gc/heap/live:bytes"},
		{"heap until the next collection", "/gc/heap/goal:bytes"},
		{"objects, with garbage", "/memory/classes/heap/objects:bytes"},
		{"free, kept for later", "/memory/classes/heap/free:bytes"},
		{"given back to the system", "/memory/classes/heap/released:bytes"},
		{"stacks", "/memory/classes/heap/stacks:bytes"},
	}
	samples := make([]metrics.Sample, len(names))
	for i := range names {
		samples[i].Name = names[i].metric
	}
	metrics.Read(samples)
	list := make([]Share, len(names))
	for i := range names {
		list[i] = Share{names[i].name, int64(samples[i].Value.Uint64())}
	}
	return list
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes": formatBytes, "duration": formatDuration, "percent": func(f float64) string { return fmt.Sprintf("%.0f %%", f) },
	"clock": func(t time.Time) string { return t.UTC().Format("15:04:05") },
}).Parse(pageText))

func formatBytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
}

func formatDuration(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}

// Handler returns the pages: / in HTML, or in JSON for clients that accept it and as
// /report.json, and the profiles of net/http/pprof below /debug/pprof/.
func (r *Recorder) Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", http.NotFound) // a command line may have secrets
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	writeJSON := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.report(o)) // the client is gone
	}
	mux.HandleFunc("GET /report.json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, req *http.Request) {
		if accept := req.Header.Get("Accept"); strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html") {
			writeJSON(w)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, r.report(o)) // the client is gone
	})
	return onlyLoopback(boundProfiles(mux))
}

// MaxProfile bounds the time that a profile or a trace takes.
const MaxProfile = 5 * time.Minute

// boundProfiles refuses profiles of more than MaxProfile. The body of a request for symbols is a list
// of addresses, and is left to its handler.
func boundProfiles(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/debug/pprof/symbol" {
			if seconds, err := strconv.ParseFloat(req.FormValue("seconds"), 64); err == nil && !(seconds <= MaxProfile.Seconds()) {
				http.Error(w, fmt.Sprintf("seconds must be at most %.0f", MaxProfile.Seconds()), http.StatusBadRequest)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// onlyLoopback refuses requests to hosts that are not loopback ones, and requests of web pages. A
// page may leave out Origin, for example in the request for an image, but not Sec-Fetch-Site.
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		site := req.Header.Get("Sec-Fetch-Site")
		ofPage := req.Header.Get("Origin") != "" || site != "" && site != "none" && site != "same-origin"
		if !isLoopback(req.Host) || ofPage {
			http.Error(w, "this page is for this machine: ask for it by a loopback address", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, req)
	})
}

func isLoopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

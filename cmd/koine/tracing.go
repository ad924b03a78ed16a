package main

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"koine/cmd/koine/internal/buildinfo"
	"koine/cmd/koine/internal/cli"
	"koine/internal/tracing"
)

// tracingFlags configure the export of traces.
type tracingFlags struct {
	OTLPEndpoint string `help:"OpenTelemetry collector to send traces to (OTLP over HTTP). The other OTEL_ variables of the SDK apply as well." name:"otlp-endpoint" env:"KOINE_OTLP_ENDPOINT,OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL"`
}

// tracingCloseTime bounds the export of the last spans at the end.
const tracingCloseTime = 5 * time.Second

// startTracing starts the export of traces; nil unless configured. stop sends the buffered
// spans.
func (f tracingFlags) startTracing(ctx context.Context, log *slog.Logger) (t *tracing.Tracing, stop func(), err error) {
	configured := f.OTLPEndpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	if !configured || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, func() {}, nil
	}
	u, err := url.Parse(f.OTLPEndpoint)
	if f.OTLPEndpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, nil, cli.Usagef("--otlp-endpoint must be a URL such as http://127.0.0.1:4318")
	}
	t, err = tracing.New(ctx, tracing.Options{Endpoint: f.OTLPEndpoint, Version: buildinfo.Version(), Logger: log})
	if err != nil {
		return nil, nil, cli.Usagef("traces: %w", err)
	}
	return t, func() {
		ctx, cancel := context.WithTimeout(context.Background(), tracingCloseTime)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			log.Warn("the last traces could not be sent", "error", err)
		}
	}, nil
}

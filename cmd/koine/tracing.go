package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"koine/internal/tracing"
)

// tracingFlags say where traces are sent.
type tracingFlags struct {
	OTLPEndpoint string `help:"Send OpenTelemetry traces to this collector (OTLP over HTTP); OTEL_EXPORTER_OTLP_HEADERS gives it headers." name:"otlp-endpoint" env:"KOINE_OTLP_ENDPOINT,OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL"`
}

// tracingCloseTime bounds how long the last spans may take to be sent.
const tracingCloseTime = 5 * time.Second

// tracing starts to send traces; nil if nobody asked for them. stop sends what
// waits.
func (f tracingFlags) tracing(log *slog.Logger) (t *tracing.Tracing, stop func(), err error) {
	if f.OTLPEndpoint == "" {
		return nil, func() {}, nil
	}
	u, err := url.Parse(f.OTLPEndpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, usageError{fmt.Errorf("--otlp-endpoint is an address such as http://127.0.0.1:4318")}
	}
	t = tracing.New(tracing.Options{Endpoint: f.OTLPEndpoint, Headers: otlpHeaders(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS")),
		Service: os.Getenv("OTEL_SERVICE_NAME"), Version: versionText(), Logger: log})
	return t, func() {
		ctx, cancel := context.WithTimeout(context.Background(), tracingCloseTime)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			log.Warn("the last traces were not sent", "error", err)
		}
	}, nil
}

// otlpHeaders reads name=value,name=value, percent-encoded, as OpenTelemetry
// has it.
func otlpHeaders(text string) map[string]string {
	headers := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if decoded, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			headers[strings.TrimSpace(name)] = decoded
		}
	}
	return headers
}

module github.com/r3labs/sse/v2

go 1.24.0

require gopkg.in/cenkalti/backoff.v1 v1.1.0

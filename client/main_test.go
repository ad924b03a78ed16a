package client_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"koine/client"
	"koine/internal/servertest"
)

// patience bounds the time of a test for immediate events.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { servertest.Main(m) }

func open(t *testing.T, url, agent string) *client.Client {
	t.Helper()
	c, err := client.Open(t.Context(), url, client.Options{Agent: agent, Retry: client.Retry{MinWait: 10 * time.Millisecond, MaxWait: 100 * time.Millisecond, Attempts: -1, OnRetry: func(err error, _ time.Duration) { t.Log("retrying: ", err) }}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T) *servertest.Server { return servertest.Start(t, "--demo") }

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// numberOf is a number as a change has it.
func numberOf(value any) int {
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		return -1
	}
	return n
}

package webhook_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/webhook"
)

func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		rounds := 0
		webhook.RunEvery(ctx, time.Second, func(context.Context) { rounds++ })
		if rounds != 3 {
			t.Errorf("%d rounds", rounds)
		}
	})
}

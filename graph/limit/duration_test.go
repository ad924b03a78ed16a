package limit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"koine/graph/limit"
)

// A context of a duration ends as one of context.WithTimeout does, whether its end is asked for
// or awaited.
func TestWithDuration(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	defer cancel()
	for _, row := range []struct {
		name  string
		d     time.Duration
		end   func(stop func())
		want  error
		waits bool
	}{
		{"not yet", time.Hour, func(func()) {}, nil, false},
		{"over", -time.Second, func(func()) {}, context.DeadlineExceeded, true},
		{"stopped", time.Hour, func(stop func()) { stop() }, context.Canceled, true},
		{"stopped twice", time.Hour, func(stop func()) { stop(); stop() }, context.Canceled, true},
		{"in a moment", time.Millisecond, func(func()) {}, context.DeadlineExceeded, true},
		{"with its parent", time.Hour, func(func()) { cancel() }, context.Canceled, true},
	} {
		for _, early := range []bool{false, true} {
			ctx, stop := limit.WithDuration(parent, row.d)
			std, stopStd := context.WithTimeout(parent, row.d)
			if early {
				ctx.Done()
			}
			row.end(stop)
			row.end(stopStd)
			if row.waits {
				<-ctx.Done()
				<-std.Done()
			}
			if err := ctx.Err(); !errors.Is(err, row.want) || !errors.Is(std.Err(), row.want) {
				t.Errorf("%s: %v, and of the standard library %v", row.name, err, std.Err())
			}
			if at, ok := ctx.Deadline(); !ok || time.Until(at) > row.d {
				t.Errorf("%s: it ends at %v, %t", row.name, at, ok)
			}
			if ctx.Value(key{}) != "value" {
				t.Errorf("%s: the value of the parent is missing", row.name)
			}
			child, leave := context.WithCancel(ctx)
			if row.waits {
				<-child.Done()
			} else if child.Err() != nil {
				t.Errorf("%s: a child has ended: %v", row.name, child.Err())
			}
			leave()
			stop()
			stopStd()
			<-ctx.Done()
		}
	}
}

// Nobody needs to await the end: it is there when the time has come.
func TestWithDurationEndsUnawaited(t *testing.T) {
	ctx, stop := limit.WithDuration(t.Context(), time.Millisecond)
	defer stop()
	for ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	soon, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ctx, stop = limit.WithDuration(soon, time.Hour)
	defer stop()
	if at, _ := ctx.Deadline(); time.Until(at) > time.Minute {
		t.Errorf("it ends after its parent, at %v", at)
	}
}

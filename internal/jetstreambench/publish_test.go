package jetstreambench

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

var messages = flag.Int("messages", 4000, "how many messages 16 and 128 publishers publish in a round; one publishes a quarter of them")

// BenchmarkPublish publishes messages to channels, and messages of the same size to
// JetStream, a stream for each channel, in turns: both number the messages, and answer when
// they are stored. JetStream syncs each message, and in a third turn with its default,
// every two minutes.
func BenchmarkPublish(b *testing.B) {
	for _, count := range []int{1, 128} {
		for _, publishers := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("channels=%d/publishers=%d", count, publishers), func(b *testing.B) {
				n := *messages
				if publishers == 1 {
					n /= 4
				}
				benchPublish(b, count, publishers, n)
			})
		}
	}
}

func benchPublish(b *testing.B, count, publishers, n int) {
	sides := [...]func() spent{
		func() spent { return publishKoine(b, count, publishers, n) },
		func() spent { return publishJetStream(b, count, publishers, n, true) },
		func() spent { return publishJetStream(b, count, publishers, n, false) },
	}
	var sums [len(sides)]spent
	for round := range b.N {
		for i := range sides {
			i = (i + round) % len(sides)
			s := sides[i]()
			sums[i].elapsed += s.elapsed
			sums[i].processor += s.processor
		}
	}
	rate := func(i int) float64 { return float64(n*b.N) / sums[i].elapsed.Seconds() }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate(0), "messages/s")
	b.ReportMetric(rate(1), "always-messages/s")
	b.ReportMetric(rate(2), "default-messages/s")
	b.ReportMetric(rate(0)/rate(1), "ratio-always")
	b.ReportMetric(rate(0)/rate(2), "ratio-default")
	b.ReportMetric(float64(sums[0].processor.Microseconds())/float64(n*b.N), "cpu-µs/message")
	b.ReportMetric(float64(sums[1].processor.Microseconds())/float64(n*b.N), "always-cpu-µs/message")
}

// spent is the cost of a side.
type spent struct{ elapsed, processor time.Duration }

// spend measures the work, without the remains of another side in memory and on their way
// to the disk.
func spend(publishers, n int, work func(i int) error) spent {
	runtime.GC()
	syscall.Sync()
	before := processorTime()
	elapsed := timed(publishers, n, work)
	return spent{elapsed, processorTime() - before}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// parts are those of message i, of a length that is usual in a conversation.
func parts(i int) []json.RawMessage {
	return []json.RawMessage{fmt.Appendf(nil, `{"type":"text","text":"message %d: %s"}`, i, bytes.Repeat([]byte("words of it "), 20))}
}

func publishKoine(b *testing.B, count, publishers, n int) spent {
	service := channels.New(channels.Options{})
	s, err := kg.Open(b.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: service.Guard(kg.AllowAll{}), OnSystemChange: service.Follow}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	if err := service.Load(ctx, s); err != nil {
		b.Fatal(err)
	}
	defer service.Close()
	ann := channels.Caller{Principal: kg.Principal{ID: "urn:koine:agent:ann"}}
	ids := make([]channel.ID, count)
	for i := range ids {
		c, err := service.Create(ctx, ann, channel.Draft{Name: fmt.Sprint(i), Visibility: channel.Private})
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = c.ID
	}
	return spend(publishers, n, func(i int) error {
		_, err := service.Publish(ctx, ann, channels.Publication{Channel: ids[i%count], Parts: parts(i)})
		return err
	})
}

func publishJetStream(b *testing.B, count, publishers, n int, always bool) spent {
	js, shut := openJetStream(b, always)
	defer shut()
	subjects := make([]string, count)
	for i := range subjects {
		subjects[i] = fmt.Sprintf("channel%d", i)
		if _, err := js.AddStream(&nats.StreamConfig{Name: subjects[i], Subjects: subjects[i : i+1], Storage: nats.FileStorage}); err != nil {
			b.Fatal(err)
		}
	}
	return spend(publishers, n, func(i int) error {
		raw, err := json.Marshal(map[string]any{
			"id": fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i), "channelId": subjects[i%count], "author": "urn:koine:agent:ann",
			"timestamp": time.Now().UnixMilli(), "parts": parts(i), "kind": "messageEvent",
		})
		if err != nil {
			return err
		}
		_, err = js.Publish(subjects[i%count], raw)
		return err
	})
}

package wal

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Encoder and decoder are shared by all logs of the process: their EncodeAll and
// DecodeAll may run concurrently, and each holds megabytes of tables.
// zstd's own checksum is left out, the frame has one.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // constant options
	}
	return e
})

var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(0),
		zstd.WithDecoderMaxMemory(MaxPayloadBytes),
		zstd.WithDecodeAllCapLimit(true)) // never grow past the announced size
	if err != nil {
		panic(err) // constant options
	}
	return d
})

func compress(dst, payload []byte) []byte {
	return zstdEncoder().EncodeAll(payload, dst)
}

// decompress decompresses into room if it is large enough, or allocates want bytes, a
// number that the caller has bounded.
func decompress(stored []byte, want int, room []byte) ([]byte, error) {
	if cap(room) < want {
		room = make([]byte, 0, want)
	}
	out, err := zstdDecoder().DecodeAll(stored, room[:0])
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if len(out) != want {
		return nil, fmt.Errorf("zstd: %d bytes, %d announced", len(out), want)
	}
	return out, nil
}

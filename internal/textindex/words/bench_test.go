package words_test

import (
	"testing"

	"koine/internal/textindex/words"
)

func BenchmarkDetect(b *testing.B) {
	for b.Loop() {
		words.Detect("The dried cells keep more of their capacity after a hundred cycles than the others.")
	}
}

func BenchmarkStem(b *testing.B) {
	for b.Loop() {
		words.English.Stem("implementation")
	}
}

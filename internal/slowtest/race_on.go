//go:build race

package slowtest

const raceDetector = true

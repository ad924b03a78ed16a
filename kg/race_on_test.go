//go:build race

package kg_test

const withRaceDetector = true

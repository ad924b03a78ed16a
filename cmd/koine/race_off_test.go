//go:build !race

package main

// withRaceDetector tells whether the tests run with the race detector, with which some take
// many minutes: .ci/run runs those without it.
const withRaceDetector = false

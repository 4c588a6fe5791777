//go:build race

package fawn_test

// underRace says that the race detector watches.
const underRace = true

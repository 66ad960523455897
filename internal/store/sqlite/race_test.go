//go:build race

package sqlite

// raceEnabled: the race detector makes SQLite some ten times slower, so the
// crash tests look at fewer crashes under it.
const raceEnabled = true

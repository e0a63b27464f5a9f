package millstream

import "fmt"

// Level is how important a line of log is.
type Level uint32

// The levels.
const (
	Error Level = iota // something failed
	Warn               // something is odd
	Info               // for the operator
	Debug              // for the plugin's author
	Trace              // for the plugin's author, in bulk
)

// Log writes one line to the operator's log; the host limits how much one call may write. In tests nothing is written.
func Log(level Level, format string, values ...any) { write(level, fmt.Sprintf(format, values...)) }

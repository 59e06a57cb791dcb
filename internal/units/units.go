// Package units reads the quantities that people write in the daemons' files and
// as flags. It keeps nothing, and knows no bounds but those of the grammar.
package units

import (
	"errors"
	"time"

	"gbatch/internal/job/times"
)

var errLong = errors.New("must not be longer than 3650 days")

// ParseDuration reads a length of time in the grammar of job files, as "5 minutes",
// "1.5 h", "2 weeks", "1d", "1h30m" or "2:00:00", and with Go's units below a second.
// "0" is none, for what can be switched off.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		s, err := times.ParseDuration(text)
		return time.Duration(s) * time.Second, err
	case d > time.Duration(times.MaxDuration)*time.Second:
		return 0, errLong
	}
	return d, nil
}

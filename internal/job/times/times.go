// Package times has lengths of time and moments as job files and command lines write them.
// It is pure: it knows no clock.
package times

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in seconds. Its text is the grammar of all files and
// commands: numbers with units, such as "90 minutes", "1.5 h", "2 weeks", "1d" or
// "1h30m", or as Slurm writes them with colons or days, "2:00:00" or "1-12".
type Duration int64

// MaxDuration is the longest Duration that a document may ask for.
const MaxDuration Duration = 3650 * 86400

var durationUnits = []struct {
	seconds Duration
	names   []string // the singular for printing is the first
}{
	{604800, []string{"week", "weeks", "w"}},
	{86400, []string{"day", "days", "d"}},
	{3600, []string{"hour", "hours", "h"}},
	{60, []string{"minute", "minutes", "min", "mins", "m"}},
	{1, []string{"second", "seconds", "sec", "secs", "s"}},
}

// What is wrong with a text.
var (
	ErrDuration = errors.New(`want a number and a unit, such as "90 minutes", "1.5 h" or "2 weeks"`)
	errNoTime   = errors.New("must be longer than zero")
	errTooLong  = errors.New("must not be longer than 3650 days")
)

// ParseDuration reads a duration above zero. Parts of a second are rounded up.
func ParseDuration(text string) (Duration, error) {
	if strings.ContainsAny(text, ":-") {
		d, limited, err := ParseTimeLimit(text)
		switch {
		case err != nil:
			return 0, ErrDuration
		case !limited:
			return 0, errNoTime
		}
		return d, nil
	}
	var seconds float64
	for rest, first := text, true; first || rest != ""; first = false {
		if !first {
			rest = strings.TrimLeft(rest, " ")
		}
		x, unit, after, err := durationPart(rest)
		if err != nil {
			return 0, err
		}
		seconds, rest = seconds+x*float64(unit), after
	}
	switch s := math.Ceil(seconds); {
	case s < 1:
		return 0, errNoTime
	case s > float64(MaxDuration):
		return 0, errTooLong
	default:
		return Duration(s), nil
	}
}

// durationPart reads a number and its unit.
func durationPart(text string) (x float64, unit Duration, rest string, err error) {
	word := strings.TrimLeft(text, "0123456789.")
	if x, err = strconv.ParseFloat(text[:len(text)-len(word)], 64); err != nil {
		return 0, 0, "", ErrDuration
	}
	word = strings.ToLower(strings.TrimLeft(word, " "))
	rest = strings.TrimLeft(word, "abcdefghijklmnopqrstuvwxyz")
	for _, u := range durationUnits {
		if slices.Contains(u.names, word[:len(word)-len(rest)]) {
			return x, u.seconds, rest, nil
		}
	}
	return 0, 0, "", ErrDuration
}

// String is the duration in the largest unit that gives a whole number.
func (d Duration) String() string {
	for _, u := range durationUnits {
		if n := int64(d / u.seconds); d != 0 && d%u.seconds == 0 {
			if n == 1 {
				return "1 " + u.names[0]
			}
			return strconv.FormatInt(n, 10) + " " + u.names[1]
		}
	}
	return "0 seconds"
}

// MarshalText is String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDuration.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}

// Instant is a moment in Unix milliseconds; 0 is none. Its text is RFC 3339.
type Instant int64

// ErrInstant is what is wrong with a text that is no moment.
var ErrInstant = errors.New(`want a date and time with its zone (RFC 3339), such as "2026-03-01T09:00:00+01:00" or "2026-03-01T08:00:00Z"`)

// ParseInstant reads an RFC 3339 time after 1970. Parts of a millisecond are
// dropped.
func ParseInstant(text string) (Instant, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, ErrInstant
	}
	if t.UnixMilli() <= 0 || t.UTC().Year() > 9999 {
		return 0, errors.New("must be after 1970 and before 10000")
	}
	return Instant(t.UnixMilli()), nil
}

// String is the instant in UTC, empty for none.
func (i Instant) String() string {
	if i == 0 {
		return ""
	}
	return time.UnixMilli(int64(i)).UTC().Format(time.RFC3339Nano)
}

// MarshalText is String.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText is ParseInstant; empty text is none.
func (i *Instant) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*i = 0
		return nil
	}
	*i, err = ParseInstant(string(text))
	return err
}

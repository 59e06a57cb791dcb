package job

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in seconds. Its text is the job file's grammar:
// a decimal number and a unit, such as "90 minutes", "1.5 h" or "2 weeks".
type Duration int64

// MaxDuration is the longest Duration that a document may ask for.
const MaxDuration Duration = 3650 * 86400

var durationUnits = []struct {
	seconds Duration
	names   []string // the singular for printing is the first
}{
	{604800, []string{"week", "weeks"}},
	{86400, []string{"day", "days"}},
	{3600, []string{"hour", "hours", "h"}},
	{60, []string{"minute", "minutes", "min", "mins", "m"}},
	{1, []string{"second", "seconds", "sec", "secs", "s"}},
}

var errDuration = errors.New(`want a number and a unit, such as "90 minutes", "1.5 h" or "2 weeks"`)

// ParseDuration reads a duration above zero. Parts of a second are rounded up.
func ParseDuration(text string) (Duration, error) {
	digits := 0
	for digits < len(text) && (isDigit(text[digits]) || text[digits] == '.') {
		digits++
	}
	number, unit := text[:digits], strings.ToLower(strings.TrimLeft(text[digits:], " "))
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, errDuration
	}
	for _, u := range durationUnits {
		for _, name := range u.names {
			if name != unit {
				continue
			}
			switch s := math.Ceil(x * float64(u.seconds)); {
			case s < 1:
				return 0, errors.New("must be longer than zero")
			case s > float64(MaxDuration):
				return 0, errors.New("must not be longer than 3650 days")
			default:
				return Duration(s), nil
			}
		}
	}
	return 0, errDuration
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

var errInstant = errors.New(`want a date and time with its zone (RFC 3339), such as "2026-03-01T09:00:00+01:00" or "2026-03-01T08:00:00Z"`)

// parseInstant reads an RFC 3339 time after 1970. Parts of a millisecond are
// dropped.
func parseInstant(text string) (Instant, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, errInstant
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

// UnmarshalText is parseInstant; empty text is none.
func (i *Instant) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*i = 0
		return nil
	}
	*i, err = parseInstant(string(text))
	return err
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes s safe for a terminal and for one line: control characters,
// characters that reorder text, and bytes that are no UTF-8 are written as
// escapes.
func clean(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isUnsafe(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cleanLines is clean for text of several lines.
func cleanLines(s string) string {
	if isPlain(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = clean(l)
	}
	return strings.Join(lines, "\n")
}

// isPlain says that s is printable ASCII.
func isPlain[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isUnsafe names what a terminal acts on or what changes the order of text
// (unicode.Cf holds the bidirectional controls).
func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// slurmDuration writes whole seconds as Slurm does: 0:03, 40:00, 1:20:00,
// 1-02:03:04.
func slurmDuration(b []byte, secs int64) []byte {
	secs = max(secs, 0)
	d, h, m, s := secs/86400, secs/3600%24, secs/60%60, secs%60
	pad := false
	part := func(v int64, sep byte) {
		if pad && v < 10 {
			b = append(b, '0')
		}
		b = strconv.AppendInt(b, v, 10)
		if sep != 0 {
			b = append(b, sep)
		}
		pad = true
	}
	if d > 0 {
		part(d, '-')
	}
	if d > 0 || h > 0 {
		part(h, ':')
	}
	part(m, ':')
	part(s, 0)
	return b
}

// shortDuration is one number and a unit, for relative times: 12s, 5m, 3h, 2d.
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// relTime is when seen from now: "in 5m", "3h ago", "now".
func relTime(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d >= time.Second:
		return "in " + shortDuration(d)
	case d <= -time.Second:
		return shortDuration(-d) + " ago"
	}
	return "now"
}

const isoTime = "2006-01-02T15:04:05"

// moment is a time in the form that the user chose; "-" if there is none.
func (a *App) moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	if a.Output.ISO {
		return t.Local().Format(isoTime)
	}
	return relTime(t, a.Now())
}

// sizeText writes bytes as Slurm does, without a blank: 512M, 32G, 1.5T.
func sizeText(b []byte, n int64) []byte {
	if n <= 0 {
		return append(b, '-')
	}
	value, unit := float64(n)/(1<<20), byte('M')
	if value >= 1024*1024 {
		value, unit = value/(1024*1024), 'T'
	} else if value >= 1024 {
		value, unit = value/1024, 'G'
	}
	decimals := 1
	if value == float64(int64(value)) {
		decimals = 0
	}
	return append(strconv.AppendFloat(b, value, 'f', decimals, 64), unit)
}

// number writes GPUs: 2, or 0.5.
func number(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'f', -1, 64) }

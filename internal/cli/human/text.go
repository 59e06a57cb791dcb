// Package human is how the commands write things for people: text from
// elsewhere without what a terminal would act on, lengths, times, sizes and
// lists of nodes; and how they read the times and nodes that people type. It
// reads no clock.
package human

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Clean makes s safe for a terminal and for one line: control characters,
// characters that reorder text, and bytes that are no UTF-8 are written as
// escapes.
func Clean(s string) string {
	if IsPlain(s) {
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

// CleanLines is Clean for text of several lines.
func CleanLines(s string) string {
	if IsPlain(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Clean(l)
	}
	return strings.Join(lines, "\n")
}

// IsPlain says that s is printable ASCII.
func IsPlain[T string | []byte](s T) bool {
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

// Duration writes whole seconds as Slurm does: 0:03, 40:00, 1:20:00,
// 1-02:03:04.
func Duration(b []byte, secs int64) []byte {
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

// nearest is a time to come in whole numbers of the unit that it is told in: 119
// minutes are two hours rather than one.
func nearest(d time.Duration) time.Duration {
	switch {
	case d < time.Minute:
		return d
	case d < time.Hour:
		return d.Round(time.Minute)
	case d < 48*time.Hour:
		return d.Round(time.Hour)
	}
	return d.Round(24 * time.Hour)
}

// Ago is when seen from now: "in 5m", "3h ago", "now".
func Ago(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d >= time.Second:
		return "in " + shortDuration(nearest(d))
	case d <= -time.Second:
		return shortDuration(-d) + " ago"
	}
	return "now"
}

const ISO = "2006-01-02T15:04:05"

// Size writes bytes as Slurm does, without a blank: 512M, 32G, 1.5T.
func Size(b []byte, n int64) []byte {
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

// Number writes GPUs: 2, or 0.5.
func Number(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'f', -1, 64) }

// Width is how many columns of a terminal s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth takes lines and blocks for narrow in all locales.
func runeWidth(r rune) int {
	if r >= 0x2500 && r <= 0x259f {
		return 1
	}
	return runewidth.RuneWidth(r)
}

// Trim is the beginning of s that fits into width columns.
func Trim(s string, width int) string {
	for i, r := range s {
		if width -= runeWidth(r); width < 0 {
			return s[:i]
		}
	}
	return s
}

// Cut shortens s to width columns, with a mark that it did.
func Cut(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	return Trim(s, max(width-1, 0)) + "…"
}

// OrDash writes s, or a dash where there is none.
func OrDash(b []byte, s string) []byte { return append(b, cmp.Or(s, "-")...) }

// Budget is how much of a budget of GPU-hours is used, and of which period.
func Budget(used, hours float64, monthly bool) string {
	text := fmt.Sprintf("%.1f of %.1f h", used, hours)
	if hours > 0 {
		text += fmt.Sprintf(" (%.0f%%)", 100*used/hours)
	}
	if monthly {
		text += " this month"
	}
	return text
}

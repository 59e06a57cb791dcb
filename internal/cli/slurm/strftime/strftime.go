// Package strftime writes times in the forms that SLURM_TIME_FORMAT has: those of
// the C library's function of that name, and short ones for days that are near.
package strftime

import (
	"fmt"
	"strings"
	"time"
)

// Format writes a time in the form of the function of C, in the words of its
// default locale. What it does not know stands as it was written, as with glibc.
func Format(form string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		from := i
		if form[i] != '%' {
			b.WriteByte(form[i])
			continue
		}
		pad := byte(0)
		for i++; i < len(form) && strings.IndexByte("-_0", form[i]) >= 0; i++ {
			pad = form[i]
		}
		if i < len(form) && (form[i] == 'E' || form[i] == 'O') { // other words of a locale, which this one has not
			i++
		}
		if i == len(form) {
			return b.String() + form[from:]
		}
		letter := form[i]
		switch {
		case numbers[letter].of != nil:
			b.WriteString(numbers[letter].text(t, pad))
		case layouts[letter] != "":
			b.WriteString(t.Format(layouts[letter]))
		case shorthands[letter] != "":
			b.WriteString(Format(shorthands[letter], t))
		case strings.IndexByte("%nt", letter) >= 0:
			b.WriteString(map[byte]string{'%': "%", 'n': "\n", 't': "\t"}[letter])
		default:
			b.WriteString(form[from : i+1])
		}
	}
	return b.String()
}

// layouts are the letters that Go's form of times has a word for, shorthands those
// that stand for others.
var (
	layouts    = map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'p': "PM", 'P': "pm", 'z': "-0700", 'Z': "MST"}
	shorthands = map[byte]string{'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'r': "%I:%M:%S %p", 'R': "%H:%M", 'T': "%H:%M:%S", 'x': "%m/%d/%y", 'X': "%H:%M:%S"}
)

// numeral is a letter that stands for a number, which has at least so many digits.
type numeral struct {
	digits int
	pad    byte // in front of a shorter one; 0: a zero
	of     func(t time.Time) int
}

func (n numeral) text(t time.Time, pad byte) string {
	if pad == 0 {
		pad = n.pad
	}
	switch value := n.of(t); pad {
	case '-':
		return fmt.Sprint(value)
	case '_':
		return fmt.Sprintf("%*d", n.digits, value)
	default:
		return fmt.Sprintf("%0*d", n.digits, value)
	}
}

var numbers = map[byte]numeral{
	'C': {2, 0, func(t time.Time) int { return t.Year() / 100 }},
	'd': {2, 0, time.Time.Day},
	'e': {2, '_', time.Time.Day},
	'g': {2, 0, func(t time.Time) int { year, _ := t.ISOWeek(); return year % 100 }},
	'G': {1, 0, func(t time.Time) int { year, _ := t.ISOWeek(); return year }},
	'H': {2, 0, time.Time.Hour},
	'I': {2, 0, func(t time.Time) int { return (t.Hour()+11)%12 + 1 }},
	'j': {3, 0, time.Time.YearDay},
	'k': {2, '_', time.Time.Hour},
	'l': {2, '_', func(t time.Time) int { return (t.Hour()+11)%12 + 1 }},
	'm': {2, 0, func(t time.Time) int { return int(t.Month()) }},
	'M': {2, 0, time.Time.Minute},
	's': {1, 0, func(t time.Time) int { return int(t.Unix()) }},
	'S': {2, 0, time.Time.Second},
	'u': {1, 0, func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }},
	'U': {2, 0, func(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }},
	'V': {2, 0, func(t time.Time) int { _, week := t.ISOWeek(); return week }},
	'w': {1, 0, func(t time.Time) int { return int(t.Weekday()) }},
	'W': {2, 0, func(t time.Time) int { return (t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7 }},
	'y': {2, 0, func(t time.Time) int { return t.Year() % 100 }},
	'Y': {1, 0, time.Time.Year},
}

// Relative names a day the shorter the nearer it is.
func Relative(t, now time.Time) string {
	date := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	switch days := int(date(t).Sub(date(now)).Hours() / 24); {
	case days == 0:
		return t.Format("15:04:05")
	case days == 1:
		return t.Format("Tomorr 15:04")
	case days == -1:
		return t.Format("Ystday 15:04")
	case days > 1 && days < 7:
		return t.Format("Mon 15:04")
	case t.Year() != now.Year():
		return t.Format("2 Jan 2006")
	}
	return t.Format("2 Jan 15:04")
}

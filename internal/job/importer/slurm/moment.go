package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/times"
	"gbatch/internal/units"
)

// moment is a time of which Slurm's words and numbers say parts: a day, a time of the
// day, or both, in any order, with blanks, - or T between.
type moment struct {
	hour, minute, second int
	clock                bool // these are known
	year, month, day     int
	dated                bool // month and day are known; the year may be 0
}

var errMoment = errors.New("want YYYY-MM-DD[THH:MM[:SS]], MM/DD[/YY], HH:MM, now+1hour, +2h30m, today, tomorrow, midnight, noon, teatime, or a day and a time as 12/25-08:30 or \"tomorrow 10:00\"")

// begin reads the time a job may begin at, as Slurm has it, and as our other flags do.
func begin(s string, o Options) (job.Instant, error) {
	zone := cmp.Or(o.Zone, time.UTC)
	now := time.UnixMilli(int64(o.Now)).In(zone)
	if n, err := strconv.ParseInt(strings.TrimPrefix(s, "uts"), 10, 40); err == nil && strings.HasPrefix(s, "uts") && n >= 1_000_000 {
		return job.Instant(n * 1000), nil
	}
	wrong := errMoment
	switch after, plus := strings.CutPrefix(s, "now+"); {
	case s == "now":
		return 0, nil
	case o.Now > 0 && plus:
		d, err := span(after)
		if err == nil {
			return job.Instant(now.Add(d).UnixMilli()), nil
		}
		wrong = err // but now+2h30m is our own form
	case o.Now > 0 && strings.HasPrefix(s, "now-"):
		d, err := span(s[len("now-"):])
		return job.Instant(now.Add(-d).UnixMilli()), err
	}
	var m moment
	if ok := m.read(s, now); ok && (o.Now > 0 || m.dated && m.year > 0) {
		return job.Instant(m.at(now).UnixMilli()), nil
	}
	if o.Now == 0 {
		return 0, errors.New("is a time on the clock, and the time now is not known: want YYYY-MM-DDTHH:MM:SS")
	}
	at, err := units.ParseComing(s, now, zone)
	if t, other := time.Parse("3PM", strings.ToUpper(s)); other == nil {
		m = moment{hour: t.Hour(), clock: true}
		at, err = m.at(now), nil
	}
	switch {
	case err != nil:
		return 0, wrong
	case at.Sub(now) > time.Duration(times.MaxDuration)*time.Second:
		return 0, errors.New("is more than 3650 days away")
	}
	return job.Instant(at.UnixMilli()), nil
}

// read takes a text apart. What is said twice counts as it is said last.
func (m *moment) read(s string, now time.Time) bool {
	clock := regexp.MustCompile(`^(\d{1,2}):(\d\d)(?::(\d\d))?\s*((?i:[ap]m))?`) // here: commands that read no such time start without them
	iso := regexp.MustCompile(`^(\d{4})-(\d\d)-(\d\d?)`)
	short := regexp.MustCompile(`^(\d\d?)[./]?(\d\d?)[./]?(\d\d)?`)
	for {
		if s = strings.TrimLeft(s, " \t-T"); s == "" {
			return m.clock || m.dated
		}
		rest, ok := m.word(s, now)
		if f := clock.FindStringSubmatch(s); !ok && f != nil {
			rest, ok = s[len(f[0]):], m.setClock(number(f[1]), number(f[2]), number(f[3]), strings.ToLower(f[4]))
		} else if f := iso.FindStringSubmatch(s); !ok && f != nil {
			rest, ok = s[len(f[0]):], m.setDay(number(f[1]), number(f[2]), number(f[3]))
		} else if f := short.FindStringSubmatch(s); !ok && f != nil {
			year := 0
			if f[3] != "" {
				year = 2000 + number(f[3])
			}
			rest, ok = s[len(f[0]):], m.setDay(year, number(f[1]), number(f[2]))
		}
		if !ok {
			return false
		}
		s = rest
	}
}

// number is that of digits; of none it is 0.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// word takes a word for a day or a time off the front of a text.
func (m *moment) word(s string, now time.Time) (rest string, ok bool) {
	for word, hour := range map[string]int{"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16, "today": -1, "tomorrow": -1} { // none begins as another does
		if len(s) < len(word) || !strings.EqualFold(s[:len(word)], word) {
			continue
		}
		if hour >= 0 {
			return s[len(word):], m.setClock(hour, 0, 0, "")
		}
		day := now
		if word == "tomorrow" {
			day = now.AddDate(0, 0, 1)
		}
		return s[len(word):], m.setDay(day.Year(), int(day.Month()), day.Day())
	}
	return s, false
}

func (m *moment) setClock(hour, minute, second int, half string) bool {
	if hour > 23 || minute > 59 || second > 59 || half != "" && hour > 12 {
		return false
	}
	switch {
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	m.hour, m.minute, m.second, m.clock = hour, minute, second, true
	return true
}

func (m *moment) setDay(year, month, day int) bool {
	m.year, m.month, m.day, m.dated = year, month, day, true
	return month >= 1 && month <= 12 && day >= 1 && day <= 31
}

// at is the next time that it is so: a time alone is of today or tomorrow, a day without
// its year of this year or the next, and begins at midnight.
func (m *moment) at(now time.Time) time.Time {
	on := func(year, month, day int) time.Time {
		return time.Date(year, time.Month(month), day, m.hour, m.minute, m.second, 0, now.Location())
	}
	minute := now.Truncate(time.Minute)
	switch {
	case !m.dated:
		at := on(now.Year(), int(now.Month()), now.Day())
		if !at.Truncate(time.Minute).After(minute) {
			at = on(now.Year(), int(now.Month()), now.Day()+1)
		}
		return at
	case m.year == 0:
		at := on(now.Year(), m.month, m.day)
		if !at.Truncate(time.Minute).After(minute) {
			at = on(now.Year()+1, m.month, m.day)
		}
		return at
	}
	return on(m.year, m.month, m.day)
}

// span reads a number with a unit, seconds if there is none.
func span(s string) (time.Duration, error) {
	digits := strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' })
	unit := ""
	if digits >= 0 {
		s, unit = s[:digits], strings.TrimSuffix(s[digits:], "s")
	}
	n, err := wholeNumber(s)
	if err != nil {
		return 0, errors.New("want now+NUMBER and seconds, minutes, hours, days or weeks")
	}
	lengths := map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}
	if length := lengths[unit]; length > 0 {
		if n > int64(times.MaxDuration)*int64(time.Second)/int64(length) {
			return 0, errors.New("is more than 3650 days away")
		}
		return time.Duration(n) * length, nil
	}
	return 0, fmt.Errorf("has a unit %s: want seconds, minutes, hours, days or weeks", document.Quote(unit))
}

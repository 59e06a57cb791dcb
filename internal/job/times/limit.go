package times

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParseTimeLimit reads a length of time as Slurm does: minutes, minutes:seconds,
// hours:minutes:seconds, days-hours, days-hours:minutes or
// days-hours:minutes:seconds. ok is false for an unlimited one.
func ParseTimeLimit(s string) (d Duration, ok bool, err error) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE", "-1", "0":
		return 0, false, nil
	}
	days, rest, withDays := strings.Cut(s, "-")
	if !withDays {
		days, rest = "0", s
	}
	if withDays && rest == "" {
		rest = "0"
	}
	parts := strings.Split(rest, ":")
	n := make([]int64, len(parts)+1)
	for i, p := range append([]string{days}, parts...) {
		if n[i], err = limitPart(p); err != nil {
			return 0, false, errors.New("want MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS, DAYS-HOURS:MINUTES or DAYS-HOURS:MINUTES:SECONDS")
		}
	}
	var seconds int64
	switch v := n[1:]; {
	case withDays && len(v) <= 3:
		v = append(v, 0, 0)
		seconds = n[0]*86400 + v[0]*3600 + v[1]*60 + v[2]
	case len(v) == 1:
		seconds = v[0] * 60
	case len(v) == 2:
		seconds = v[0]*60 + v[1]
	case len(v) == 3:
		seconds = v[0]*3600 + v[1]*60 + v[2]
	default:
		return 0, false, errors.New("has too many parts")
	}
	if seconds == 0 {
		return 0, false, nil // as Slurm: no limit
	}
	return min(Duration(seconds), MaxDuration), true, nil
}

// ParseSlurmLimit is ParseTimeLimit with whole minutes, in which Slurm counts: what is
// more than some of them is a minute more.
func ParseSlurmLimit(s string) (d Duration, ok bool, err error) {
	d, ok, err = ParseTimeLimit(s)
	return min((d+59)/60*60, MaxDuration/60*60), ok, err
}

// ParseLimit reads a time limit as people write it on a command line: as Slurm does,
// where a number alone is of minutes, or as a Duration.
func ParseLimit(text string) (d Duration, ok bool, err error) {
	if d, ok, err = ParseTimeLimit(text); err == nil {
		return d, ok, nil
	}
	if d, native := ParseDuration(text); native == nil {
		return d, true, nil
	}
	return 0, false, fmt.Errorf("%w; or a number and a unit, such as \"90m\", \"2 hours\" or \"1d\"", err)
}

// limitPart reads digits alone.
func limitPart(s string) (int64, error) {
	if s == "" || len(s) > 12 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("want a whole number")
	}
	return strconv.ParseInt(s, 10, 64)
}

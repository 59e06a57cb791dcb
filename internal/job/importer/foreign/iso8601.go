package foreign

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/times"
)

var errISO = errors.New(`want a duration of ISO 8601, such as "PT4H30M", "PT90S" or "P7D"`)

// parseISO8601 reads a duration of weeks, or of days, hours, minutes and
// seconds. Parts of a second are rounded up. Months and years have no fixed
// length and are refused.
func parseISO8601(s string) (job.Duration, error) {
	months := regexp.MustCompile(`^P[0-9Y]*[0-9]+[YM]`)
	if months.MatchString(s) {
		return 0, errors.New("months and years have no fixed length: write days, such as P30D, or hours, such as PT720H")
	}
	form := regexp.MustCompile(`^P(?:([0-9]+)W|(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?)$`)
	m := form.FindStringSubmatch(s)
	if m == nil || s[len(s)-1] == 'P' || s[len(s)-1] == 'T' {
		return 0, errISO
	}
	var sum job.Duration
	for i, unit := range []job.Duration{604800, 86400, 3600, 60, 1} {
		if m[i+1] == "" {
			continue
		}
		x, err := strconv.ParseInt(m[i+1], 10, 64)
		if err != nil || x > int64(times.MaxDuration/unit) {
			return 0, errors.New("must not be longer than 3650 days")
		}
		sum += job.Duration(x) * unit
	}
	if fraction, _ := strconv.ParseFloat("0."+m[6], 64); fraction > 0 {
		sum++
	}
	switch {
	case sum < 1:
		return 0, errors.New("must be longer than zero")
	case sum > times.MaxDuration:
		return 0, errors.New("must not be longer than 3650 days")
	}
	return sum, nil
}

// ISO8601 reads an ISO 8601 duration; 0 after a problem.
func (d *Decoder) ISO8601(n *document.Node) job.Duration {
	s, ok := d.Str(n)
	if !ok {
		return 0
	}
	x, err := parseISO8601(s)
	if err != nil {
		d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(s), err), "")
		return 0
	}
	return x
}

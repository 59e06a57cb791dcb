package foreign

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/job/times"
)

func TestParseISO8601(t *testing.T) {
	tests := map[string]struct {
		want job.Duration
		err  string
	}{
		"PT4H30M":                 {want: 16200},
		"PT72H":                   {want: 259200},
		"P7D":                     {want: 604800},
		"P2W":                     {want: 1209600},
		"P1DT1S":                  {want: 86401},
		"PT90S":                   {want: 90},
		"PT0.5S":                  {want: 1},
		"PT1.0S":                  {want: 1},
		"PT12H30M5S":              {want: 45005},
		"PT0S":                    {err: "must be longer than zero"},
		"P4000D":                  {err: "must not be longer than 3650 days"},
		"P3650DT1S":               {err: "must not be longer than 3650 days"},
		"PT99999999999999999999S": {err: "must not be longer than 3650 days"},
		"P1M":                     {err: "months and years have no fixed length: write days, such as P30D, or hours, such as PT720H"},
		"P1Y2M":                   {err: "months and years have no fixed length: write days, such as P30D, or hours, such as PT720H"},
		"P":                       {err: errISO.Error()},
		"PT":                      {err: errISO.Error()},
		"P1DT":                    {err: errISO.Error()},
		"pt4h":                    {err: errISO.Error()},
		"4h":                      {err: errISO.Error()},
		"PT1.5H":                  {err: errISO.Error()},
		"-PT1H":                   {err: errISO.Error()},
		"PT1M1H":                  {err: errISO.Error()},
		"P1W1D":                   {err: errISO.Error()},
		"PT 1H":                   {err: errISO.Error()},
		"":                        {err: errISO.Error()},
	}
	for text, tc := range tests {
		got, err := parseISO8601(text)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if got != tc.want || message != tc.err {
			t.Errorf("parseISO8601(%q) = %d, %q; want %d, %q", text, got, message, tc.want, tc.err)
		}
	}
}

func FuzzParseISO8601(f *testing.F) {
	f.Add("P1W")
	f.Add("P1DT2H3M4.5S")
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := parseISO8601(s); err == nil && (x < 1 || x > times.MaxDuration) {
			t.Errorf("parseISO8601(%q) = %d", s, x)
		}
	})
}

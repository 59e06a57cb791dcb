package job

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/job/times"
)

// FuzzDependencies: what is taken names jobs, of a bounded number.
func FuzzDependencies(f *testing.F) {
	for _, s := range []string{"afterok:12:13,afterany:14", "after:14+30:15+5", "singleton?afterok:1_3", "after:1+5; rm", "after:1+153722867280912931", "afterok", ",", "?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		deps, _, err := ParseDependencies(s)
		if err != nil {
			return
		}
		jobs := 0
		for _, d := range deps {
			jobs += len(d.Jobs)
			if d.wrong() != "" || d.Delay < 0 || d.Delay > times.MaxDuration || slices.ContainsFunc(d.Jobs, func(id string) bool { return !isJobID(id) }) {
				t.Errorf("%q has %+v", s, d)
			}
		}
		if len(deps)+jobs > 2*maxDependencies {
			t.Errorf("%q has %d dependencies on %d jobs", s, len(deps), jobs)
		}
	})
}

// FuzzCron: a time table that is taken names times, each after the one before.
func FuzzCron(f *testing.F) {
	for _, s := range []string{"30 6 * * 1-5", "*/15 0-4,22 1 JAN MON", "0 0 29 2 *", "0 0 31 2 *", "*/0 * * * *", "0 0 L * *", "0 0 15W * *", "0 0 * * 5#3",
		"* * * * 7", ",,,, - / - *", "1-1/9223372036854775807 * * * *", "59-0 * * * *", "@yearly a b c d"} {
		f.Add(s, int64(1_772_443_800_000))
	}
	f.Fuzz(func(t *testing.T, s string, now int64) {
		at := Instant(now & (1<<43 - 1)) // to the year 2248
		for range 3 {
			next, err := NextCron(s, at)
			if err != nil {
				return
			}
			if next <= at || next%60_000 != 0 {
				t.Fatalf("%q after %v: %v", s, at, next)
			}
			at = next
		}
	})
}

// FuzzDuration: a length of time is within bounds and reads back to itself.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"90 minutes", "1.5 h", "2 weeks", "1e9 s", "NaN h", "00000.1 h", "99999999999999999999 weeks", "-1 h", ".5 s", "1..2 h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := times.ParseDuration(s)
		if err != nil {
			return
		}
		if again, err := times.ParseDuration(d.String()); d < 1 || d > times.MaxDuration || err != nil || again != d {
			t.Errorf("%q is %d, and %q is %d, %v", s, d, d, again, err)
		}
	})
}

// FuzzInstant: a time is within bounds and reads back to itself.
func FuzzInstant(f *testing.F) {
	for _, s := range []string{"2026-03-01T09:00:00+01:00", "9999-12-31T23:59:59-23:59", "1970-01-01T00:00:00.0009Z", "2030-06-30T23:59:60Z", "2030-01-01T00:00:00,5Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x, err := times.ParseInstant(s)
		if err != nil {
			return
		}
		if again, err := times.ParseInstant(x.String()); x <= 0 || err != nil || again != x {
			t.Errorf("%q is %d, and %q is %d, %v", s, x, x, again, err)
		}
	})
}

// FuzzDataURI: a URI that is taken has one of the schemes, no login, and for
// what is a path no way up, no line break and no part that is lost.
func FuzzDataURI(f *testing.F) {
	for _, s := range []string{"s3://b/x/", "file:///project/a", "file:///project/%2e%2e/etc", "results:///a/b/", "https://h/x?y#z", "file:///a%00b", "s3:///x", "https://u:p@h/", "results:///..", "file:/a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if dataURI("s3", "file", "results")(s) != "" {
			return
		}
		u, err := url.Parse(s)
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || slices.Contains(strings.Split(u.Path, "/"), "..") || strings.ContainsAny(u.Path, "\x00\n\r") {
			t.Errorf("%q is taken: %+v, %v", s, u, err)
		}
		if u.Scheme != "s3" && (u.Host != "" || !strings.HasPrefix(u.Path, "/")) {
			t.Errorf("%q is taken: %+v", s, u)
		}
	})
}

// FuzzRankID: the name of a rank is that of one rank alone, and safe as a file's.
func FuzzRankID(f *testing.F) {
	for _, s := range []string{"123_0.1.0", "0_0.0.0", "123_0.1.0 ", "+1_0.1.0", "1_0.1.4294967296", "01_0.1.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseRankID(s); err == nil && (id.String() != s || strings.Trim(s, "0123456789_.") != "") {
			t.Errorf("%q is %+v", s, id)
		}
	})
}

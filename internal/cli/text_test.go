package cli

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
)

func TestClean(t *testing.T) {
	tests := map[string]string{
		"plain":               "plain",
		"a\tb\r\n":            `a\tb\r\n`,
		"\x1b]0;title\x07":    `\x1b]0;title\a`,
		"\u009b2J":            `\u009b2J`,
		"\u202egnp.exe":       `\u202egnp.exe`,
		"zero\u200bwidth":     `zero\u200bwidth`,
		"bad\xffbyte":         `bad\xffbyte`,
		"good\ufffdmark":      "good\ufffdmark",
		"\u65e5\u672c \u00fc": "\u65e5\u672c \u00fc",
		"it's":                "it's",
		"\x7f":                `\x7f`,
	}
	for in, want := range tests {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) is %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[0m\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if strings.ContainsFunc(got, unicode.IsControl) || strings.ToValidUTF8(got, "") != got {
			t.Errorf("clean(%q) is %q", s, got)
		}
		if clean(got) != got {
			t.Errorf("clean is not stable for %q", s)
		}
	})
}

func TestSlurmDuration(t *testing.T) {
	tests := map[int64]string{-5: "0:00", 0: "0:00", 3: "0:03", 2400: "40:00", 4800: "1:20:00", 86400: "1-00:00:00", 93784: "1-02:03:04", 30 * 86400: "30-00:00:00"}
	for in, want := range tests {
		if got := string(slurmDuration(nil, in)); got != want {
			t.Errorf("%d s: got %s, want %s", in, got, want)
		}
	}
}

func TestSizeText(t *testing.T) {
	tests := map[int64]string{0: "-", 512 << 20: "512M", 32 << 30: "32G", 1536 << 20: "1.5G", 3 << 40: "3T", 1000: "0.0M"}
	for in, want := range tests {
		if got := string(sizeText(nil, in)); got != want {
			t.Errorf("%d: got %s, want %s", in, got, want)
		}
	}
}

func TestRelTime(t *testing.T) {
	tests := map[time.Duration]string{0: "now", 999 * time.Millisecond: "now", 90 * time.Second: "in 1m", -5 * time.Hour: "5h ago", -72 * time.Hour: "3d ago"}
	for in, want := range tests {
		if got := relTime(now.Add(in), now); got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	tests := map[string]string{ // expanded: compressed
		"":                          "",
		"gpu1":                      "gpu1",
		"gpu01,gpu02,gpu03,gpu07":   "gpu[01-03,07]",
		"n9,n10,n11":                "n[9-11]",
		"n3,n1,n2":                  "n[1-3]",
		"login,gpu1,gpu2,head":      "login,gpu[1-2],head",
		"a-1-01,a-1-02,a-2-01":      "a-1-[01-02],a-2-01",
		"n08,n09,n10":               "n[08-09],n10",
		"x99999999999,x99999999998": "x99999999999,x99999999998",
	}
	for expanded, compressed := range tests {
		var names []string
		if expanded != "" {
			names = strings.Split(expanded, ",")
		}
		if got := compressHosts(names); got != compressed {
			t.Errorf("compress %s: got %s, want %s", expanded, got, compressed)
		}
		back, err := expandHosts(compressed)
		if err != nil || len(back) != len(names) {
			t.Errorf("expand %s: got %v, %v", compressed, back, err)
		}
	}
	for _, bad := range []string{"gpu[1-", "gpu[a]", "gpu[1-9999999]", "gpu[3-1]", "g[1]x"} {
		if _, err := expandHosts(bad); ExitCode(err) != ExitUsage {
			t.Errorf("expand %s: error %v", bad, err)
		}
	}
}

func TestFormat(t *testing.T) {
	j := sampleJobs()[0].Job
	failed := sampleJobs()[4].Job
	tests := map[string]struct {
		job  api.Job
		want string // with header
		err  string
	}{
		"%i|%j|%T":            {job: j, want: "ID|NAME|STATE\n12|train|RUNNING\n"},
		"%.5i %5j %3T|":       {job: j, want: "   ID NAME  STA|\n   12 train RUN|\n"},
		"%%%i%%":              {job: j, want: "%ID%\n%12%\n"},
		"%t %u %a %P %q %K":   {job: j, want: "ST USER PROJECT CLUSTER QOS INDEX\nR ann vision 1 normal N/A\n"},
		"%M %l %L":            {job: j, want: "TIME LIMIT LEFT\n1:30:00 4:00:00 2:30:00\n"},
		"%D %C %m %b":         {job: j, want: "NODES CPUS MEM GPUS\n4 8 32G 2\n"},
		"%R %N %r":            {job: j, want: "NODES/REASON NODELIST REASON\ngpu[01-03,07] gpu[01-03,07] -\n"},
		"%R;%N;%r":            {job: failed, want: "NODES/REASON;NODELIST;REASON\n(OOM);gpu01;OOM\n"},
		"%S %e":               {job: j, want: "START END\n2026-03-01T07:30:00 2026-03-01T11:30:00\n"},
		"%V %p %Q %A":         {job: j, want: "SUBMITTED PRIORITY PRIORITY JOBID\n2026-03-01T07:00:00 5000 5000 12\n"},
		"%L %e":               {job: failed, want: "LEFT END\n- 2026-03-01T08:00:00\n"},
		"%U":                  {job: j, want: "UUID\na280f7e8-b1e6-41e9-93a1-000000000012\n"},
		"%x":                  {err: `no column has the letter "x"; there are i id`},
		"%i %":                {err: "ends after a percent sign"},
		"%.i%":                {err: "ends after a percent sign"},
		"%0i":                 {err: "a width is between 1 and 1000, not 0"},
		"%99999999999999999i": {err: "a width is between"},
		"%.%":                 {err: `no column has the letter "%"`},
	}
	for format, tc := range tests {
		fields, err := parseFormat(format, columns)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || ExitCode(err) != ExitUsage {
				t.Errorf("%s: error %v, want %q", format, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		var b strings.Builder
		if err := writeFormat(&b, fields, []api.Job{tc.job}, &view{now: now}, true); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(tc.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

func FuzzParseFormat(f *testing.F) {
	f.Add("%.18i %j%%")
	f.Fuzz(func(t *testing.T, format string) {
		fields, err := parseFormat(format, columns)
		if err != nil {
			return
		}
		var b strings.Builder
		if err := writeFormat(&b, fields, []api.Job{{Name: "x"}}, &view{now: now}, true); err != nil {
			t.Error(err)
		}
	})
}

// Every letter has its own column, and the default lists know theirs.
func TestColumnsAreUnique(t *testing.T) {
	seen := map[byte]bool{}
	for _, c := range columns {
		if seen[c.letter] {
			t.Errorf("letter %c twice", c.letter)
		}
		seen[c.letter] = true
	}
	for _, l := range []byte("ijuatTMlDRCmbSeVNpQqKP") {
		if !seen[l] {
			t.Errorf("no column %c", l)
		}
	}
}

package dstack

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// String is the span for tests, as 1..2, 1.. or 1.
func (s *span) String() string {
	switch {
	case s == nil:
		return "-"
	case s.exact():
		return fmt.Sprint(s.low)
	case !s.hasHigh:
		return fmt.Sprintf("%v..", s.low)
	case !s.hasLow:
		return fmt.Sprintf("..%v", s.high)
	}
	return fmt.Sprintf("%v..%v", s.low, s.high)
}

func TestParseGPU(t *testing.T) {
	tests := map[string]string{ // vendor names count memory
		"2":                    " [] 2 -",
		"A100":                 " [A100] - -",
		"A100:2":               " [A100] 2 -",
		"A100:80GB:2":          " [A100] 2 80",
		"24GB..":               " [] - 24..",
		"24GB..40GB:2":         " [] 2 24..40",
		"A10G,A100":            " [A10G A100] - -",
		"H100:1..2":            " [H100] 1..2 -",
		"nvidia:16GB":          "nvidia [] - 16",
		"tpu:v2-8":             "google [v2-8] - -",
		"80GB:2":               " [] 2 80",
		" A100 : 40 GB : 1.. ": " [A100] 1.. 40",
		"0":                    " [] 0 -",
		"..4":                  " [] ..4 -",
		"v5litepod-8":          " [v5litepod-8] - -",
		"amd:MI300X:8":         "amd [MI300X] 8 -",
		"512MB":                " [] - 0.5",
		"1.5TB":                " [] - 1536",
		"":                     "error: has an empty part",
		"A100:":                "error: has an empty part",
		"A100,:2":              "error: has an empty name",
		"A100:H100":            "error: has names in two parts: separate them by commas",
		"nvidia:tpu":           "error: names two vendors",
		"1:2":                  `error: has "2", and another part of its kind before it`,
		"16GB:24GB":            `error: has "24GB", and another part of its kind before it`,
		"16XB":                 `error: has "16XB", which is no size such as 512MB, 24GB or 1.5TB`,
		"2..1":                 "error: is a range whose first end, 2, is above the second, 1",
		"..":                   "error: is an empty range",
		"1.5":                  `error: has "1.5", which is no whole number`,
		"-1":                   `error: has "-1", which is no whole number`,
	}
	for text, want := range tests {
		g, err := parseGPU(text)
		got := fmt.Sprintf("%s %v %s %s", g.vendor, g.names, g.count, g.memory)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("parseGPU(%q) = %s; want %s", text, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	tests := map[string]job.Duration{"90": 90, "90s": 90, "5m": 300, "2h": 7200, "1d": 86400, "1 w": 604800, "0": 0,
		"": -1, "h": -1, "1h30m": -1, "1.5h": -1, "-1h": -1, "PT1H": -1, "9999999w": -1, "99999999999999999999": -1}
	for text, want := range tests {
		got, err := parseDuration(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("parseDuration(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

// TestConvertCron proves that day 0 is Monday: job.NextCron is asked when the
// converted line comes first after Thursday, 1 January 1970.
func TestConvertCron(t *testing.T) {
	tests := map[string]struct{ want, first string }{
		"0 0 * * 0":      {"0 0 * * 1", "1970-01-05T00:00:00Z"}, // Monday
		"0 0 * * 6":      {"0 0 * * 0", "1970-01-04T00:00:00Z"}, // Sunday
		"0 8 * * 0-4":    {"0 8 * * 1,2,3,4,5", "1970-01-01T08:00:00Z"},
		"0 8 * * 4-6":    {"0 8 * * 5,6,0", "1970-01-02T08:00:00Z"},
		"0 8 * * */3":    {"0 8 * * 1,4,0", "1970-01-01T08:00:00Z"},
		"0 8 * * 1/2":    {"0 8 * * 2,4,6", "1970-01-01T08:00:00Z"},
		"0 8 * * 0,mon":  {"0 8 * * 1,mon", "1970-01-05T08:00:00Z"},
		"0  8 1 *  *":    {"0 8 1 * *", "1970-01-01T08:00:00Z"},
		"5 4 * * sun":    {"5 4 * * sun", "1970-01-04T04:05:00Z"},
		"0 0 * * 7":      {"", ""},
		"0 0 * * 4-2":    {"", ""},
		"0 0 * * 1/0":    {"", ""},
		"0 0 * * -":      {"", ""},
		"0 0 1 * 1":      {"", ""},
		"0 0 * *":        {"", ""},
		"@daily":         {"", ""},
		"0 0 * * *-2":    {"", ""},
		"0 0 * * 999999": {"", ""},
	}
	for line, tc := range tests {
		got, err := convertCron(line)
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("convertCron(%q) = %q, %v; want %q", line, got, err, tc.want)
		}
		if tc.want == "" {
			continue
		}
		if at, err := job.NextCron(got, 1); err != nil || at.String() != tc.first {
			t.Errorf("%q comes first at %s, %v; want %s", got, at, err, tc.first)
		}
	}
}

func TestJoinCommands(t *testing.T) {
	tests := map[string][]string{
		"a":                       {"a"},
		"a && b":                  {" a\n", "b"},
		"{ a & } && b":            {"a &", "b"},
		"{ a & } && { b & }":      {"a & ", "b &\n"},
		"a && && b":               {"a &&", "b"}, // as dstack: the shell says what is wrong
		"if x; then\ny\nfi && z":  {"if x; then\ny\nfi\n", "z"},
		"sleep 1 & wait && echo ": {"sleep 1 & wait", "echo "},
	}
	for want, commands := range tests {
		if got := joinCommands(commands); got != strings.TrimRight(want, " ") {
			t.Errorf("joinCommands(%q) = %q; want %q", commands, got, want)
		}
	}
}

// TestSecrets looks for what no job shows: variables of whoever submits,
// and the login.
func TestSecrets(t *testing.T) {
	data, err := os.ReadFile("../testdata/dstack-full.in")
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "of " + name, name == "HF_HOME" || name == "WANDB_API_KEY" }
	sub, err := Parse(data, Options{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"WANDB_API_KEY": "of WANDB_API_KEY"}, sub.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if sub.Registry == nil || sub.Registry.Username != "$oauthtoken" || sub.Registry.Password != "nv-key" {
		t.Errorf("login is %v", sub.Registry)
	}
	if sub, err = Parse(data, Options{}); err != nil || len(sub.Secrets) != 0 || len(sub.Spec.Gbatch.Secrets) != 2 {
		t.Errorf("without surroundings: %v, %v", sub.Spec.Gbatch, err)
	}
}

func FuzzParseGPU(f *testing.F) {
	for _, s := range []string{"A100:80GB:2", "nvidia:24GB..40GB:1..2", ".."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := parseGPU(s)
		for _, r := range []*span{g.count, g.memory} {
			if err == nil && r != nil && (!r.hasLow && !r.hasHigh || r.hasLow && r.low < 0 || r.hasHigh && r.least(1) > r.high || r.low > maxAmount) {
				t.Errorf("parseGPU(%q) = %s", s, r)
			}
		}
	})
}

func FuzzConvertCron(f *testing.F) {
	f.Add("0 0 * * 0-4/2,sun")
	f.Fuzz(func(t *testing.T, s string) {
		if line, err := convertCron(s); err == nil {
			job.NextCron(line, 0)
		}
	})
}

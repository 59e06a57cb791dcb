package human

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"gbatch/internal/job/nodelist"
)

var now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

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
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) is %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[0m\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if strings.ContainsFunc(got, unicode.IsControl) || strings.ToValidUTF8(got, "") != got {
			t.Errorf("Clean(%q) is %q", s, got)
		}
		if Clean(got) != got {
			t.Errorf("clean is not stable for %q", s)
		}
	})
}

func TestDuration(t *testing.T) {
	tests := map[int64]string{-5: "0:00", 0: "0:00", 3: "0:03", 2400: "40:00", 4800: "1:20:00", 86400: "1-00:00:00", 93784: "1-02:03:04", 30 * 86400: "30-00:00:00"}
	for in, want := range tests {
		if got := string(Duration(nil, in)); got != want {
			t.Errorf("%d s: got %s, want %s", in, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	tests := map[int64]string{0: "-", 512 << 20: "512M", 32 << 30: "32G", 1536 << 20: "1.5G", 3 << 40: "3T", 1000: "0.0M"}
	for in, want := range tests {
		if got := string(Size(nil, in)); got != want {
			t.Errorf("%d: got %s, want %s", in, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	tests := map[time.Duration]string{0: "now", 999 * time.Millisecond: "now", 90 * time.Second: "in 2m", 119 * time.Minute: "in 2h", 59*time.Minute + 40*time.Second: "in 1h", 14*24*time.Hour - time.Minute: "in 14d", 47*time.Hour + 50*time.Minute: "in 2d", -5 * time.Hour: "5h ago", -72 * time.Hour: "3d ago"}
	for in, want := range tests {
		if got := Ago(now.Add(in), now); got != want {
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
		if got := Hosts(names); got != compressed {
			t.Errorf("compress %s: got %s, want %s", expanded, got, compressed)
		}
		back, err := nodelist.Parse(compressed)
		if err != nil || len(back) != len(names) {
			t.Errorf("expand %s: got %v, %v", compressed, back, err)
		}
	}
	for _, bad := range []string{"gpu[1-", "gpu[a]", "gpu[1-9999999]", "gpu[3-1]", "g[1]x"} {
		if _, err := nodelist.Parse(bad); err == nil {
			t.Errorf("expand %s: error %v", bad, err)
		}
	}
}

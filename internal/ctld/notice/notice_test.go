package notice

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNotice: a line when it begins, one a minute with how often it was, and one
// when it is over, however often that is said and whether both alternate.
func TestNotice(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	now := time.Unix(1_000_000, 0)
	n := &Notice{Log: log, Level: slog.LevelError, Text: "no directory", Over: "a directory again", Now: func() time.Time { return now }}
	n.Ended()
	for range 150 { // a request each second
		n.Happened("uid", 5)
		now = now.Add(time.Second)
	}
	n.Ended()
	n.Ended()
	for range 100 {
		n.Happened("uid", 6)
		n.Ended()
	}
	now = now.Add(time.Minute)
	n.Happened("uid", 7)
	want := []string{
		`level=ERROR msg="no directory" uid=5`,
		`level=ERROR msg="no directory" uid=5 times_before=59`,
		`level=ERROR msg="no directory" uid=5 times_before=59`,
		`level=INFO msg="a directory again" times_before=29`,
		`level=ERROR msg="no directory" uid=7 times_before=100`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package vmtest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReport(t *testing.T) {
	var console bytes.Buffer
	console.WriteString("[    0.0] booting without a line's end")
	r := NewReport(&console)
	r.Check("good", func() error { return nil })
	r.Check("bad", func() error { return errors.New("two\nlines") })
	if r.End() {
		t.Error("a report with a failure passed")
	}
	whole := strings.ReplaceAll(console.String(), "\n", "\r\n") // as a serial line has it
	got, err := readReport(strings.NewReader(whole))
	want := []check{{Name: "good"}, {Name: "bad", Err: "two\nlines"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(check{}, "Took")); diff != "" || err != nil {
		t.Errorf("%v, checks (-want +got):\n%s", err, diff)
	}

	cases := map[string]struct{ console, err string }{
		"empty":   {"", "did not come to its end"},
		"cut":     {whole[:strings.Index(whole, endMark)], "did not come to its end"},
		"lost":    {endMark + "1\n", "made 1 checks, 0 are"},
		"garbled": {checkMark + "{\n", "unexpected end"},
		"noend":   {endMark + "x\n", "read end of the report"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := readReport(strings.NewReader(tc.console)); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

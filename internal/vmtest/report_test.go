package vmtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// finding is one thing that was looked at in the guest.
type finding struct {
	Name string        `json:"name"`
	Err  string        `json:"err,omitempty"` // what did not hold; "" is a pass
	Took time.Duration `json:"took"`
}

// The console carries the kernel's words too, so ours begin with a mark, and
// the last line has the number of checks: qemu ends with 0 whatever happened
// in it, and a guest that died early looks like one that passed.
const (
	checkMark = "vmtest-check "
	endMark   = "vmtest-end "
)

// report writes checks to a console.
type report struct {
	w     io.Writer
	count int
	bad   int
}

// check does one check and writes what came of it.
func (r *report) check(name string, f func() error) {
	start := time.Now()
	c := finding{Name: name}
	if err := f(); err != nil {
		c.Err = err.Error()
		r.bad++
	}
	c.Took = time.Since(start)
	r.count++
	line, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and a number
	}
	// The kernel may have left the cursor within a line.
	fmt.Fprintf(r.w, "\n%s%s\n", checkMark, line)
}

// end writes the last line and says whether every check passed.
func (r *report) end() bool {
	fmt.Fprintf(r.w, "\n%s%d\n", endMark, r.count)
	return r.bad == 0
}

// readReport reads the checks from what a console has printed. A report that is
// cut short is an error, beside the checks that are there.
func readReport(console io.Reader) ([]finding, error) {
	var out []finding
	end := -1
	sc := bufio.NewScanner(console)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := strings.TrimRight(sc.Text(), "\r")
		if text, ok := strings.CutPrefix(line, checkMark); ok {
			var c finding
			if err := json.Unmarshal([]byte(text), &c); err != nil {
				return out, fmt.Errorf("read check %q: %w", text, err)
			}
			out = append(out, c)
		}
		if text, ok := strings.CutPrefix(line, endMark); ok {
			if _, err := fmt.Sscan(text, &end); err != nil {
				return out, fmt.Errorf("read end of the report %q: %w", text, err)
			}
		}
	}
	switch {
	case sc.Err() != nil:
		return out, fmt.Errorf("read console: %w", sc.Err())
	case end < 0:
		return out, errors.New("the guest did not come to its end")
	case end != len(out):
		return out, fmt.Errorf("the guest made %d checks, %d are on the console", end, len(out))
	}
	return out, nil
}

func TestReport(t *testing.T) {
	var console bytes.Buffer
	console.WriteString("[    0.0] booting without a line's end")
	r := &report{w: &console}
	r.check("good", func() error { return nil })
	r.check("bad", func() error { return errors.New("two\nlines") })
	if r.end() {
		t.Error("a report with a failure passed")
	}
	whole := strings.ReplaceAll(console.String(), "\n", "\r\n") // as a serial line has it
	got, err := readReport(strings.NewReader(whole))
	want := []finding{{Name: "good"}, {Name: "bad", Err: "two\nlines"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(finding{}, "Took")); diff != "" || err != nil {
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

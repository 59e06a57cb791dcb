package vmtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// check is one thing that was looked at in the guest.
type check struct {
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

// Report writes checks to a console.
type Report struct {
	w     io.Writer
	count int
	bad   int
}

// NewReport returns a report without checks.
func NewReport(w io.Writer) *Report { return &Report{w: w} }

// Check does one check and writes what came of it.
func (r *Report) Check(name string, f func() error) {
	start := time.Now()
	c := check{Name: name}
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

// End writes the last line and says whether every check passed.
func (r *Report) End() bool {
	fmt.Fprintf(r.w, "\n%s%d\n", endMark, r.count)
	return r.bad == 0
}

// readReport reads the checks from what a console has printed. A report that is
// cut short is an error, beside the checks that are there.
func readReport(console io.Reader) ([]check, error) {
	var out []check
	end := -1
	sc := bufio.NewScanner(console)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := strings.TrimRight(sc.Text(), "\r")
		if text, ok := strings.CutPrefix(line, checkMark); ok {
			var c check
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

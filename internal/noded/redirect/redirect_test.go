package redirect

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/stdio"
)

// TestAwait: a directory for output may come a little later, and nothing else
// is waited for.
func TestAwait(t *testing.T) {
	missing := &os.PathError{Op: "openat", Path: "x", Err: unix.ENOENT}
	for name, tc := range map[string]struct {
		err   error
		comes time.Duration // when there is no error any more; 0: never
		ended time.Duration // when the job is told to end; 0: never
		want  string
		after time.Duration
	}{
		"there":     {nil, 0, 0, "", 0},
		"late":      {reasonOf("output", "/x/out", missing), 3 * time.Second, 0, "", 3 * time.Second},
		"never":     {reasonOf("error", "/x/err", missing), 0, 0, "cannot open the file for the program's error, /x/err: its directory does not exist", dirWait + dirAgain},
		"ended":     {reasonOf("output", "/x/out", missing), 0, time.Second, "ended", time.Second},
		"input":     {reasonOf("input", "/x/in", missing), 3 * time.Second, 0, "cannot open the file for the program's input, /x/in: it does not exist", 0},
		"forbidden": {reasonOf("output", "/x/out", unix.EACCES), 3 * time.Second, 0, "cannot open the file for the program's output, /x/out: its user may not", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if tc.ended > 0 {
					defer time.AfterFunc(tc.ended, func() { cancel(errors.New("ended")) }).Stop()
				}
				start := time.Now()
				_, err := await(ctx, func() (stdio.Files, error) {
					if tc.comes > 0 && time.Since(start) >= tc.comes {
						return stdio.Files{}, nil
					}
					return stdio.Files{}, tc.err
				})
				got := ""
				if err != nil {
					got = err.Error()
				}
				if took := time.Since(start); got != tc.want || took != tc.after {
					t.Errorf("%q after %v; want %q after %v", got, took, tc.want, tc.after)
				}
				cancel(nil)
			})
		})
	}
}

package lease

import (
	"fmt"
	"os"
	"time"
)

// retry is how long to wait for a file that cannot be read, and to look again
// whether all was killed.
const retry = 10 * time.Second

// Keep calls end when the lease in a file has run out, and again while it has,
// until done is closed. It looks at the file when the lease that it knows of ends, so
// a lease that is renewed costs one look for each of its lengths.
func Keep(file string, done <-chan struct{}, end func() error) {
	for {
		left, err := Left(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			left = retry // an owner that cannot write it sees to its leases itself
		}
		if left <= 0 {
			if err := end(); err != nil {
				fmt.Fprintln(os.Stderr, "end a container whose lease ran out:", err)
			}
			left = retry
		}
		if over(done, left) {
			return
		}
	}
}

// over waits, and says whether done was closed meanwhile.
func over(done <-chan struct{}, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

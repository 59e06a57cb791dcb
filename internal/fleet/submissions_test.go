package fleet

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// TestSubmissions measures how many submissions three controllers acknowledge in a second, beside nodes and jobs that wait.
func TestSubmissions(t *testing.T) {
	if os.Getenv("GBATCH_FLEET_SUBMISSIONS") == "" {
		t.Skip("SKIPPED: it measures, GBATCH_FLEET_SUBMISSIONS of each kind")
	}
	all := number(t, "SUBMISSIONS", 1)
	tr := newTrio(t, number(t, "NODES", 4))
	f := tr.fleet(tr.wholly())
	for _, how := range []struct{ clients, each int }{{1, 1}, {16, 1}, {64, 1}, {256, 1}, {1, api.MaxSubmissions}, {4, api.MaxSubmissions}} {
		requests := max(1, all/how.clients/how.each)
		before, began := tr.used(), time.Now()
		var sending sync.WaitGroup
		for range how.clients {
			sending.Go(func() { // ends when all is taken
				own := &fleet{t: t, user: &client.Client{Address: f.address, Token: f.user.Token, Timeout: patience, Retry: client.Retry{For: patience}}}
				defer own.user.Close()
				for range requests {
					if err := own.send(how.each); err != nil {
						t.Error(err)
					}
				}
			})
		}
		sending.Wait()
		took, used, n := time.Since(began), tr.used()-before, requests*how.clients*how.each
		t.Logf("%d clients with %d at a time: %d acknowledged, %.0f/s; %.2f ms of the controllers' processors each", how.clients, how.each, n, float64(n)/took.Seconds(), float64(used.Microseconds())/1000/float64(n))
	}
}

// send submits so many at a time: one as people do.
func (f *fleet) send(n int) error {
	if n > 1 {
		return f.submit(n)
	}
	_, err := f.user.Submit(f.t.Context(), &api.SubmitRequest{Job: []byte(document)}, "")
	return err
}

// used is how long processors have worked for the controllers that run.
func (tr *trio) used() (all time.Duration) {
	for _, c := range tr.all {
		all += c.used()
	}
	return all
}

// used is how long processors have worked for the process that runs.
func (c *controller) used() (all time.Duration) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // behind the name of the program
	const tick = 10 * time.Millisecond
	for _, field := range strings.Fields(rest)[11:13] { // of the program, of the kernel for it
		ticks, err := strconv.Atoi(field)
		if err != nil {
			c.t.Fatal(err)
		}
		all += time.Duration(ticks) * tick
	}
	return all
}

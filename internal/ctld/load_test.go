package ctld

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// manyPolls is how many long polls TestManyPolls holds open, each on a
// connection of its own.
const manyPolls = 3000

// TestManyPolls: thousands wait for a job's change, the controller answers
// others meanwhile, and all hear of the change.
func TestManyPolls(t *testing.T) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil || lim.Cur < 2*manyPolls+500 {
		t.Skipf("SKIPPED: %d files may be open, %d are needed: raise ulimit -n (%v)", lim.Cur, 2*manyPolls+500, err)
	}
	s := newSite(t, nil)
	s.submit(hello(1), "")
	version := s.job("1").Version
	path := strings.TrimPrefix(s.server.Addresses()[0], "unix://")
	var all sync.WaitGroup
	var mu sync.Mutex
	faults := map[string]int{}
	for range manyPolls {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /v1/jobs/1?wait=120&version=%d HTTP/1.1\r\nHost: gctld\r\n\r\n", version); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { // ends with the answer
			defer conn.Close()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				var text []byte
				text, err = io.ReadAll(resp.Body)
				if !strings.Contains(string(text), string(job.OnHold)) {
					err = errors.Join(err, fmt.Errorf("status %d", resp.StatusCode))
				}
			}
			if err != nil {
				mu.Lock()
				faults[err.Error()]++
				mu.Unlock()
			}
		})
	}
	waitFor(t, "all polls are open", func() bool {
		return s.server.loop.Jobs.Waiting(1) == manyPolls
	})
	if _, err := s.Status(t.Context()); err != nil {
		t.Errorf("another client: %v", err)
	}
	if _, err := s.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if len(faults) > 0 {
		t.Errorf("polls that failed: %v", faults)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// TestConnectionIsUsedAgain: the deadline of one answer is none for the next on
// the same connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	c := &client.Client{Address: s.Address}
	defer c.Close()
	for range 3 {
		if _, err := c.Jobs(t.Context(), client.JobFilter{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Log(t.Context(), "1", client.LogOptions{}); !client.IsCode(err, api.CodeConflict) {
			t.Fatal(err)
		}
	}
}

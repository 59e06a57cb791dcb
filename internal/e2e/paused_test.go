package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/api"
)

// TestPausedLeader: the controller that leads is stopped until another one has taken jobs, and goes on then. It
// does not answer by what it knew before, takes nothing as the one that leads, and no number is given twice.
func TestPausedLeader(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newSeveral(t, siteOptions{}, nil, nil)
	s := c.s
	once := func(i int) string {
		return s.write(doc{command: sh(fmt.Sprintf("echo %d >>/project/ran", i)), storage: []any{map[string]any{"containerPath": "/project"}}}.json())
	}
	ids := []string{c.as("gsubmit", once(0))}
	c.as("gqueue", "wait", ids[0])
	i := c.leader()
	pid := c.all[i].cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	defer goOn() // before the daemons are to end
	if !poll(patience, func() bool { return allStopped(t, pid) }) {
		t.Fatal("the controller does not stop")
	}

	// It reads these when it goes on.
	listed := s.sent(c.socket(i), "GET", "/v1/jobs?all=true", "")
	job, err := json.Marshal(api.SubmitRequest{Job: json.RawMessage(doc{command: sh("true")}.json())})
	if err != nil {
		t.Fatal(err)
	}
	submitted := s.sent(c.socket(i), "POST", "/v1/jobs", string(job))

	ids = append(ids, c.as("gsubmit", once(1)), c.as("gsubmit", once(2)))
	c.as("gqueue", append([]string{"wait"}, ids...)...) // the nodes left it, although it closed no connection
	goOn()

	status, body := listed()
	if status == http.StatusOK {
		var list api.JobList
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Jobs) < len(ids) { // it may lead again before it reads what was asked
			t.Errorf("it answers by what it knew before it stood still: %s", body)
		}
	}
	if status, body := submitted(); status == http.StatusOK {
		var taken api.SubmitResponse
		if err := json.Unmarshal([]byte(body), &taken); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprint(taken.Number))
	}
	c.wholly()
	ids = append(ids, c.as("gsubmit", once(3)))
	c.as("gqueue", append([]string{"wait"}, ids...)...)
	if all := slices.Compact(slices.Sorted(slices.Values(ids))); len(all) != len(ids) {
		t.Errorf("a number was given twice: %q", ids)
	}
	ran := lines(t, s.project()+"/ran")
	slices.Sort(ran)
	if want := []string{"0", "1", "2", "3"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
	c.first()
}

// sent sends a request by a socket, also of a daemon that stands still, and gives how to read what comes of it: the
// status, 0 where the connection ends without an answer, and the body.
func (s *site) sent(socket, method, path, body string) (answer func() (int, string)) {
	s.t.Helper()
	conn, err := net.Dial("unix", socket)
	if err == nil {
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: gctld\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Now().Add(2 * patience))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return func() (int, string) {
		s.t.Helper()
		defer conn.Close()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.t.Fatalf("%s %s: %v", method, path, err)
		}
		if err != nil {
			return 0, ""
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, ""
		}
		return resp.StatusCode, string(text)
	}
}

// allStopped says whether each thread of a process stands still: the others go on until one of them has got the signal.
func allStopped(t *testing.T, pid int) bool {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(stats) > 0 && !slices.ContainsFunc(stats, func(file string) bool {
		text, err := os.ReadFile(file)
		_, state, ok := strings.Cut(string(text), ") ")
		return err == nil && !(ok && strings.HasPrefix(state, "T"))
	})
}

package noded

import (
	"fmt"
	"net"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestForwardOwnNetwork: a forwarded port is that of the job's own network: two
// jobs have the same one, and the machine has it not.
func TestForwardOwnNetwork(t *testing.T) {
	s := newSite(t, nil).start()
	const port = 8080
	serve := func(n int) job.RankID {
		id := rankID(n)
		s.want(id, order(fmt.Sprintf("nc -ll -p %d -e echo job %d & echo ready; trap 'kill $!; exit 0' TERM; wait", port, n)))
		s.ready(id)
		return id
	}
	for i, id := range []job.RankID{serve(1), serve(2)} {
		want := fmt.Sprintf("job %d\n", i+1)
		until(t, "the job's answer", func() bool {
			p := s.enter(api.StreamForward, id)
			p.send(api.JSONFrame(api.FrameStart, api.ForwardStart{Port: port}))
			for !p.ended {
				if f := p.next(); f.Type == api.FrameError {
					return false // it does not listen yet
				}
			}
			if string(p.out) != want {
				t.Errorf("got %q, want %q", p.out, want)
			}
			return true
		})
	}
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		conn.Close()
		t.Error("the port is open on the machine")
	}
	s.empty()
}

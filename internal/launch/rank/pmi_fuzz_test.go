package rank

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"gbatch/internal/launch"
)

// FuzzPMI has one of two tasks say anything: each line is answered by one line at
// most, what is kept of it is bounded, and it is never taken for the other task.
func FuzzPMI(f *testing.F) {
	f.Add([]byte("cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\ncmd=get_my_kvsname\n"))
	f.Add([]byte("cmd=put kvsname=kvs_7_0 key=a value=b c\ncmd=get kvsname=kvs_7_0 key=a\ncmd=get key=PMI_process_mapping\n"))
	f.Add([]byte("cmd=barrier_in\ncmd=barrier_in\ncmd=barrier_in\n"))
	f.Add([]byte("cmd=abort exitcode=-9999999999999999999999\ncmd=spawn\rcmd=x\n= =\ncmd\n"))
	f.Add([]byte("cmd=put key=" + strings.Repeat("k", 30<<10) + " value=" + strings.Repeat("v", 30<<10) + "\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		srun := &lines{in: bytes.NewReader(nil)}
		g := &group{s: &Server{info: &launch.Info{Job: 7}}, conn: &launch.Conn{Conn: srun}}
		g.order.Layout.Tasks, g.placed.Tasks = 2, make([]launch.Task, 2)
		p := newPMI(g)
		one := &lines{in: bytes.NewReader(said)}
		p.serve(&task{}, one)
		if got, asked := bytes.Count(one.out.Bytes(), []byte("\n")), 1+bytes.Count(said, []byte("\n")); got > asked {
			t.Errorf("%d lines are answered by %d:\n%s", asked, got, one.out.Bytes())
		}
		size := 0
		for k, v := range p.put {
			size += len(k) + len(v) + putCost
		}
		if size != p.size || size > maxPut {
			t.Errorf("%d bytes are kept, and counted as %d", size, p.size)
		}
		if len(p.waiting) > 1 {
			t.Errorf("one task waits as %d", len(p.waiting))
		}
		checkAborts(t, srun.out.Bytes())
	})
}

// checkAborts: all that srun is told is that a task wants the step to end.
func checkAborts(t *testing.T, out []byte) {
	const head = 9 // a frame's kind, task and length
	for len(out) > 0 {
		body := out[head : head+binary.BigEndian.Uint32(out[5:])]
		var b launch.PMIBarrier
		if err := json.Unmarshal(body, &b); launch.Kind(out[0]) != launch.KindPMI || err != nil || b.Abort == nil {
			t.Errorf("srun is told %c %s (%v)", out[0], body, err)
		}
		out = out[head+len(body):]
	}
}

// lines is a connection that says what is in it, and keeps what it is told.
type lines struct {
	in  io.Reader
	out bytes.Buffer
}

func (l *lines) Read(b []byte) (int, error)       { return l.in.Read(b) }
func (l *lines) Write(b []byte) (int, error)      { return l.out.Write(b) }
func (l *lines) Close() error                     { return nil }
func (l *lines) LocalAddr() net.Addr              { return nil }
func (l *lines) RemoteAddr() net.Addr             { return nil }
func (l *lines) SetDeadline(time.Time) error      { return nil }
func (l *lines) SetReadDeadline(time.Time) error  { return nil }
func (l *lines) SetWriteDeadline(time.Time) error { return nil }

package image

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gbatch/oci/image/socket"

	"golang.org/x/sys/unix"
)

// process is a worker as the store sees it.
type process struct {
	workers *workers
	cmd     *exec.Cmd
	control *net.UnixConn
	dir     string     // its directory, below that of all workers
	said    *firstLine // on its standard error, if it died badly
	serves  atomic.Pointer[origin]
	numbers atomic.Int64
	done    chan struct{} // closed when it has ended
}

// hasDir says whether its directory is still there. Without it a worker can unpack nothing.
func (p *process) hasDir() bool {
	_, err := os.Lstat(p.dir)
	return err == nil
}

// gone says that a worker has ended.
func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end kills a worker; it has nothing to save.
func (p *process) end() { _ = p.cmd.Process.Kill() }

// number is a name for a new directory of this worker.
func (p *process) number() string { return strconv.FormatInt(p.numbers.Add(1), 10) }

const (
	giveUp   = 5 * time.Second // for a worker to break off a call
	maxReply = 64 << 20        // bytes of one reply: the directories of a layer may be many
)

// call makes a request and returns the last reply. When ctx ends the worker is
// told to break off, and waited for, so that it writes no more.
func (p *process) call(ctx context.Context, req request, seen func(int64)) (reply, error) {
	ours, theirs, err := socket.Pair(unix.SOCK_STREAM)
	if err != nil {
		return reply{}, classifyLocal(err)
	}
	defer ours.Close()
	err = socket.Send(p.control, packet{Call: true}, theirs)
	theirs.Close()
	if err != nil {
		return reply{}, p.died(err)
	}
	defer context.AfterFunc(ctx, func() {
		_ = ours.CloseWrite()
		_ = ours.SetReadDeadline(time.Now().Add(giveUp))
	})()
	if err := json.NewEncoder(ours).Encode(req); err != nil && ctx.Err() == nil {
		return reply{}, p.died(err)
	}
	bounded := &io.LimitedReader{R: ours}
	for in := json.NewDecoder(bounded); ; {
		bounded.N = maxReply
		var r reply
		if err := in.Decode(&r); err != nil {
			if ctx.Err() != nil {
				p.end() // it did not break off
				return r, context.Cause(ctx)
			}
			return r, p.died(err)
		}
		switch {
		case !r.Done && seen != nil:
			seen(r.Bytes)
		case r.Done && r.Error != nil:
			return r, r.Error.err()
		case r.Done:
			return r, nil
		}
	}
}

// died is the error of a call that the worker's end broke off. What it read
// may have made it end; that another may do better is worth a try.
func (p *process) died(err error) error {
	p.end()
	<-p.done
	if said := p.said.String(); said != "" {
		err = errors.New(said)
	}
	e := wrap(Internal, err, "the process that pulls it ended")
	e.Temporary = true
	return e
}

// serve answers what the worker asks, until it ends.
func (p *process) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var asked sync.WaitGroup
	slots := make(chan struct{}, maxAsks)
	for {
		var q packet
		file, err := socket.Receive(p.control, &q)
		if file != nil {
			file.Close() // it has nothing to give
		}
		if err != nil {
			break
		}
		slots <- struct{}{}
		asked.Go(func() {
			p.answer(ctx, q)
			<-slots
		})
	}
	cancel()
	asked.Wait()
	p.end()
	_ = p.cmd.Wait()
	p.control.Close()
	os.RemoveAll(p.dir)
	close(p.done)
}

// maxAsks is how many questions of one worker are answered at the same time.
const maxAsks = 32

// answer does one thing that a worker cannot do.
func (p *process) answer(ctx context.Context, q packet) {
	back := packet{Answer: q.Ask}
	var err error
	switch o := p.serves.Load(); {
	case o == nil:
		err = errors.New("no pull has begun")
	case q.Dial != "":
		var conn net.Conn
		if conn, err = p.workers.connect(ctx, q.Dial); err == nil {
			defer conn.Close()
			if c, ok := conn.(syscall.Conn); ok {
				_ = socket.Send(p.control, back, c)
				return
			}
			err = errors.New("the connection is no socket")
		}
	case q.Open != "":
		var f *os.File
		if f, err = o.open(q.Open); err == nil {
			defer f.Close()
			_ = socket.Send(p.control, back, f)
			return
		}
	case q.Take != "":
		if err = o.take(q.Take, func(f *os.File) { _ = socket.Send(p.control, back, f) }); err == nil {
			return
		}
	default:
		back.Bytes, back.Entries, err = p.workers.disk.promise(o, q.Bytes, q.Entries)
	}
	back.Error = wireErrorOf(err)
	_ = socket.Send(p.control, back, nil)
}

func (o *origin) open(name string) (*os.File, error) {
	if o.files == nil {
		return nil, errors.New("the image is not local")
	}
	return o.files.open(name)
}

// firstLine keeps the beginning of what is written to it.
type firstLine struct {
	mu   sync.Mutex
	text strings.Builder
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if room := 200 - f.text.Len(); room > 0 {
		f.text.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (f *firstLine) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, _, _ := strings.Cut(f.text.String(), "\n")
	return line
}

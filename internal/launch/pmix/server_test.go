package pmix

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix/wire"
)

// bench is a server of tasks 0 and 1 of four, without a network.
type bench struct {
	*Server
	said []launch.PMIx // to srun
}

func newBench() *bench {
	b := &bench{}
	b.Server = newServer(Config{Space: "secret", Job: "7.3", Nodes: []string{"n1", "n2"}, Layout: launch.Layout{Tasks: 4, Placed: []launch.Placed{
		{Tasks: []launch.Task{{ID: 0}, {ID: 1, Local: 1}}}, {Rank: 1, Tasks: []launch.Task{{ID: 2}, {ID: 3, Local: 1}}}}},
		Send: func(_ int, m launch.PMIx) { b.said = append(b.said, m) }, Print: func(int, bool, string) {}})
	return b
}

// peer lets a task in.
func (b *bench) peer(t testing.TB, task int) *peer {
	p, why := b.admit(&sink{}, wire.Hello{Proc: wire.Proc{Space: "secret", Rank: uint32(task)}, Format: "v41", Buffers: wire.Plain, Version: wire.Version{Major: 4, Minor: 2}})
	if p == nil {
		t.Fatal("task is not let in: ", why)
	}
	return p
}

// ask sends a request, and does what the server wants to tell srun.
func (b *bench) ask(p *peer, tag uint32, c wire.Command, parts ...wire.Value) {
	w := wire.Writer{Format: p.format}
	w.Put(wire.CommandNo, wire.Num(wire.CommandNo, uint64(c)))
	for _, v := range parts {
		w.Put(v.Type, v)
	}
	b.take(p, wire.Frame{Tag: tag, Body: w.Buf})
	b.flush()
}

func (b *bench) flush() {
	list := b.outbox
	b.outbox = nil
	for _, do := range list {
		do()
	}
}

// put commits a value of a task.
func (b *bench) put(p *peer, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := merge(nil, []wire.KV{{Key: key, Value: wire.Text("of " + key)}})
	if old := b.data[p.task]; old != nil {
		list = merge(old.node, list)
	}
	b.keep(p.task, &put{node: list, other: list, size: len(encode(list))})
	for w := range b.waits {
		b.look(w)
	}
}

// answers are the statuses that a task was answered, by tag.
func (p *peer) answers(t testing.TB) map[uint32]wire.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := map[uint32]wire.Status{}
	for _, b := range p.out {
		f, err := wire.ReadFrame(bytes.NewReader(b), maxMessage)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[f.Tag]; twice {
			t.Errorf("request %d is answered twice", f.Tag)
		}
		got[f.Tag] = wire.Status(int32(wire.NewReader(p.format, f.Body).Number(wire.StatusCode)))
	}
	return got
}

var none = wire.Num(wire.Size, 0)

func get(space string, rank uint32, key string, infos ...wire.Info) []wire.Value {
	list := []wire.Value{wire.Text(space), wire.Num(wire.RankNo, uint64(rank)), wire.Num(wire.Size, uint64(len(infos)))}
	for _, i := range infos {
		list = append(list, wire.Value{Type: wire.InfoEntry, Data: i})
	}
	return append(list, wire.Text(key))
}

// TestGet: what one asks for is waited for as long as it may come.
func TestGet(t *testing.T) {
	now := wire.Info{Key: "pmix.immediate"}
	for name, c := range map[string]struct {
		rank  uint32
		key   string
		infos []wire.Info
		after time.Duration
		want  wire.Status
	}{
		"there":          {rank: 1, key: "a", want: wire.OK},
		"whichever":      {rank: wire.NoRank, key: "a", want: wire.OK},
		"other-key":      {rank: 1, key: "b", after: keyTime, want: wire.NotFound},
		"other-key-late": {rank: 1, key: "late", after: time.Second, want: wire.OK},
		"in-time":        {rank: 1, key: "b", infos: []wire.Info{{Key: "pmix.timeout", Value: wire.Num(wire.Int, 1)}}, after: time.Second, want: wire.TimedOut},
		"now":            {rank: 1, key: "b", infos: []wire.Info{now}, want: wire.NotFound},
		"of-the-job":     {rank: 1, key: "pmix.cpuset", want: wire.NotFound},
		"no-task":        {rank: 9, key: "a", want: wire.NotFound},
		"all-tasks":      {rank: wire.AllRanks, key: "a", want: wire.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				p, q := b.peer(t, 0), b.peer(t, 1)
				b.put(q, "a")
				time.AfterFunc(time.Second, func() { b.put(q, "late") })
				began := time.Now()
				b.ask(p, 100, wire.Get, get("secret", c.rank, c.key, c.infos...)...)
				for len(p.answers(t)) == 0 {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if got := p.answers(t)[100]; got != c.want || time.Since(began) != c.after {
					t.Errorf("%d after %v, want %d after %v", got, time.Since(began), c.want, c.after)
				}
				time.Sleep(time.Hour) // nothing comes later
				synctest.Wait()
				p.answers(t)
				if p.open != 0 || len(b.waits) != 0 {
					t.Errorf("%d requests are open, %d waits", p.open, len(b.waits))
				}
			})
		})
	}
}

// TestGetEnded: who waits for a task that ends is told.
func TestGetEnded(t *testing.T) {
	b := newBench()
	p := b.peer(t, 0)
	b.ask(p, 100, wire.Get, get("secret", 1, "a")...)
	if got := p.answers(t); len(got) != 0 {
		t.Fatalf("answered before: %v", got)
	}
	b.Ended(1)
	if got := p.answers(t); got[100] != wire.NotFound {
		t.Errorf("answered %v", got)
	}
}

// TestFence: those who wait go on together, and one that asks twice waits twice.
func TestFence(t *testing.T) {
	all := []wire.Value{wire.Num(wire.Size, 1), {Type: wire.ProcID, Data: wire.Proc{Space: "secret", Rank: wire.NodePeers}}, none}
	b := newBench()
	p, q := b.peer(t, 0), b.peer(t, 1)
	b.ask(p, 100, wire.Fence, all...)
	b.ask(p, 101, wire.Fence, all...)
	if got := p.answers(t); len(got) != 0 {
		t.Fatalf("alone it is answered %v", got)
	}
	b.ask(q, 100, wire.Fence, all...)
	if diff := gocmp.Diff(map[uint32]wire.Status{100: wire.OK}, p.answers(t)); diff != "" {
		t.Errorf("once (-want +got):\n%s", diff)
	}
	b.ask(q, 101, wire.Fence, all...)
	if diff := gocmp.Diff(map[uint32]wire.Status{100: wire.OK, 101: wire.OK}, p.answers(t)); diff != "" {
		t.Errorf("twice (-want +got):\n%s", diff)
	}
	for name, rank := range map[string]uint32{"without-itself": 1, "no-task": 4} {
		r := b.peer(t, 0)
		b.ask(r, 100, wire.Fence, wire.Num(wire.Size, 1), wire.Value{Type: wire.ProcID, Data: wire.Proc{Space: "secret", Rank: rank}}, none)
		if got := r.answers(t); got[100] != wire.BadParameter {
			t.Errorf("%s: %v", name, got)
		}
	}
	if b.said != nil || len(b.fences) != 0 {
		t.Errorf("srun is told %v, %d fences are left", b.said, len(b.fences))
	}
}

// TestFenceStuck: where a task has ended that others wait for, the step ends.
func TestFenceStuck(t *testing.T) {
	for name, before := range map[string]bool{"before": true, "after": false} {
		b := newBench()
		p := b.peer(t, 0)
		if before {
			b.Ended(1)
		}
		b.ask(p, 100, wire.Fence, wire.Num(wire.Size, 1), wire.Value{Type: wire.ProcID, Data: wire.Proc{Space: "secret", Rank: wire.AllRanks}}, none)
		if !before {
			b.Ended(1)
			b.flush()
		}
		want := []launch.PMIx{{Abort: &launch.PMIxAbort{Text: "has ended before MPI_Finalize"}}}
		if diff := gocmp.Diff(want, b.said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAgain: a program that a task starts after another does not see what the first
// has put, and one beside it does.
func TestAgain(t *testing.T) {
	b := newBench()
	p := b.peer(t, 1)
	b.put(p, "a")
	b.peer(t, 1)
	if b.data[1] == nil {
		t.Error("one beside another takes away what that has put")
	}
	clear(b.peers)
	b.peer(t, 1)
	if b.data[1] != nil || b.size != 0 {
		t.Errorf("there is still %v, %d bytes", b.data[1], b.size)
	}
}

// TestFacts: clients of each age are told of nodes as they know it.
func TestFacts(t *testing.T) {
	for name, c := range map[string]struct {
		version wire.Version
		format  string
		want    string
	}{
		"2.1": {wire.Version{Major: 2, Minor: 1}, "v21", "nodeid local.size node.size lldr lpeers mblob"},
		"3.1": {wire.Version{Major: 3, Minor: 1, Release: 5}, "v3", "nodeid local.size node.size lldr lpeers mblob"},
		"3.2": {wire.Version{Major: 3, Minor: 2}, "v3", "node.arr node.arr"},
		"4.2": {wire.Version{Major: 4, Minor: 2, Release: 2}, "v41", "node.arr node.arr"},
	} {
		b := newBench()
		p := b.peer(t, 0)
		p.version, p.format = c.version, wire.Formats[c.format]
		r := wire.NewReader(p.format, b.jobFacts(p))
		if space := r.Text(); space != "secret" {
			t.Errorf("%s: of %q", name, space)
		}
		var keys []string
		for _, kv := range r.KVs() {
			keys = append(keys, strings.TrimPrefix(kv.Key, "pmix."))
		}
		want := "jobid job.size univ.size max.size app.size job.napps num.nodes spawned aldr nlist " + c.want + strings.Repeat(" pblob", 4)
		if diff := gocmp.Diff(want, strings.Join(keys, " ")); diff != "" || r.Err() != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, r.Err(), diff)
		}
	}
}

// TestStranger: who does not know the name of the step, or is none of its tasks
// here, is told nothing.
func TestStranger(t *testing.T) {
	r := newRanks(t, 2)
	hello := func(kind byte, space string, rank uint32, format string) []byte {
		body := append([]byte("native\x00\x00\x00\x00\x00"), kind)
		body = append(append(body, space...), 0)
		body = binary.BigEndian.AppendUint32(body, rank)
		body = append(append(body, "4.2.2\x00"+format...), 0, wire.Plain)
		body = append(body, "hash\x00"...)
		head := make([]byte, 16)
		binary.NativeEndian.PutUint32(head[8:], uint32(len(body)))
		return append(head, body...)
	}
	const space = "slurm.pmix.7.3.secret"
	for name, c := range map[string]struct {
		said []byte
		want []byte
	}{
		"task":        {hello(0, space, 1, "v41"), wire.Welcome(1)},
		"other-space": {hello(0, "slurm.pmix.7.3", 1, "v41"), wire.Refuse(wire.NotFound)},
		"elsewhere":   {hello(0, space, 2, "v41"), wire.Refuse(wire.NotFound)},
		"no-task":     {hello(0, space, 1<<31, "v41"), wire.Refuse(wire.NotFound)},
		"format":      {hello(0, space, 1, "v12"), wire.Refuse(wire.NotSupported)},
		"tool":        {hello(4, space, 1, "v41"), wire.Refuse(wire.NotSupported)},
		"noise":       {bytes.Repeat([]byte{0xff}, 64), nil},
	} {
		conn, err := net.Dial("tcp", r.servers[0].at.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(c.said)
		_ = conn.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(conn) // it may be cut off
		if conn.Close(); !bytes.Equal(got, c.want) {
			t.Errorf("%s is answered %x, want %x", name, got, c.want)
		}
	}
}

// FuzzTake has a task say anything: each request is answered once at most, what is
// kept of it is bounded, and it is never taken for another task.
func FuzzTake(f *testing.F) {
	w := wire.Writer{Format: wire.Format{Flex: true}}
	for _, v := range get("secret", 1, "a") {
		w.Put(v.Type, v)
	}
	f.Add(byte(wire.Get), w.Buf, byte(wire.Finalize), []byte{})
	f.Add(byte(wire.Fence), []byte{2, 1, 2, 14, 's', 'e', 'c', 'r', 'e', 't', 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 2, 0}, byte(wire.Abort), []byte{2, 2, 2, 0})
	f.Add(byte(wire.Commit), []byte{2, 1, 2, 1, 0}, byte(wire.Log), []byte{2, 0, 2, 0})
	f.Fuzz(func(t *testing.T, first byte, a []byte, second byte, c []byte) {
		b := newBench()
		p := b.peer(t, 0)
		for k, f := range [][]byte{append([]byte{2, first}, a...), append([]byte{2, second}, c...), append([]byte{2, first}, a...)} {
			if !b.take(p, wire.Frame{Tag: uint32(100 + k), Body: f}) {
				break
			}
			b.flush()
		}
		for _, m := range b.said {
			if m.Want != nil {
				m.Want.Done = true
				b.Receive(m)
			}
		}
		p.answers(t)
		for task := range b.data {
			if task != 0 && b.own[task] {
				t.Errorf("it has put something for task %d", task)
			}
		}
		for _, f := range b.fences {
			if len(f.arrived) != 1 || !f.arrived[0] || !slices.Contains(f.tasks, 0) {
				t.Errorf("it waits as %v", f.arrived)
			}
		}
		b.Close()
	})
}

// sink is a connection that takes all and says nothing.
type sink struct{ net.Conn }

func (*sink) Close() error { return nil }

package srun

import (
	"net"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/launch"
)

// tellers are the ranks of a step with two tasks each, and what srun says to them.
type tellers struct {
	run *run
	w   *watch
	far []*launch.Conn
}

func newTellers(t *testing.T, ranks int) *tellers {
	t.Helper()
	s := &tellers{w: &watch{kill: stopped(), fences: map[string]*fence{}}}
	s.run = &run{o: &options{}, info: &launch.Info{}, layout: &launch.Layout{Tasks: 2 * ranks}}
	s.run.ended = newEnds(s.run)
	for k := range ranks {
		near, far := pair(t)
		at := launch.Placed{Rank: k, Tasks: []launch.Task{{ID: 2 * k}, {ID: 2*k + 1}}}
		s.run.layout.Placed = append(s.run.layout.Placed, at)
		s.run.links = append(s.run.links, &link{Conn: near, at: at, name: "n"})
		s.far = append(s.far, far)
	}
	return s
}

// pair are both sides of a connection.
func pair(t *testing.T) (near, far *launch.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	i := &launch.Info{Secret: "s", Port: l.Addr().(*net.TCPAddr).Port, Nodes: []launch.Node{{Address: "127.0.0.1"}}}
	done := make(chan struct{})
	go func() { // awaited below
		defer close(done)
		if raw, err := l.Accept(); err == nil {
			far, _ = i.Accept(raw)
		}
	}()
	near, err = i.Dial(0, 10e9)
	<-done
	if err != nil || far == nil {
		t.Fatal("ranks and srun do not meet: ", err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// say has a rank say something.
func (s *tellers) say(t *testing.T, rank, task int, m launch.PMIx) {
	t.Helper()
	body, err := launch.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	s.run.pmix(s.w, s.run.links[rank], launch.Frame{Kind: launch.KindPMIx, Task: uint32(task), Body: body})
}

// told is the next thing that a rank is told.
func (s *tellers) told(t *testing.T, rank int) (m launch.PMIx) {
	t.Helper()
	f, err := s.far[rank].Next()
	if err == nil {
		err = f.Read(&m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fenceOf(tasks []int, data map[int][]byte) launch.PMIx {
	return launch.PMIx{Fence: &launch.PMIxFence{Tasks: tasks, Data: data}}
}

// TestFences: ranks go on when those have arrived that take part, with what the
// others have put.
func TestFences(t *testing.T) {
	s := newTellers(t, 3)
	a, b, c := []byte("a"), []byte("b"), []byte("c")
	s.say(t, 0, 0, fenceOf(nil, map[int][]byte{0: a}))
	s.say(t, 2, 4, fenceOf([]int{0, 4}, nil))
	s.say(t, 2, 5, launch.PMIx{Fence: &launch.PMIxFence{Data: map[int][]byte{5: b}, More: true}})
	s.say(t, 2, 5, fenceOf(nil, map[int][]byte{4: c}))
	s.say(t, 0, 0, fenceOf([]int{0, 4}, nil)) // two ranks have all they need
	if diff := cmp.Diff(fenceOf([]int{0, 4}, nil), s.told(t, 0)); diff != "" {
		t.Errorf("of two (-want +got):\n%s", diff)
	}
	s.told(t, 2)
	s.say(t, 1, 3, fenceOf(nil, nil))
	for rank, want := range []map[int][]byte{{4: c, 5: b}, {0: a, 4: c, 5: b}, {0: a}} {
		if diff := cmp.Diff(fenceOf(nil, want), s.told(t, rank)); diff != "" {
			t.Errorf("rank %d (-want +got):\n%s", rank, diff)
		}
	}
	if len(s.w.fences) != 0 {
		t.Errorf("%d fences are left", len(s.w.fences))
	}
}

// TestWant: what one rank wants of another is passed there and back, and is not
// there if that has gone.
func TestWant(t *testing.T) {
	s := newTellers(t, 2)
	want := launch.PMIxWant{From: 0, ID: 7, Task: 3, Key: "k"}
	s.say(t, 0, 0, launch.PMIx{Want: &want})
	if diff := cmp.Diff(launch.PMIx{Want: &want}, s.told(t, 1)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	answer := want
	answer.Done, answer.Data = true, []byte("v")
	s.say(t, 1, 3, launch.PMIx{Want: &answer})
	if diff := cmp.Diff(launch.PMIx{Want: &answer}, s.told(t, 0)); diff != "" {
		t.Errorf("answered (-want +got):\n%s", diff)
	}
	s.run.links[1].over = true
	s.say(t, 0, 0, launch.PMIx{Want: &want})
	gone := want
	gone.Done, gone.Status = true, notFound
	if diff := cmp.Diff(launch.PMIx{Want: &gone}, s.told(t, 0)); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}

// TestAborts: a step ends with the code that a task gave, or as those that are
// killed do where one has just gone; one that is ending is left alone.
func TestAborts(t *testing.T) {
	for name, c := range map[string]struct {
		codes  []*int
		ending bool
		killed bool
		want   int
	}{
		"code":       {codes: []*int{new(9), new(3)}, killed: true, want: 9},
		"wide":       {codes: []*int{new(-1)}, killed: true, want: 255},
		"zero":       {codes: []*int{new(0)}, killed: true, want: 1},
		"gone":       {codes: []*int{nil}, killed: true, want: 137},
		"ending":     {codes: []*int{nil}, ending: true, want: 137},
		"then-asked": {codes: []*int{nil, new(9)}, ending: true, killed: true, want: 9},
	} {
		s := newTellers(t, 1)
		s.run.ending = c.ending
		for _, code := range c.codes {
			s.say(t, 0, 1, launch.PMIx{Abort: &launch.PMIxAbort{Code: code, Text: "did that"}})
		}
		s.run.ended.take(s.run.links[0], 0, launch.Exit{Code: 137, Signal: 9})
		if code, _ := s.run.ended.result(); code != c.want || s.run.killed != c.killed {
			t.Errorf("%s: code %d, killed %v, want %d, %v", name, code, s.run.killed, c.want, c.killed)
		}
	}
}

// TestStuck: where all tasks of a rank have ended that others wait for, the step
// ends, in whichever order that comes.
func TestStuck(t *testing.T) {
	for _, first := range []bool{false, true} {
		s := newTellers(t, 3)
		end := func() { s.run.links[1].over = true; s.run.stuck(s.w) }
		if first {
			end()
		}
		s.say(t, 0, 0, fenceOf(nil, nil))
		s.say(t, 2, 4, fenceOf([]int{0, 4}, nil))
		if !first {
			end()
		}
		if !s.run.killed {
			t.Errorf("first %v: it goes on", first)
		}
		if diff := cmp.Diff([]int{0, 2}, s.sent(t, launch.KindSignal)); diff != "" {
			t.Errorf("first %v: killed (-want +got):\n%s", first, diff)
		}
	}
}

// sent are the ranks whose next frame is of a kind.
func (s *tellers) sent(t *testing.T, kind launch.Kind) (ranks []int) {
	t.Helper()
	for k, far := range s.far {
		if s.run.links[k].over {
			continue
		}
		f, err := far.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == kind {
			ranks = append(ranks, k)
		}
	}
	slices.Sort(ranks)
	return ranks
}

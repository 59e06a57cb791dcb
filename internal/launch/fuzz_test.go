package launch

import (
	"bufio"
	"bytes"
	"testing"
)

// FuzzFrames reads anything as what a connection of srun's brings: a frame is as
// long as was sent, and an order for a step is refused or has a layout that its
// ranks can hold.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("r\x00\x00\x00\x00\x00\x00\x00\x0b{\"tasks\":3}"))
	f.Add([]byte("r\x00\x00\x00\x00\x00\x00\x00\x30{\"tasks\":9223372036854775807,\"cpus\":-1,\"gpus\":2} "))
	f.Add([]byte("r\x00\x00\x00\x00\x00\x00\x00\x33{\"tasks\":4,\"distribution\":\"plane=2\",\"gpuBind\":\"map_gpu:\"}"))
	f.Add([]byte("o\xff\xff\xff\xff\xff\xff\xff\xff"))
	info := &Info{Job: 7, Nodes: []Node{{Name: "a", CPUs: 4, GPUs: 2}, {Name: "b", CPUs: 2}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Conn{in: bufio.NewReader(bytes.NewReader(data))}
		for read := 0; ; {
			frame, err := c.Next()
			if err != nil {
				return
			}
			if read += 9 + len(frame.Body); read > len(data) {
				t.Fatalf("%d bytes were read of %d", read, len(data))
			}
			var q Request
			if frame.Kind != KindReserve || frame.Read(&q) != nil {
				continue
			}
			free := info.AllFree()
			l, err := info.Plan(free, q)
			if err != nil {
				continue
			}
			tasks := 0
			for _, p := range l.Placed {
				if tasks += len(p.Tasks); p.Rank < 0 || p.Rank >= len(info.Nodes) {
					t.Errorf("%+v is on rank %d", q, p.Rank)
				}
			}
			if tasks != l.Tasks {
				t.Errorf("%+v has %d of %d tasks", q, tasks, l.Tasks)
			}
			Release(free, l, q)
		}
	})
}

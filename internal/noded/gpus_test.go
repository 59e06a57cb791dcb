package noded

import (
	"context"
	"strings"
	"sync"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/devices"
)

// withGPUs grants whole GPUs.
func withGPUs(list ...node.GPU) func(*api.RunOrder) {
	return func(o *api.RunOrder) {
		for _, g := range list {
			o.Allocation.GPUs = append(o.Allocation.GPUs, api.GPUShare{UUID: g.UUID, Milli: 1000})
		}
		o.Spec.Request.Resources.GPUs = float64(len(list))
	}
}

// offered waits for an inventory with GPUs.
func (s *site) offered() node.Inventory {
	s.t.Helper()
	var inv node.Inventory
	s.await("GPUs", func() bool {
		if s.inv != nil {
			inv = *s.inv
		}
		return len(inv.GPUs) > 0
	})
	return inv
}

// Jobs on a simulated node are told of their GPUs and get none.
func TestSimulatedGPUs(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.GPU.Simulate = "h100:3,a100:1" }).start()
	inv := s.offered()
	gpus := inv.GPUs
	if len(gpus) != 4 || !inv.Simulated || inv.CUDA != 1204 || inv.Driver == "" {
		t.Fatalf("inventory: %+v", inv)
	}
	line := `echo "$CUDA_VISIBLE_DEVICES|$NVIDIA_VISIBLE_DEVICES|$GPULAB_GPUS_RESERVED|$GBATCH_NUM_GPUS|$GBATCH_SIMULATED_GPUS"; ls /dev | grep -c nvidia`
	_, out := s.run(rankID(1), order(line, withGPUs(gpus[1], gpus[3])))
	want := "0,1|" + gpus[1].UUID + "," + gpus[3].UUID + "|1,3|2|1\n0\n"
	if out != want {
		t.Errorf("a job saw %q, want %q", out, want)
	}
	if e, _ := s.runNoLog(rankID(2), order("true", withGPUs(node.GPU{UUID: "GPU-other"}))); e.Reason != job.GPUError ||
		!strings.Contains(e.Message, "no GPU GPU-other") {
		t.Errorf("a GPU of another node: %+v", e)
	}
	s.holdsNothing()
}

// A restart offers the same GPUs.
func TestSimulatedGPUsStay(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.GPU.Simulate = "h100:1" }).start()
	before := s.offered().GPUs[0].UUID
	s.halt()
	s.mu.Lock()
	s.inv = nil
	s.mu.Unlock()
	s.start()
	if after := s.offered().GPUs[0].UUID; after != before {
		t.Errorf("GPU %s became %s", before, after)
	}
}

// failing are simulated GPUs that a test can lose.
type failing struct {
	devices.Devices
	mu      sync.Mutex
	lost    string // text for the GPU whose UUID is in it
	changed chan struct{}
	onRead  func() // what Refresh finds
}

func newFailing(t *testing.T) *failing {
	cfg := config.Config{Name: t.Name(), StateDir: t.TempDir(), GPU: config.GPU{Simulate: "h100:2"}}
	sim, err := devices.Open(&cfg, "", nil, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	return &failing{Devices: sim, changed: make(chan struct{}, 1)}
}

func (f *failing) lose(text string) {
	f.mu.Lock()
	f.lost = text
	f.mu.Unlock()
}

func (f *failing) Lost(uuids []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range uuids {
		if strings.Contains(f.lost, id) {
			return f.lost
		}
	}
	return ""
}

func (f *failing) Refresh(context.Context) {
	if f.onRead != nil {
		f.onRead()
	}
}

func (f *failing) Watch(ctx context.Context, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			changed()
		}
	}
}

// A GPU that is lost ends the ranks on it, and no others.
func TestLostGPU(t *testing.T) {
	f := newFailing(t)
	s := newSite(t, nil)
	s.devices = f
	s.start()
	gpus := s.offered().GPUs
	s.want(rankID(1), order(patient, withGPUs(gpus[0])))
	s.want(rankID(2), order(patient, withGPUs(gpus[1])))
	s.ready(rankID(1))
	s.ready(rankID(2))
	text := "GPU " + gpus[0].UUID + " fell off the bus"
	f.lose(text)
	f.changed <- struct{}{}
	if e := s.exit(rankID(1)); e.Reason != job.GPUError || e.Message != text || e.Code != 9 {
		t.Errorf("rank on the lost GPU: %+v", e)
	}
	s.stop(rankID(2), api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser})
	if e := s.exit(rankID(2)); e.Reason != job.ByUser {
		t.Errorf("rank on the other GPU: %+v", e)
	}
	s.empty()
}

// A program that fails because its GPU was lost is not to blame, and is not
// asked to prove it: the GPUs are looked at when it ends.
func TestBlameGPU(t *testing.T) {
	f := newFailing(t)
	s := newSite(t, nil)
	s.devices = f
	gpus := f.Inventory().GPUs
	f.onRead = func() { f.lose("GPU " + gpus[0].UUID + " fell off the bus") }
	s.start()
	cases := map[string]struct {
		line   string
		gpu    int
		reason job.Reason
	}{
		"failed": {"exit 3", 0, job.GPUError},
		"killed": {"sleep 9 & kill -9 $!; wait $!", 0, job.GPUError},
		"well":   {"exit 0", 0, job.None},
		"other":  {"exit 3", 1, job.ExitCode},
	}
	n := 1
	for name, tc := range cases {
		id := rankID(n)
		n++
		t.Run(name, func(t *testing.T) {
			f.lose("")
			e, _ := s.run(id, order(tc.line, withGPUs(gpus[tc.gpu])))
			if e.Reason != tc.reason {
				t.Errorf("exit: %+v, want %s", e, tc.reason)
			}
		})
	}
	f.lose("")
	e, _ := s.runNoLog(rankID(n), order("", withGPUs(gpus[0]), func(o *api.RunOrder) {
		o.Spec.Request.Docker.Command = job.Command{Argv: []string{"/no/such/program"}}
	}))
	if e.Reason != job.GPUError {
		t.Errorf("not begun: %+v", e)
	}
	s.holdsNothing()
}

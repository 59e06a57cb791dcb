package gpu

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/gpu/setup"
)

// bench is a monitor over GPUs that a test spoils between two readings.
type bench struct {
	*monitor
	t   *testing.T
	lib *simulated
	now time.Time
	log bytes.Buffer

	mu     sync.Mutex
	events []nvml.EventData
}

func newBench(t *testing.T, spec string) *bench {
	b := &bench{t: t, lib: fake(t, spec), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b.lib.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			FreeFunc: func() nvml.Return { return nvml.SUCCESS },
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				b.mu.Lock()
				defer b.mu.Unlock()
				if len(b.events) == 0 {
					return nvml.EventData{}, nvml.ERROR_TIMEOUT
				}
				e := b.events[0]
				b.events = b.events[1:]
				return e, nvml.SUCCESS
			},
		}, nvml.SUCCESS
	}
	m, err := newMonitor(b.lib, setup.Limits{}, Memory{}, slog.New(slog.NewTextHandler(&b.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	m.Now = func() time.Time { return b.now }
	b.monitor = m
	return b
}

func (b *bench) poll() {
	b.t.Helper()
	if err := b.monitor.poll(); err != nil {
		b.t.Fatal(err)
	}
}

// want checks what is said of each GPU, in order: a part of the text, or
// nothing for one that is well.
func (b *bench) want(texts ...string) {
	b.t.Helper()
	inv := b.Inventory()
	if len(inv.GPUs) != len(texts) {
		b.t.Fatalf("%d GPUs, want %d: %+v", len(inv.GPUs), len(texts), inv.GPUs)
	}
	for i, g := range inv.GPUs {
		if g.Index != i {
			b.t.Errorf("GPU %d has index %d", i, g.Index)
		}
		if texts[i] == "" && g.Unhealthy != "" || !strings.Contains(g.Unhealthy, texts[i]) {
			b.t.Errorf("GPU %d: %q, want %q", i, g.Unhealthy, texts[i])
		}
	}
}

func (b *bench) xid(i int, n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, nvml.EventData{Device: b.lib.at(i), EventType: nvml.EventTypeXidCriticalError, EventData: n})
}

func TestXID(t *testing.T) {
	b := newBench(t, "h100:3")
	b.xid(0, 13) // the job's own
	b.xid(1, 79)
	b.xid(2, 4242) // nobody knows it
	b.poll()
	b.want("", "fell off the bus (XID 79)", "XID 4242")
	b.poll()
	b.want("", "XID 79", "XID 4242") // told once, remembered
	if f := b.Fault([]string{b.lib.at(0).UUID, b.lib.at(1).UUID}); !f.Lost || !strings.Contains(f.Text, b.lib.at(1).UUID) {
		t.Errorf("fault of both: %+v", f)
	}
	if f := b.Fault([]string{b.lib.at(0).UUID}); f != (fault{}) {
		t.Errorf("fault of the well one: %+v", f)
	}
	if log := b.log.String(); !strings.Contains(log, "illegal access (XID 13)") || strings.Count(log, "XID 79") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// Each XID of the table says something, and none of NVIDIA's fatal ones is
// taken for a job's mistake.
func TestXIDTable(t *testing.T) {
	for n, x := range xids {
		if x.text == "" {
			t.Errorf("XID %d has no text", n)
		}
	}
	for _, n := range []uint64{48, 62, 64, 74, 79, 95, 119, 120, 140, 143, 999} {
		if text, fault := xidFault(n); !fault || text == "" {
			t.Errorf("XID %d is no fault", n)
		}
	}
	for _, n := range []uint64{13, 31, 43, 45, 63, 68, 94, 109} {
		if text, fault := xidFault(n); fault {
			t.Errorf("XID %d is a fault: %s", n, text)
		}
	}
}

func TestXIDOfInstances(t *testing.T) {
	b := newBench(t, "h100:2")
	cut(b.lib.at(0), "MIG-a", "MIG-b")
	b.poll()
	b.want("", "", "")
	b.xid(0, 48)
	b.poll()
	b.want("uncorrectable", "uncorrectable", "")
}

func TestMemoryErrors(t *testing.T) {
	b := newBench(t, "h100:2")
	b.lib.at(1).GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 2, nvml.SUCCESS }
	b.poll()
	b.want("", "2 uncorrectable memory errors")
	b.lib.at(1).GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		return 0, nvml.ERROR_NOT_SUPPORTED // a GPU without ECC
	}
	b.poll()
	b.want("", "until a moment ago: 2 uncorrectable memory errors")
	b.now = b.now.Add(wellFor)
	b.poll()
	b.want("", "")
	b.lib.at(1).GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 8, false, true, nvml.SUCCESS }
	b.poll()
	b.want("", "replace the GPU")
}

// Heat goes away by itself, but not within a moment, and ends no job.
func TestHeat(t *testing.T) {
	b := newBench(t, "h100:1")
	temperature := func(n uint32) {
		b.lib.at(0).GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return n, nvml.SUCCESS }
		b.poll()
	}
	temperature(89)
	b.want("")
	temperature(93)
	b.want("too hot, 93 °C of at most 90")
	if b.Fault([]string{b.lib.at(0).UUID}).Lost {
		t.Error("a hot GPU is lost")
	}
	b.now = b.now.Add(wellFor / 2)
	temperature(70)
	b.want("until a moment ago: it is too hot")
	b.now = b.now.Add(wellFor)
	temperature(70)
	b.want("")
}

// A GPU that NVML lists no more, lists without a handle, or that answers
// nothing stays listed under its own name and place.
func TestVanish(t *testing.T) {
	cases := map[string]func(*simulated){
		"unlisted": func(s *simulated) { s.Devices = append(s.Devices[:1:1], s.Devices[2]) },
		"nohandle": func(s *simulated) {
			next := s.DeviceGetHandleByIndexFunc
			s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if i == 1 {
					return nil, nvml.ERROR_GPU_IS_LOST
				}
				return next(i)
			}
		},
		"silent": func(s *simulated) {
			s.at(1).GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_GPU_IS_LOST }
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "h100:3")
			before := b.Inventory()
			spoil(b.lib)
			for range 2 {
				b.poll()
				b.want("", "it fell off the bus", "")
			}
			uuid := before.GPUs[1].UUID
			if got := b.Inventory().GPUs[1].UUID; got != uuid {
				t.Errorf("GPU 1 is %s, was %s", got, uuid)
			}
			if !b.Fault([]string{uuid}).Lost {
				t.Error("its jobs can go on")
			}
		})
	}
}

func TestVanishAndReturn(t *testing.T) {
	b := newBench(t, "h100:2")
	all := b.lib.Devices
	b.lib.Devices = all[:1]
	b.poll()
	b.want("", "it vanished")
	b.lib.Devices = all
	b.poll()
	b.want("", "")
	if log := b.log.String(); !strings.Contains(log, "GPU is well again") {
		t.Errorf("log:\n%s", log)
	}
}

// Cutting a device anew makes its old instances, or the device, go without
// anybody complaining.
func TestCutAnew(t *testing.T) {
	b := newBench(t, "h100:1")
	b.want("")
	cut(b.lib.at(0), "MIG-a", "MIG-b")
	b.poll()
	b.want("", "")
	cut(b.lib.at(0), "MIG-c")
	b.poll()
	b.want("")
	b.lib.at(0).MigMode = nvml.DEVICE_MIG_DISABLE
	b.poll()
	b.want("")
	b.lib.Devices = nil
	b.poll()
	b.want("it vanished")
}

func TestDriverGone(t *testing.T) {
	b := newBench(t, "h100:2")
	b.lib.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_DRIVER_NOT_LOADED }
	if err := b.monitor.poll(); err == nil {
		t.Error("no error")
	}
	b.want("the driver does not answer", "the driver does not answer")
}

// A driver that hangs must not hang the node, nor let it take jobs.
func TestDriverHangs(t *testing.T) {
	b := newBench(t, "h100:2")
	entered, leave := make(chan bool), make(chan bool)
	next := b.lib.DeviceGetCountFunc
	b.lib.DeviceGetCountFunc = func() (int, nvml.Return) {
		entered <- true
		<-leave
		return next()
	}
	done := make(chan error)
	go func() { done <- b.monitor.poll() }() // ends when the test lets it
	<-entered
	b.want("", "")
	b.now = b.now.Add(2 * hangAfter)
	b.want("has not answered since 2026-01-01T00:00:00Z", "has not answered")
	leave <- true
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.want("", "")
}

func TestSamples(t *testing.T) {
	b := newBench(t, "h100:2")
	cut(b.lib.at(1), "MIG-a")
	b.lib.at(0).GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 42, Memory: 7}, nvml.SUCCESS
	}
	b.lib.at(0).GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 5500, nvml.SUCCESS }
	b.lib.at(0).GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		if kind == nvml.MEMORY_ERROR_TYPE_CORRECTED {
			return 3, nvml.SUCCESS
		}
		return 0, nvml.SUCCESS
	}
	b.xid(0, 13)
	b.xid(0, 31)
	b.poll()
	none := sample("MIG-a", nil)
	none.MemUsedBytes, none.MemTotalBytes = 1<<30, 10<<30
	want := []Sample{
		{UUID: b.lib.at(0).UUID, Utilization: 42, MemCopy: 7, MemUsedBytes: 0, MemTotalBytes: 80 << 30, PowerWatts: 70, EnergyJ: 5.5, Celsius: 30,
			SMMHz: 345, MemMHz: 345, Corrected: 3, XID: 31, XIDs: 2},
		none,
	}
	if diff := cmp.Diff(want, b.Samples()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "h100:2")
		b.Now = time.Now
		ctx, cancel := context.WithCancel(t.Context())
		changes := 0
		done := make(chan bool)
		go func() { // ends with ctx
			b.Watch(ctx, 10*time.Second, func() { changes++ })
			close(done)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if changes != 0 {
			t.Errorf("%d changes of nothing", changes)
		}
		b.xid(0, 79)
		time.Sleep(time.Minute)
		synctest.Wait()
		if changes != 1 {
			t.Errorf("%d changes, want one", changes)
		}
		cancel()
		<-done
	})
}

func TestNoGPUs(t *testing.T) {
	m, err := newMonitor(nil, setup.Limits{}, Memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Watch(t.Context(), time.Second, nil) // returns at once
	if inv := m.Inventory(); len(inv.GPUs) != 0 || m.poll() != nil || m.Close() != nil {
		t.Errorf("inventory: %+v", inv)
	}
}

package rank

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/devices"
	"gbatch/oci/atomicfile"
)

// measureFirst is when a rank's use is looked at first, as a short job's is of no
// interest while it runs; measureEvery, how often from then on, as often as the
// GPUs themselves; meterSave is after how many looks it is saved, so that a
// restart of the daemon loses little of it.
const (
	measureFirst = time.Second
	measureEvery = devices.LookEvery
	meterSave    = 12
)

// meter adds up what a rank's GPUs did. It belongs to the rank's goroutine, and
// is saved in the rank's directory.
type meter struct {
	Use      node.GPUUse        `json:"use"`      // its Utilization is the sum of all samples
	Counters map[string]float64 `json:"counters"` // energy by GPU when it was looked at last, joules since the driver was loaded

	unsaved int
}

// look takes the samples of the rank's GPUs. The first look only notes where
// the counters of energy stand; so does the last with what they have grown by,
// as its samples may be older than the program's end.
func (m *meter) look(ids []string, samples []api.GPUSample, inv devices.Inventory, whole bool) {
	first := m.Counters == nil
	if first {
		m.Counters = map[string]float64{}
	}
	mem := map[string]int64{}
	for _, g := range inv.GPUs {
		mem[g.UUID] = g.MemBytes
	}
	mine := map[string]bool{}
	for _, id := range ids {
		mine[id] = true
	}
	m.Use.Simulated = inv.Simulated
	for _, s := range samples {
		if !mine[s.UUID] {
			continue
		}
		if s.EnergyJ != nil {
			if last, ok := m.Counters[s.UUID]; ok && *s.EnergyJ > last {
				m.Use.EnergyJ += *s.EnergyJ - last
			}
			m.Counters[s.UUID] = *s.EnergyJ
		}
		if first || !whole {
			continue
		}
		if u := s.Utilization; u != nil {
			m.Use.Samples++
			m.Use.Utilization += *u
			m.Use.MaxUtilization = max(m.Use.MaxUtilization, *u)
		}
		if s.MemUsed != nil && *s.MemUsed >= m.Use.MaxMem {
			m.Use.MaxMem, m.Use.Mem = *s.MemUsed, mem[s.UUID]
		}
	}
}

// result is what the GPUs did until now, nil if nobody has looked.
func (m *meter) result() *node.GPUUse {
	if m.Use.Samples == 0 {
		return nil
	}
	out := m.Use
	out.Utilization /= float64(out.Samples)
	return &out
}

func meterFile(dir string) string { return filepath.Join(dir, fileMeter) }

// loadMeter is a rank's meter as it was saved, or a new one: figures are no
// reason to fail.
func loadMeter(dir string) *meter {
	m := &meter{}
	if b, err := atomicfile.Read(meterFile(dir)); err != nil || json.Unmarshal(b, m) != nil {
		return &meter{}
	}
	return m
}

func (m *meter) save(dir string) error {
	m.unsaved = 0
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return atomicfile.Write(meterFile(dir), atomicfile.Sum(b))
}

// measure looks at what the rank uses. The last look, when it has ended, saves
// what its GPUs did for whoever tells of its end.
func (r *Rank) measure(last bool) {
	use := node.LiveUse{}
	if ids := r.order.gpus(); len(ids) > 0 {
		if r.meter == nil {
			r.meter = loadMeter(r.order.dir)
		}
		samples := r.node.Devices.Samples()
		r.meter.look(ids, samples, r.node.Devices.Inventory(), !last)
		use.GPU, use.GPUMem = r.meter.result(), gpuMemNow(ids, samples)
		if r.meter.unsaved++; last || r.meter.unsaved >= meterSave {
			if err := errors.Join(r.order.need(), r.meter.save(r.order.dir)); err != nil {
				r.log.Debug("what the GPUs did could be forgotten", "error", err)
			}
		}
	}
	if last {
		return
	}
	st, err := r.container.Stats()
	if err != nil {
		return // it has just ended
	}
	if use.CPUSeconds = float64(st.CPUNanos) / 1e9; r.shelter.home != nil {
		use.CPUSeconds = max(0, use.CPUSeconds-r.shelter.home.used)
	}
	use.Mem, use.PeakMem = int64(st.MemoryBytes), int64(max(st.PeakBytes, st.MemoryBytes))
	use.AtMS = time.Now().UnixMilli()
	if r.order.Spec.Network() == job.NetworkBridge {
		use.Net = networkNow(r.container.PID())
	}
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.used = &use
}

// gpusDid puts into a rank's end what was saved of its GPUs.
func gpusDid(dir string, out *node.Exit) *node.Exit {
	if out.StartedMS > 0 {
		out.GPU = loadMeter(dir).result()
	}
	return out
}

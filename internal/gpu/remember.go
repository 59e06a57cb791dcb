package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gbatch/oci/atomicfile"
)

// Memory is where faults are kept that the driver reports once, so that a restart of
// the program does not give back a GPU that nobody has reset.
type Memory struct {
	File string // empty: they are forgotten
	Boot string // of the machine: after another one they are gone
}

// remembered is such a fault. Energy is what the GPU's counter said then, in
// millijoules: it begins anew when the GPU does, and only grows between.
type remembered struct {
	Text   string `json:"text"`
	Energy uint64 `json:"energy"`
}

type memories struct {
	Boot   string                `json:"boot"`
	Faults map[string]remembered `json:"faults"`
}

// load reads what an earlier program was told.
func (m Memory) load() (map[string]remembered, error) {
	if m.File == "" {
		return map[string]remembered{}, nil
	}
	var all memories
	b, err := atomicfile.Read(m.File)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return map[string]remembered{}, fmt.Errorf("read what the driver has reported of GPUs: %w", err)
	}
	if all.Boot != m.Boot || all.Faults == nil {
		return map[string]remembered{}, nil
	}
	return all.Faults, nil
}

// save makes them durable.
func (m Memory) save(faults map[string]remembered) error {
	if m.File == "" {
		return nil
	}
	b, err := json.Marshal(memories{m.Boot, faults})
	if err == nil {
		err = atomicfile.WriteDurable(m.File, atomicfile.Sum(b))
	}
	if err != nil {
		return fmt.Errorf("a restart could give back a GPU that was not reset: %w", err)
	}
	return nil
}

// energy is a device's counter, 0 where it has none.
func energy(handle nvml.Device) uint64 {
	if handle == nil {
		return 0
	}
	if n, ret := handle.GetTotalEnergyConsumption(); ret == nvml.SUCCESS {
		return n
	}
	return 0
}

// recall takes over the faults that were remembered, but of GPUs that have begun anew
// since. Called once, with the first reading.
func (m *monitor) recall(devices []device) {
	old, err := m.memory.load()
	if err != nil {
		m.log.Error("GPUs", "error", err)
	}
	known := len(old)
	for _, d := range devices {
		f, ok := old[d.uuid]
		if !ok {
			continue
		}
		if now := energy(d.handle); f.Energy > 0 && now > 0 && now < f.Energy {
			m.log.Info("GPU has begun anew since the driver reported a fault", "gpu", d.uuid, "was", f.Text)
			delete(old, d.uuid)
			continue
		}
		m.xids[d.uuid] = fault{Text: f.Text, Lost: true}
	}
	m.kept = old
	if len(old) < known {
		if err := m.memory.save(old); err != nil {
			m.log.Error("GPUs", "error", err)
		}
	}
}

// remember keeps the faults that the driver has reported and that are not kept yet.
func (m *monitor) remember(devices []device) {
	changed := false
	for _, d := range devices {
		if f, ok := m.xids[d.uuid]; ok && f.Text != "" && m.kept[d.uuid].Text == "" {
			m.kept[d.uuid] = remembered{f.Text, energy(d.handle)}
			changed = true
		}
	}
	if changed {
		if err := m.memory.save(m.kept); err != nil {
			m.log.Error("GPUs", "error", err)
		}
	}
}

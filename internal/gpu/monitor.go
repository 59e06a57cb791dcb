package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gbatch/internal/gpu/setup"
)

// monitor keeps an eye on a node's GPUs. Poll reads; every other method answers
// at once from what the last Poll found, also while one hangs in the driver.
type monitor struct {
	lib nvml.Interface // nil: no GPUs
	log *slog.Logger

	limits setup.Limits
	memory Memory
	kept   map[string]remembered // by device, of memory; nil: not read yet

	// Now is the clock, for tests. It must not be changed after the first use.
	Now func() time.Time

	pollMu sync.Mutex // one Poll at a time; guards what only Poll uses
	events nvml.EventSet
	watch  map[string]bool    // UUIDs of devices whose events come in
	xids   map[string]fault   // by device, until the program ends
	told   map[string]reports // by device, what its driver has reported
	course map[string]*course // by device

	mu      sync.Mutex
	inv     inventory
	faults  map[string]fault // by UUID of a GPU
	samples []Sample
	polling time.Time // since when a Poll runs; zero: none does
}

// reports are the error numbers of a device.
type reports struct{ last, count int64 }

// hangAfter is how long the driver may be silent before its GPUs are doubted.
const hangAfter = time.Minute

// newMonitor reads lib for the first time. lib is nil on a node without GPUs.
// An error means that the driver lists nothing.
func newMonitor(lib nvml.Interface, limits setup.Limits, memory Memory, log *slog.Logger) (*monitor, error) {
	m := &monitor{
		lib: lib, log: log, limits: limits, memory: memory, Now: time.Now,
		watch: map[string]bool{}, xids: map[string]fault{}, told: map[string]reports{}, course: map[string]*course{},
		faults: map[string]fault{},
	}
	m.log = cmp.Or(m.log, slog.Default())
	if lib == nil {
		return m, nil
	}
	if set, ret := lib.EventSetCreate(); ret == nvml.SUCCESS {
		m.events = set
	} else {
		m.log.Warn("GPU events are not available", "error", ret.Error())
	}
	return m, m.poll()
}

// Inventory is what the last Poll found, less what has gone wrong since.
func (m *monitor) Inventory() inventory {
	m.mu.Lock()
	defer m.mu.Unlock()
	inv := m.inv
	inv.GPUs = slices.Clone(inv.GPUs)
	if silent := m.silentLocked(); silent != "" {
		for i := range inv.GPUs {
			inv.GPUs[i].Unhealthy = silent
		}
	}
	return inv
}

func (m *monitor) silentLocked() string {
	if m.polling.IsZero() || m.Now().Sub(m.polling) < hangAfter {
		return ""
	}
	return fmt.Sprintf("the driver has not answered since %s: see dmesg, the machine may need a reboot", m.polling.UTC().Format(time.RFC3339))
}

// Samples is what the GPUs were doing at the last Poll.
func (m *monitor) Samples() []Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.samples)
}

// Fault says what is wrong with any of the given GPUs, the worst first.
func (m *monitor) Fault(uuids []string) fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	var worst fault
	for _, id := range uuids {
		f := m.faults[id]
		if f.Text != "" && (worst.Text == "" || f.Lost && !worst.Lost) {
			worst = fault{Text: "GPU " + id + ": " + f.Text, Lost: f.Lost}
		}
	}
	return worst
}

// Watch polls at the given interval until ctx ends. changed is called after a
// Poll that made the inventory another one; nil is allowed.
func (m *monitor) Watch(ctx context.Context, interval time.Duration, changed func()) {
	if m.lib == nil {
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := m.Inventory()
		m.Refresh(ctx)
		if changed != nil && !sameInventory(before, m.Inventory()) {
			changed()
		}
	}
}

func sameInventory(a, b inventory) bool {
	return a.Driver == b.Driver && a.CUDA == b.CUDA && slices.EqualFunc(a.GPUs, b.GPUs, func(x, y GPU) bool {
		return x.UUID == y.UUID && x.Unhealthy == y.Unhealthy && x.MemBytes == y.MemBytes && slices.Equal(x.Links, y.Links)
	})
}

// poll reads inventory, health and samples now. When nothing can be read, the
// GPUs stay listed as unhealthy and the error says why.
func (m *monitor) poll() error {
	if m.lib == nil {
		return nil
	}
	m.pollMu.Lock()
	defer m.pollMu.Unlock()
	m.setPolling(m.Now())
	defer m.setPolling(time.Time{})

	r := newReader(m.lib)
	inv, devices, err := r.discover()
	if err != nil {
		m.publishError(err)
		return err
	}
	if m.kept == nil {
		m.recall(devices)
	}
	m.listen(devices)
	m.drain()
	m.remember(devices)
	faults := map[string]fault{}
	var samples []Sample
	now, most := m.conditions(devices)
	for _, d := range devices {
		f := m.deviceFault(d, now[d.uuid], most[d.gpus[0].Model])
		for _, g := range d.gpus {
			s := sample(g.UUID, d.handleOf(g))
			s.XID, s.XIDs = m.told[d.uuid].last, m.told[d.uuid].count
			samples = append(samples, s)
			switch {
			case f.Text != "":
				faults[g.UUID] = f
			case g.Unhealthy != "":
				faults[g.UUID] = fault{Text: g.Unhealthy}
			}
		}
	}
	m.publish(inv, faults, samples)
	return nil
}

func (m *monitor) setPolling(since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.polling = since
}

// handleOf finds the handle to sample a GPU by.
func (d *device) handleOf(g GPU) nvml.Device {
	if g.MIG == nil || d.handle == nil {
		return d.handle
	}
	n, _ := d.handle.GetMaxMigDeviceCount()
	for i := range n {
		h, ret := d.handle.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		if uuid, ret := h.GetUUID(); ret == nvml.SUCCESS && uuid == g.UUID {
			return h
		}
	}
	return nil
}

// conditions asks all devices, and finds how many NVLinks those of a model have at
// most. Instances of a device that was cut have none.
func (m *monitor) conditions(devices []device) (now map[string]condition, most map[string]int) {
	now, most = map[string]condition{}, map[string]int{}
	for _, d := range devices {
		if d.handle == nil {
			continue
		}
		c := readCondition(d.handle, m.limits)
		if d.gpus[0].MIG != nil {
			c.Links = -1
		}
		now[d.uuid] = c
		most[d.gpus[0].Model] = max(most[d.gpus[0].Model], c.Links)
	}
	return now, most
}

// deviceFault joins what the driver said once and what it says now. A fault that goes
// by itself has to be gone for a while.
func (m *monitor) deviceFault(d device, c condition, most int) fault {
	if f := m.xids[d.uuid]; f.Text != "" {
		return f
	}
	if d.handle == nil {
		return fault{Text: d.gpus[0].Unhealthy, Lost: true}
	}
	k := m.course[d.uuid]
	if k == nil {
		k = &course{}
		m.course[d.uuid] = k
	}
	judged := k.judge(c, m.limits, most, m.Now()) // always, as it remembers
	for _, f := range []fault{check(d.handle), heat(d.handle), judged} {
		if f.Text != "" {
			k.bad, k.was = m.Now(), f.Text
			return f
		}
	}
	if !k.bad.IsZero() && m.Now().Sub(k.bad) < wellFor {
		return fault{Text: "until a moment ago: " + k.was}
	}
	k.bad, k.was = time.Time{}, ""
	return fault{}
}

// listen registers for the events of devices that are new.
func (m *monitor) listen(devices []device) {
	if m.events == nil {
		return
	}
	const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError
	for _, d := range devices {
		if d.handle == nil || m.watch[d.uuid] {
			continue
		}
		kinds, ret := d.handle.GetSupportedEventTypes()
		if ret == nvml.SUCCESS && kinds&wanted != 0 {
			ret = d.handle.RegisterEvents(kinds&wanted, m.events)
		}
		if ret != nvml.SUCCESS {
			m.log.Warn("GPU reports no events", "gpu", d.uuid, "error", ret.Error())
		}
		m.watch[d.uuid] = true
	}
}

// maxEvents bounds one drain: a GPU in trouble may report without end.
const maxEvents = 1000

// drain takes in the events that wait. It does not wait for any.
func (m *monitor) drain() {
	if m.events == nil {
		return
	}
	for range maxEvents {
		e, ret := m.events.Wait(0)
		if ret == nvml.ERROR_GPU_IS_LOST {
			continue // the devices are asked next, and the lost one says so itself
		}
		if ret != nvml.SUCCESS {
			return
		}
		uuid := ""
		if e.Device != nil {
			uuid, ret = e.Device.GetUUID()
		}
		if ret != nvml.SUCCESS {
			continue
		}
		m.event(uuid, e)
	}
}

func (m *monitor) event(uuid string, e nvml.EventData) {
	if e.EventType != nvml.EventTypeXidCriticalError {
		return // memory errors are counted by the device
	}
	m.told[uuid] = reports{last: int64(e.EventData), count: m.told[uuid].count + 1}
	text, ours := xidFault(e.EventData)
	if !ours {
		m.log.Info("GPU reports an error of a job", "gpu", uuid, "what", xidNote(e.EventData))
		return
	}
	if m.xids[uuid].Text == "" {
		m.xids[uuid] = fault{Text: text, Lost: true}
	}
}

// publish makes a reading the current one. GPUs that were there and are not now
// stay in it as unhealthy. MIG instances go when their device is still there:
// somebody has cut it anew.
func (m *monitor) publish(inv inventory, faults map[string]fault, samples []Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := m.goneLocked(inv)
	if len(gone) > 0 {
		// What became unreadable is listed under the name that it had.
		inv.GPUs = slices.DeleteFunc(inv.GPUs, func(g GPU) bool {
			return isStandIn(g) && !slices.ContainsFunc(m.inv.GPUs, func(old GPU) bool { return old.UUID == g.UUID })
		})
	}
	for _, g := range gone {
		faults[g.UUID] = fault{Text: "it vanished: " + faultText(nvml.ERROR_GPU_IS_LOST), Lost: true}
	}
	inv.GPUs = append(inv.GPUs, gone...)
	slices.SortStableFunc(inv.GPUs, func(a, b GPU) int { return cmp.Compare(a.PCI, b.PCI) })
	inv.number()
	for i := range inv.GPUs {
		g := &inv.GPUs[i]
		g.Unhealthy = faults[g.UUID].Text
		m.logChange(g.UUID, faults[g.UUID])
	}
	m.inv, m.faults, m.samples = inv, faults, samples
}

// goneLocked lists the GPUs that a new reading should have and has not.
func (m *monitor) goneLocked(inv inventory) []GPU {
	there := map[string]bool{}
	for _, g := range inv.GPUs {
		there[g.UUID] = true
		if g.MIG != nil {
			there[g.MIG.Parent] = true
		}
	}
	var gone []GPU
	for _, g := range m.inv.GPUs {
		if !there[g.UUID] && !isStandIn(g) && (g.MIG == nil || !there[g.MIG.Parent]) {
			gone = append(gone, g)
		}
	}
	return gone
}

// publishError keeps the GPUs that were known.
func (m *monitor) publishError(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	faults := map[string]fault{}
	m.inv.GPUs = slices.Clone(m.inv.GPUs)
	for i := range m.inv.GPUs {
		g := &m.inv.GPUs[i]
		f := m.faults[g.UUID]
		if !f.Lost {
			f = fault{Text: "the driver does not answer: " + err.Error()}
		}
		g.Unhealthy, faults[g.UUID] = f.Text, f
	}
	m.faults, m.samples = faults, nil
}

func (m *monitor) logChange(uuid string, f fault) {
	switch old := m.faults[uuid]; {
	case f.Text == old.Text:
	case f.Text == "":
		m.log.Info("GPU is well again", "gpu", uuid)
	default:
		m.log.Error("GPU is unhealthy", "gpu", uuid, "reason", f.Text)
	}
}

// Refresh polls now, or gives up with ctx when the driver hangs.
func (m *monitor) Refresh(ctx context.Context) {
	done := make(chan struct{})
	// Ends when the driver answers; there is no way to break it off.
	go func() {
		defer close(done)
		if err := m.poll(); err != nil {
			m.log.Error("read GPUs", "error", err)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Close lets go of the library.
func (m *monitor) Close() error {
	if m.lib == nil {
		return nil
	}
	if !m.pollMu.TryLock() {
		return errors.New("close NVML: the driver hangs; it is left open")
	}
	defer m.pollMu.Unlock()
	if m.events != nil {
		m.events.Free()
	}
	if ret := m.lib.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("close NVML: %v", ret)
	}
	return nil
}

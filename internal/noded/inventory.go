package noded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// inventory is what the node has to give, and its hash. It is made anew for
// each sync, because devices come and go; it costs microseconds.
func (a *Agent) inventory() (*node.Inventory, string) {
	d := a.devices.Inventory()
	inv := &node.Inventory{
		Hostname:  a.host.Name,
		DNSName:   a.host.DNS,
		Address:   a.host.Address,
		ImagePort: a.sharesOn(),
		Cluster:   a.cfg.ClusterID,
		Version:   a.version,
		CPUs:      a.cores.Offered,
		MemBytes:  max(0, config.TotalMemory()-int64(a.cfg.Reserve.Memory)),
		GPUs:      d.GPUs,
		DiskBytes: a.disk.Offer(),
		CUDA:      d.CUDA,
		Driver:    d.Driver,
		Features:  a.cfg.Features,
		Simulated: d.Simulated,

		AllowShare: a.cfg.GPU.Share,
		Bridge:     a.network.Bridged(),
		Gang:       a.network.Gangs(),
		Together:   a.network.Together(),
		NoHost:     a.network.NoHost(),
		Privileged: a.cfg.AllowPrivileged,
		Several:    true,
		Divides:    true,
		Ahead:      true,
		Covers:     true,
	}
	if a.node.NoMaps == nil { // else jobs are not root
		inv.Capabilities = a.cfg.AllowCapabilities
	}
	for _, name := range slices.Sorted(maps.Keys(a.runtimes)) {
		inv.Runtimes = append(inv.Runtimes, node.Runtime{Name: name, NoGPUs: a.runtimes[name].Kind.Sandboxed()})
	}
	inv.Storage = a.inventoryOfStorage()
	b, err := json.Marshal(inv)
	if err != nil {
		panic(err) // plain data
	}
	sum := sha256.Sum256(b)
	return inv, hex.EncodeToString(sum[:])
}

// inventoryOfStorage is what jobs can mount here, by name.
func (a *Agent) inventoryOfStorage() []node.Root {
	list := []node.Root{}
	for i, s := range a.health.machine.Stored() {
		list = append(list, node.Root{Name: s.Name, ReadOnly: a.cfg.Storage[i].ReadOnly, Away: a.places.Public(s.Away)})
	}
	if a.cfg.SSHDir != "" {
		list = append(list, node.Root{Name: job.SSHHostPath})
	}
	slices.SortFunc(list, func(x, y node.Root) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// storageSamples is how much room there is in what jobs can mount.
func (a *Agent) storageSamples() (list []api.StorageSample) {
	for _, s := range a.health.machine.Stored() {
		if s.Total > 0 {
			list = append(list, api.StorageSample{Name: s.Name, TotalBytes: s.Total, FreeBytes: s.Free})
		}
	}
	return list
}

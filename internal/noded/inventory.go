package noded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"golang.org/x/sys/unix"

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
		Cluster:   a.cfg.ClusterID,
		Version:   a.version,
		CPUs:      a.cores.Offered,
		MemBytes:  max(0, config.TotalMemory()-int64(a.cfg.Reserve.Memory)),
		GPUs:      d.GPUs,
		DiskBytes: diskSize(a.cfg.StateDir),
		CUDA:      d.CUDA,
		Driver:    d.Driver,
		Features:  a.cfg.Features,
		Simulated: d.Simulated,

		AllowShare: a.cfg.GPU.Share,
		Bridge:     a.network.Bridged(),
		Gang:       a.network.Gangs(),
		NoHost:     a.network.NoHost(),
		Privileged: a.cfg.AllowPrivileged,
	}
	b, err := json.Marshal(inv)
	if err != nil {
		panic(err) // plain data
	}
	sum := sha256.Sum256(b)
	return inv, hex.EncodeToString(sum[:])
}

// diskSize is the size of the file system at dir; 0 if it cannot be told.
func diskSize(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0
	}
	return int64(st.Blocks) * st.Bsize
}

package disk

import (
	"fmt"
	"slices"

	"gbatch/cgroups"
	"gbatch/internal/noded/config"
)

// throttles are the bounds on what one container moves from and to the disks
// that it comes to by the node: those of its own directory, images and inputs.
func throttles(cfg *config.Config, base string) ([]cgroups.IODevice, error) {
	c := cfg.Disk
	if c.ReadRate == 0 && c.WriteRate == 0 && c.ReadOps == 0 && c.WriteOps == 0 {
		return nil, nil
	}
	host, err := cgroups.Detect()
	if err == nil {
		err = host.CanThrottle(base)
	}
	if err != nil {
		return nil, fmt.Errorf("disk.readRate and the like cannot be kept: %w", err)
	}
	var list []cgroups.IODevice
	for _, dir := range []string{cfg.StateDir, cfg.Images.Dir, cfg.Data.Dir} {
		major, minor, err := cgroups.Disk(dir)
		if err != nil {
			return nil, fmt.Errorf("disk.readRate and the like cannot be kept: %w", err)
		}
		if !slices.ContainsFunc(list, func(d cgroups.IODevice) bool { return d.Major == major && d.Minor == minor }) {
			list = append(list, cgroups.IODevice{Major: major, Minor: minor,
				ReadBytes: uint64(c.ReadRate), WriteBytes: uint64(c.WriteRate), ReadOps: uint64(c.ReadOps), WriteOps: uint64(c.WriteOps)})
		}
	}
	return list, nil
}

// Throttles are the bounds on what a container moves from and to disks.
func (d *Disk) Throttles() []cgroups.IODevice { return d.io }

// Probe says how containers can be held to what they may write, and to how
// much. The error says what a better way lacks.
func Probe(cfg *config.Config) (mode string, limit int64, err error) {
	d, err := newDisk(cfg)
	if err != nil {
		return "", 0, err
	}
	a, err := d.area(d.dir)
	if err != nil {
		return "", 0, err
	}
	err = d.choose(a)
	if err == nil && d.mode == config.DiskImage && cfg.Disk.Mode == config.DiskAuto {
		err = a.lacks
	}
	_, ioErr := throttles(cfg, "/")
	if ioErr != nil {
		err = ioErr
	}
	return d.mode, usualLimit(cfg, a.size), err
}

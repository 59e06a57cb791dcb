package config

import "slices"

// Disk bounds what containers write on the node and how fast.
type Disk struct {
	// PerContainer is how much one container may write, over its image, to /tmp
	// and to its inputs, where its job has not reserved more (diskGb). Default: a
	// tenth of the file system, 1GiB to 100GiB; at least 16MiB.
	PerContainer Size `yaml:"perContainer"`
	// Mode is how they are held to that: quota, by project quotas of the state
	// directory's file system; image, by a file system for each in a file; watch,
	// by a look now and then, and an end to who wrote more. Default auto: the
	// first of these that works here.
	Mode string `yaml:"mode"`
	// ReadRate and WriteRate are the most bytes in a second that a container
	// may move from and to each disk of the node, ReadOps and WriteOps the most
	// requests. Default: no bound. On cgroup v1 only writes count that do not go
	// through the page cache.
	ReadRate  Size `yaml:"readRate"`
	WriteRate Size `yaml:"writeRate"`
	ReadOps   int  `yaml:"readOps"`
	WriteOps  int  `yaml:"writeOps"`
}

// The ways in which containers are held to what they may write.
const (
	DiskAuto  = "auto"
	DiskQuota = "quota"
	DiskImage = "image"
	DiskWatch = "watch"
)

func checkDisk(c *Config, bad func(string, string, ...any)) {
	optional := func(key string, v Size, least Size) {
		if v != 0 {
			bounds[Size]{least, 1 << 60}.check(bad, key, v)
		}
	}
	optional("disk.perContainer", c.Disk.PerContainer, 16<<20)
	if !slices.Contains([]string{DiskAuto, DiskQuota, DiskImage, DiskWatch}, c.Disk.Mode) {
		bad("disk.mode", "%q: want auto, quota, image or watch", c.Disk.Mode)
	}
	optional("disk.readRate", c.Disk.ReadRate, 64<<10)
	optional("disk.writeRate", c.Disk.WriteRate, 64<<10)
	ops := func(key string, n int) {
		if n != 0 && (n < 10 || n > 1<<30) {
			bad(key, "%d: must be 10 to %d", n, 1<<30)
		}
	}
	ops("disk.readOps", c.Disk.ReadOps)
	ops("disk.writeOps", c.Disk.WriteOps)
}

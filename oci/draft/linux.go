package draft

import (
	"fmt"
	"strings"

	"github.com/moby/sys/capability"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/userns"
)

// namespaces are all private but for the network's choice.
func namespaces(r Request) []specs.LinuxNamespace {
	out := []specs.LinuxNamespace{
		{Type: specs.PIDNamespace},
		{Type: specs.IPCNamespace},
		{Type: specs.UTSNamespace},
		{Type: specs.MountNamespace},
		{Type: specs.CgroupNamespace},
	}
	if !r.Network.Host {
		out = append(out, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: r.Network.Path})
	}
	if !r.IDs.IsZero() {
		out = append(out, specs.LinuxNamespace{Type: specs.UserNamespace})
	}
	return out
}

// sysctls let a program without privileges ping and use any port, which
// harms nobody in a network of its own.
func sysctls(r Request) map[string]string {
	if r.Network.Host {
		return nil
	}
	groups := "0 2147483647"
	if !r.IDs.IsZero() { // both ends must be groups of the container
		groups = fmt.Sprintf("0 %d", userns.RangeSize-1)
	}
	return map[string]string{
		"net.ipv4.ip_unprivileged_port_start": "0",
		"net.ipv4.ping_group_range":           groups,
	}
}

// resources denies every device first; libcontainer then allows the harmless
// ones (null, zero, random, tty, pts) and each of the request is allowed by
// its number, so that a node made by mknod for another device cannot be opened.
func resources(r Request) *specs.LinuxResources {
	res := r.Limits.Resources()
	res.Devices = []specs.LinuxDeviceCgroup{{Allow: r.Privileged, Access: "rwm"}}
	for _, d := range r.Devices {
		res.Devices = append(res.Devices, specs.LinuxDeviceCgroup{
			Allow: true, Type: d.Type, Major: new(d.Major), Minor: new(d.Minor), Access: "rwm",
		})
	}
	return res
}

// boundingCaps are what root needs to install programs and to run them as
// others. In the host's network low ports would impersonate its services.
func boundingCaps(n Network) []string {
	caps := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
		"CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
	}
	if !n.Host {
		caps = append(caps, "CAP_NET_BIND_SERVICE")
	}
	return caps
}

// hostCaps are the capabilities that this process could have: more cannot be
// given, and a kernel may know more than it lets us have.
func hostCaps() []string {
	own, err := capability.NewPid2(0)
	if err == nil {
		err = own.Load()
	}
	if err != nil {
		return boundingCaps(Network{})
	}
	var caps []string
	for _, c := range capability.ListKnown() {
		if own.Get(capability.BOUNDING, c) {
			caps = append(caps, "CAP_"+strings.ToUpper(c.String()))
		}
	}
	return caps
}

func rootCaps(bounding []string) *specs.LinuxCapabilities {
	return &specs.LinuxCapabilities{Bounding: bounding, Effective: bounding, Permitted: bounding}
}

// Paths of /proc and /sys that tell about the host or change it.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
	"/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
	"/sys/devices/virtual/powercap", "/sys/firmware",
}

var readonlyPaths = []string{
	"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
}

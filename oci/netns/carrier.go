package netns

import (
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// carrierPatience is more than the second in which the kernel takes note of
// carriers once.
const carrierPatience = 1500 * time.Millisecond

// awaitCarrier waits until the gang's interface is said to run. Libraries of MPI
// look for such interfaces at their start and use no other, although packets pass.
// It is no error when it takes longer.
func awaitCarrier(ns *os.File, h *netlink.Handle) {
	_ = inside(ns, askCarrier) // a kernel before 6.8 takes note when it likes
	for deadline := time.Now().Add(carrierPatience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		l, err := h.LinkByName(gangBridge)
		if err != nil || l.Attrs().RawFlags&unix.IFF_RUNNING != 0 {
			return
		}
	}
}

// askCarrier asks for the carrier as ethtool does, upon which newer kernels take
// note of it.
func askCarrier() error {
	h, err := netlink.NewHandle(unix.NETLINK_GENERIC)
	if err != nil {
		return err
	}
	defer h.Close()
	family, err := h.GenlFamilyGet("ethtool")
	if err != nil {
		return err
	}
	q := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	q.AddData(&nl.Genlmsg{Command: unix.ETHTOOL_MSG_LINKSTATE_GET, Version: 1})
	header := nl.NewRtAttr(unix.ETHTOOL_A_LINKSTATE_HEADER|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(unix.ETHTOOL_A_HEADER_DEV_NAME, nl.ZeroTerminated(gangBridge))
	q.AddData(header)
	_, err = q.Execute(unix.NETLINK_GENERIC, 0)
	return err
}

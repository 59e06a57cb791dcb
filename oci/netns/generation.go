package netns

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// attrGeneration is NFTA_GEN_ID.
const attrGeneration = 1

// generation counts the changes to the machine's firewall, by whomever: while
// it is the same, so are all tables of nftables. To ask for it costs a tenth of
// what it costs to look at them.
func generation() (uint32, error) {
	const subsystem = unix.NFNL_SUBSYS_NFTABLES << 8
	req := nl.NewNetlinkRequest(subsystem|unix.NFT_MSG_GETGEN, 0)
	req.AddData(&nl.Nfgenmsg{Version: nl.NFNETLINK_V0})
	answers, err := req.Execute(unix.NETLINK_NETFILTER, subsystem|unix.NFT_MSG_NEWGEN)
	if err != nil {
		return 0, fmt.Errorf("ask for the firewall's generation: %w", err)
	}
	for _, a := range answers {
		if len(a) < nl.SizeofNfgenmsg {
			continue
		}
		attrs, err := nl.ParseRouteAttr(a[nl.SizeofNfgenmsg:])
		if err != nil {
			return 0, fmt.Errorf("read the firewall's generation: %w", err)
		}
		for _, attr := range attrs {
			if attr.Attr.Type == attrGeneration && len(attr.Value) == 4 {
				return binary.BigEndian.Uint32(attr.Value), nil
			}
		}
	}
	return 0, errors.New("the kernel did not tell the firewall's generation")
}

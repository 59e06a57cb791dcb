package netns

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// prefix begins the name of everything that is made on the host.
const prefix = "gb"

// tableName is the node's nftables table and the beginning of its interfaces'
// names, which may have 15 characters: 2 + 8 here, a dash, and 4.
func tableName(node string) string {
	sum := sha256.Sum256([]byte(node))
	return prefix + hex.EncodeToString(sum[:4])
}

// linkName is the host's interface of the n-th address.
func (n *Network) linkName(number int) string { return fmt.Sprintf("%s%04x", n.links, number) }

// numberOf is the reverse of linkName; false for interfaces of others.
func (n *Network) numberOf(link string) (int, bool) {
	digits, ours := strings.CutPrefix(link, n.links)
	number, err := strconv.ParseUint(digits, 16, 16)
	return int(number), ours && len(digits) == 4 && err == nil
}

// address is the n-th of the subnet; 0 is the network's own.
func address(subnet netip.Prefix, number int) netip.Addr {
	base := subnet.Masked().Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+uint32(number))
	return netip.AddrFrom4(b)
}

// Numbers of addresses in a subnet: 0 is the network's, 1 the gateway's, and
// the last one would be taken for a broadcast.
const (
	gatewayNumber = 1
	firstNumber   = 2
)

func lastNumber(subnet netip.Prefix) int { return 1<<(32-subnet.Bits()) - 2 }

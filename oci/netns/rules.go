package netns

import (
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// builder queues chains and rules of one table.
type builder struct {
	conn  *nftables.Conn
	table *nftables.Table
	at    *nftables.Chain
	jobs  string // how the names of jobs' interfaces begin
	sets  uint32 // made so far
}

// part is one condition or the verdict of a rule.
type part func(b *builder) []expr.Any

func (b *builder) chain(name string, hook *nftables.ChainHook, prio *nftables.ChainPriority) {
	kind := nftables.ChainTypeFilter
	if hook == nftables.ChainHookPostrouting {
		kind = nftables.ChainTypeNAT
	}
	b.at = b.conn.AddChain(&nftables.Chain{Name: name, Table: b.table, Type: kind, Hooknum: hook, Priority: prio})
}

func (b *builder) rule(parts ...part) {
	var list []expr.Any
	for _, p := range parts {
		list = append(list, p(b)...)
	}
	b.conn.AddRule(&nftables.Rule{Table: b.table, Chain: b.at, Exprs: list})
}

func (b *builder) set(name string, key nftables.SetDatatype, elements []nftables.SetElement) *nftables.Set {
	b.sets++ // numbers are the transaction's own; the library would count them for all
	s := &nftables.Set{Table: b.table, Name: name, KeyType: key, ID: b.sets}
	// It fails for constant, interval and timeout sets only.
	_ = b.conn.AddSet(s, elements)
	return s
}

// Conditions. Each loads register 1 and compares it. A name that is compared
// shorter than it is matches all that begin so.

func fromJob(b *builder) []expr.Any { return b.link(expr.MetaKeyIIFNAME, expr.CmpOpEq) }
func toJob(b *builder) []expr.Any   { return b.link(expr.MetaKeyOIFNAME, expr.CmpOpEq) }

func notToJob(b *builder) []expr.Any { return b.link(expr.MetaKeyOIFNAME, expr.CmpOpNeq) }

func (b *builder) link(key expr.MetaKey, op expr.CmpOp) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: []byte(b.jobs)}}
}

func family(f byte) part {
	return func(*builder) []expr.Any {
		return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal([]byte{f})}
	}
}

func protocol(p byte) part {
	return func(*builder) []expr.Any {
		return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal([]byte{p})}
	}
}

var (
	isIPv4 = family(unix.NFPROTO_IPV4)
	isIPv6 = family(unix.NFPROTO_IPV6)
)

// forged is a source address that the kernel would not route back to where the
// packet came from.
func forged(*builder) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: 1, FlagSADDR: true, FlagIIF: true, ResultOIF: true},
		equal([]byte{0, 0, 0, 0}),
	}
}

// established is an answer, or an error about something that went the other way.
func established(*builder) []expr.Any {
	mask := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	zero := []byte{0, 0, 0, 0}
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: zero},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: zero},
	}
}

func echoRequest(b *builder) []expr.Any {
	return append(protocol(unix.IPPROTO_ICMP)(b), load(expr.PayloadBaseTransportHeader, 0, 1), equal([]byte{8}))
}

// Offsets of addresses in an IPv4 header, of the port in TCP's and UDP's.
const (
	offsetSource      = 12
	offsetDestination = 16
	offsetPort        = 2
)

func source(p netip.Prefix) part      { return address4(offsetSource, p) }
func destination(p netip.Prefix) part { return address4(offsetDestination, p) }

// Forbidden is where clouds hand out credentials to whoever asks: link-local
// addresses, which are never to be forwarded, and others of single clouds.
var Forbidden = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
}

func address4(offset uint32, p netip.Prefix) part {
	return func(b *builder) []expr.Any {
		return append(isIPv4(b),
			load(expr.PayloadBaseNetworkHeader, offset, 4),
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: net.CIDRMask(p.Bits(), 32), Xor: []byte{0, 0, 0, 0}},
			equal(p.Masked().Addr().AsSlice()))
	}
}

func destinationIn(s *nftables.Set) part {
	return func(b *builder) []expr.Any {
		return append(isIPv4(b), load(expr.PayloadBaseNetworkHeader, offsetDestination, 4), in(s))
	}
}

func portIn(s *nftables.Set) part {
	return func(*builder) []expr.Any {
		return []expr.Any{load(expr.PayloadBaseTransportHeader, offsetPort, 2), in(s)}
	}
}

func port53(*builder) []expr.Any {
	return []expr.Any{load(expr.PayloadBaseTransportHeader, offsetPort, 2), equal([]byte{0, 53})}
}

// Verdicts.

func accept(*builder) []expr.Any     { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }
func drop(*builder) []expr.Any       { return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}} }
func masquerade(*builder) []expr.Any { return []expr.Any{&expr.Masq{}} }

// reject tells the sender at once, so that nobody waits for a timeout.
func reject(*builder) []expr.Any {
	return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}}
}

func equal(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

func load(base expr.PayloadBase, offset, length uint32) expr.Any {
	return &expr.Payload{DestRegister: 1, Base: base, Offset: offset, Len: length}
}

func in(s *nftables.Set) expr.Any {
	return &expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID}
}

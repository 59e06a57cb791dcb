package hostnet

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"gbatch/oci/netns"
)

// programs are those of a filter. What they return decides: 0 refuses with
// EPERM.
var programs = []struct {
	at   ebpf.AttachType
	kind ebpf.ProgramType
	code func(own int) asm.Instructions
}{
	{ebpf.AttachCGroupInetSockCreate, ebpf.CGroupSock, markOwn},
	{ebpf.AttachCGroupInet4Connect, ebpf.CGroupSockAddr, decide4},
	{ebpf.AttachCGroupInet6Connect, ebpf.CGroupSockAddr, decide6},
	{ebpf.AttachCGroupUDP4Sendmsg, ebpf.CGroupSockAddr, decide4},
	{ebpf.AttachCGroupUDP6Sendmsg, ebpf.CGroupSockAddr, decide6},
}

// Offsets in struct bpf_sock and struct bpf_sock_addr of the kernel.
const (
	sockProtocol = 12

	addrIP4      = 4
	addrIP6      = 8
	addrPort     = 24
	addrProtocol = 36
)

// Labels of programs.
const (
	allow     = "allow"
	refuse    = "refuse"
	loopback4 = "loopback4"
	loopback6 = "loopback6"
	lookup    = "lookup"
	lookupTCP = "lookup_tcp"
	found     = "found"
)

// The registers that keep a value: the context, an IPv4 address as it is in
// packets, the length of the tuple to look up, the socket found.
const (
	ctx     = asm.R6
	address = asm.R7
	length  = asm.R8
	sock    = asm.R9
)

// markOwn marks each socket that is made. Protocols that the other programs
// are not asked about cannot be used at all.
func markOwn(own int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(ctx, asm.R1),
		asm.LoadMem(asm.R2, asm.R1, sockProtocol, asm.Word),
		asm.JEq.Imm(asm.R2, unix.IPPROTO_TCP, "mark"),
		asm.JEq.Imm(asm.R2, unix.IPPROTO_UDP, "mark"),
		asm.JEq.Imm(asm.R2, unix.IPPROTO_ICMP, "mark"),
		asm.JEq.Imm(asm.R2, unix.IPPROTO_ICMPV6, "mark"),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
		asm.LoadMapPtr(asm.R1, own).WithSymbol("mark"),
		asm.Mov.Reg(asm.R2, ctx),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 1), // make it
		asm.FnSkStorageGet.Call(),
		asm.Mov.Imm(asm.R0, 1),
		asm.Return(),
	}
}

func decide4(own int) asm.Instructions {
	return slices.Concat(asm.Instructions{
		asm.Mov.Reg(ctx, asm.R1),
		asm.LoadMem(address, ctx, addrIP4, asm.Word),
	}, about4(), tuple4(), verdict(own))
}

// about4 decides about the IPv4 address in its register.
func about4() asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R2, address),
		asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.JEq.Imm(asm.R2, 0, refuse),
	}
	code = append(code, within(asm.R2, 127<<24, 8, loopback4)...)
	for _, p := range netns.Forbidden {
		b := p.Addr().As4()
		code = append(code, within(asm.R2, binary.BigEndian.Uint32(b[:]), p.Bits(), refuse)...)
	}
	return append(code, asm.Ja.Label(allow))
}

// within jumps if the number in a register begins with the first bits of
// another one.
func within(r asm.Register, number uint32, bits int, to string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R3, r),
		asm.RSh.Imm(asm.R3, int32(32-bits)),
		asm.LoadImm(asm.R4, int64(number>>(32-bits)), asm.DWord),
		asm.JEq.Reg(asm.R3, asm.R4, to),
	}
}

// forbidden6 are the metadata addresses of clouds by IPv6.
var forbidden6 = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254")}

func decide6(own int) asm.Instructions {
	word := func(r asm.Register, i int16) asm.Instructions {
		return asm.Instructions{asm.LoadMem(r, ctx, addrIP6+4*i, asm.Word), asm.HostTo(asm.BE, r, asm.Word)}
	}
	code := asm.Instructions{asm.Mov.Reg(ctx, asm.R1)}
	for i, r := range []asm.Register{asm.R2, asm.R5, asm.R7, asm.R8} {
		code = append(code, word(r, int16(i))...)
	}
	code = append(code, within(asm.R2, 0xfe800000, 10, refuse)...)
	for i, a := range forbidden6 {
		b, next := a.As16(), "not_"+string(rune('a'+i))
		for k, r := range []asm.Register{asm.R2, asm.R5, asm.R7, asm.R8} {
			code = append(code, asm.LoadImm(asm.R4, int64(binary.BigEndian.Uint32(b[4*k:])), asm.DWord), asm.JNE.Reg(r, asm.R4, next))
		}
		code = append(code, asm.Ja.Label(refuse), asm.Mov.Imm(asm.R0, 0).WithSymbol(next))
	}
	code = append(code,
		asm.LoadImm(asm.R4, 0x64ff9b, asm.DWord), // IPv4 behind a translator
		asm.JEq.Reg(asm.R2, asm.R4, "translated"),
		asm.JNE.Imm(asm.R2, 0, allow),
		asm.JNE.Imm(asm.R5, 0, allow),
		asm.JEq.Imm(asm.R7, 0xffff, "mapped"),
		asm.JNE.Imm(asm.R7, 0, allow),
		asm.JEq.Imm(asm.R8, 1, loopback6),
		asm.Ja.Label(refuse), // unspecified, or IPv4 in a form that nobody uses
		asm.JNE.Imm(asm.R5, 0, allow).WithSymbol("translated"),
		asm.JNE.Imm(asm.R7, 0, allow),
		asm.LoadMem(address, ctx, addrIP6+12, asm.Word).WithSymbol("mapped"),
	)
	return slices.Concat(code, about4(), tuple6(), tuple4(), verdict(own))
}

// tuple4 puts a connection to the IPv4 address onto the stack, as the kernel
// wants it to look for who listens, and its place and length into registers.
func tuple4() asm.Instructions {
	const at4 = -16
	return asm.Instructions{
		asm.StoreMem(asm.RFP, at4, address, asm.Word).WithSymbol(loopback4),
		asm.StoreMem(asm.RFP, at4+4, address, asm.Word),
		asm.StoreImm(asm.RFP, at4+8, 0, asm.Half),
		asm.LoadMem(asm.R3, ctx, addrPort, asm.Word),
		asm.StoreMem(asm.RFP, at4+10, asm.R3, asm.Half),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, at4),
		asm.Mov.Imm(asm.R3, 12),
	}
}

// tuple6 does the same for ::1, and goes to the verdict.
func tuple6() asm.Instructions {
	const at6 = -40
	var code asm.Instructions
	one := int64(binary.NativeEndian.Uint32([]byte{0, 0, 0, 1}))
	for i := range int16(8) { // source and destination are ::1
		in := asm.StoreImm(asm.RFP, at6+4*i, 0, asm.Word)
		if i%4 == 3 {
			in = asm.StoreImm(asm.RFP, at6+4*i, one, asm.Word)
		}
		if i == 0 {
			in = in.WithSymbol(loopback6)
		}
		code = append(code, in)
	}
	return append(code,
		asm.StoreImm(asm.RFP, at6+32, 0, asm.Half),
		asm.LoadMem(asm.R3, ctx, addrPort, asm.Word),
		asm.StoreMem(asm.RFP, at6+34, asm.R3, asm.Half),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, at6),
		asm.Mov.Imm(asm.R3, 36),
		asm.Ja.Label(lookup),
	)
}

// verdict looks up who listens and lets the program end.
func verdict(own int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R5, ctx, addrProtocol, asm.Word).WithSymbol(lookup),
		asm.Mov.Reg(asm.R1, ctx),
		asm.LoadImm(asm.R4, -1, asm.DWord), // in the same network namespace
		asm.Mov.Reg(length, asm.R5),
		asm.Mov.Imm(asm.R5, 0),
		asm.JEq.Imm(length, unix.IPPROTO_TCP, lookupTCP),
		asm.JNE.Imm(length, unix.IPPROTO_UDP, allow), // an echo request
		asm.FnSkLookupUdp.Call(),
		asm.JEq.Imm(asm.R0, 0, refuse), // who may come later
		asm.Ja.Label(found),
		asm.FnSkLookupTcp.Call().WithSymbol(lookupTCP),
		asm.JEq.Imm(asm.R0, 0, allow), // to be told that nobody listens

		asm.Mov.Reg(sock, asm.R0).WithSymbol(found),
		asm.LoadMapPtr(asm.R1, own),
		asm.Mov.Reg(asm.R2, sock),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 0), // only if it is there
		asm.FnSkStorageGet.Call(),
		asm.Mov.Reg(length, asm.R0),
		asm.Mov.Reg(asm.R1, sock),
		asm.FnSkRelease.Call(),
		asm.JEq.Imm(length, 0, refuse),
		asm.Mov.Imm(asm.R0, 1).WithSymbol(allow),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(refuse),
		asm.Return(),
	}
}

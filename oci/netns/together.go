package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// togetherPatience is for how long a member tries to reach another one of the same machine,
// and togetherTries how often.
const togetherPatience, togetherTries = 100 * time.Millisecond, 10

// ProbeTogether tries whether two members of a gang reach each other on this machine, which
// kernels as old as 6.1 do not let them. All of it is in namespaces that go at once.
func ProbeTogether() error {
	var spaces []*os.File
	defer func() {
		for _, ns := range spaces {
			ns.Close()
		}
	}()
	for range 3 {
		ns, err := newNamespace()
		if err != nil {
			return err
		}
		spaces = append(spaces, ns)
	}
	host, err := netlink.NewHandleAt(vns.NsHandle(spaces[2].Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer host.Close()
	lo, err := host.LinkByName("lo")
	if err == nil {
		err = host.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("raise a loopback interface: %w", err)
	}
	node := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	machine := &Network{host: host, cfg: Config{MTU: 1500}, trace: func(string) {}}
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }
	for i, ns := range spaces[:2] {
		g := &Gang{Inside: netip.PrefixFrom(at(i), 24), Tunnel: uint32(i + 1), Node: node, Peers: []Peer{{Inside: at(1 - i), Tunnel: uint32(2 - i), Node: node}}}
		if err := machine.join(ns, g); err != nil {
			return err
		}
	}
	return reaches(spaces[0], spaces[1], at(1))
}

// reaches sends datagrams from one namespace to an address of another until one comes.
func reaches(from, to *os.File, addr netip.Addr) error {
	var in, out *net.UDPConn
	err := inside(to, func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{IP: addr.AsSlice()})
		return err
	})
	if err != nil {
		return err
	}
	defer in.Close()
	err = inside(from, func() (err error) {
		out, err = net.DialUDP("udp4", nil, in.LocalAddr().(*net.UDPAddr))
		return err
	})
	if err != nil {
		return err
	}
	defer out.Close()
	for range togetherTries {
		_, err = out.Write([]byte{1})
		if err == nil {
			err = in.SetReadDeadline(time.Now().Add(togetherPatience))
		}
		if err == nil {
			if _, err = in.Read(make([]byte, 1)); err == nil {
				return nil
			}
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return errors.New("this kernel does not deliver what one rank sends to another on the same machine")
}

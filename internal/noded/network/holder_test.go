package network

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListenerOf: whoever listens on a port is named, by whichever of the
// addresses that get in its way.
func TestListenerOf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	for name, ip := range map[string]netip.Addr{"any": {}, "unspecified": netip.IPv4Unspecified(), "same": netip.MustParseAddr("127.0.0.1")} {
		got := listenerOf(ip, port)
		if got == nil || got.PID != os.Getpid() || got.Command == "" {
			t.Errorf("%s: found %+v, want this process, %d", name, got, os.Getpid())
		}
	}
	l.Close()
	if diff := cmp.Diff((*process)(nil), listenerOf(netip.Addr{}, port)); diff != "" {
		t.Errorf("of a port that nobody has (-want +got):\n%s", diff)
	}
}

package reach

import (
	"net/netip"
	"testing"
)

// FuzzGuard asks about any address, as a name server may give it: none that is
// this machine's, or not of the internet, is let through, however it is written.
func FuzzGuard(f *testing.F) {
	for _, a := range []string{"127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "[64:ff9b::7f00:1]:1", "[2002:7f00:1::]:1", "169.254.169.254:80",
		"10.0.0.1:443", "[fe80::1%eth0]:1", "[fd00::1]:1", "0.0.0.0:0", "[::]:0", "100.64.0.1:1", "8.8.8.8:53", "[2001:4860:4860::8888]:53", "x", "224.0.0.1:1"} {
		f.Add(a)
	}
	inside := prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "0.0.0.0/8", "100.64.0.0/10", "224.0.0.0/3",
		"::/3", "fc00::/6", "2002::/16", "2001::/23")
	f.Fuzz(func(t *testing.T, address string) {
		if (Guard{}).check("host", address) != nil {
			return
		}
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			t.Fatalf("%q is let through and no address", address)
		}
		for _, p := range inside {
			if p.Contains(ap.Addr().Unmap().WithZone("")) {
				t.Errorf("%q is let through and in %s", address, p)
			}
		}
	})
}

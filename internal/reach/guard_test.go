package reach

import "testing"

// TestGuard: only addresses of the internet are connected to.
func TestGuard(t *testing.T) {
	g := Guard{Hosts: []string{"10.2.0.0/16"}}
	for addr, ok := range map[string]bool{
		"9.9.9.9:443": true, "[2a00:1450::1]:443": true, "10.2.3.4:80": true,
		"127.0.0.1:80": false, "[::1]:80": false, "10.3.0.1:80": false, "192.168.1.1:80": false, "172.16.0.1:80": false,
		"169.254.169.254:80": false, "[fe80::1%lo]:80": false, "[fd00::1]:80": false, "0.0.0.0:80": false, "[::]:80": false,
		"100.64.0.1:80": false, "[::ffff:127.0.0.1]:80": false, "[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false,
		"[2001:0:1::]:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false, "198.18.0.1:80": false,
	} {
		if err := g.check("host", addr); (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

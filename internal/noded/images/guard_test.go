package images

import (
	"errors"
	"net"
	"testing"

	"gbatch/internal/noded/config"
	"gbatch/oci/image"
)

// TestDialer: loopback is reached where it is configured and not otherwise.
func TestDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	for name, tc := range map[string]struct {
		c    config.Images
		addr string
		may  bool
	}{
		"default":             {config.Images{}, addr, false},
		"by a name":           {config.Images{}, "localhost:" + port, false},
		"insecure":            {config.Images{Insecure: []string{addr}}, addr, true},
		"another port":        {config.Images{Insecure: []string{"127.0.0.1:1"}}, addr, false},
		"hosts":               {config.Images{Hosts: []string{"127.0.0.1"}}, addr, true},
		"network":             {config.Images{Hosts: []string{"127.0.0.0/8"}}, "localhost:" + port, true},
		"mirror":              {config.Images{Mirrors: map[string][]string{"docker.io": {addr + "/cache"}}}, addr, true},
		"mirror without port": {config.Images{Mirrors: map[string][]string{"docker.io": {"127.0.0.1"}}}, addr, false},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := dialer(&config.Config{Images: tc.c})(t.Context(), "tcp", tc.addr)
			if err == nil {
				conn.Close()
			}
			if tc.may != (err == nil) || !tc.may && !errors.Is(err, image.ErrForbidden) {
				t.Errorf("reached %t: %v", err == nil, err)
			}
		})
	}
}

package exec

import (
	"net"
	"testing"
)

func TestHereURL(t *testing.T) {
	here := map[uint16]net.Addr{
		8888: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9999},
		6006: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 6006},
		80:   &net.TCPAddr{IP: net.IPv6zero, Port: 8080},
	}
	for line, want := range map[string]string{
		"[I 09:00:00 ServerApp] http://job-12:8888/lab?token=0a1b2c": "http://localhost:9999/lab?token=0a1b2c",
		"     or http://127.0.0.1:8888/tree?token=x&y=%20 \x1b[0m":   "http://localhost:9999/tree?token=x&y=%20",
		"http://[::]:80/x":                     "http://localhost:8080/x",
		"TensorBoard at http://0.0.0.0:6006/ ": "",
		"https://h:6006/#scalars":              "https://10.1.2.3:6006/#scalars",
		"http://h:8889/lab?token=x":            "",
		"http://h:99999/lab":                   "",
		"http://other:1/a http://h:8888/lab":   "http://localhost:9999/lab",
		"a line":                               "",
	} {
		if got := hereURL(line, here); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

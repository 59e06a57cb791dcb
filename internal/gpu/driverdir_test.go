package gpu

import (
	"strings"
	"testing"
)

func TestDriverDir(t *testing.T) {
	const rest = "7f0000000000-7f0000001000 r-xp 00000000 08:01 131 "
	cases := map[string]struct{ maps, want string }{
		"none":    {rest + "/usr/lib/x86_64-linux-gnu/libc.so.6\n7ffd0000-7ffe0000 rw-p 00000000 00:00 0 [stack]\n", ""},
		"usual":   {rest + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15\n", ""},
		"unusual": {rest + "/usr/lib/x86_64-linux-gnu/libc.so.6\n" + rest + "/usr/local/nvidia/lib64/libnvidia-ml.so.580.159.03\n", "/usr/local/nvidia/lib64"},
		"spaces":  {rest + "/opt/my driver/libnvidia-ml.so.1\n", "/opt/my driver"},
	}
	for name, tc := range cases {
		if got := driverDir(strings.NewReader(tc.maps)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

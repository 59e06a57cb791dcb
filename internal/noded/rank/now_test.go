package rank

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

func TestInterfaces(t *testing.T) {
	text := `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 9000 1 0 0 0 0 0 0 9000 1 0 0 0 0 0 0
  eth0:1200 10 0 0 0 0 0 0 34 2 0 0 0 0 0 0
 gang0: 800 10 0 0 0 0 0 0 66 2 0 0 0 0 0 0
  odd0: many
`
	if diff := cmp.Diff(&node.NetUse{Received: 2000, Sent: 100}, interfaces(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGPUMemNow(t *testing.T) {
	a, b, all := int64(3), int64(5), int64(8)
	samples := []api.GPUSample{{UUID: "a", MemUsed: &a}, {UUID: "b", MemUsed: &b}, {UUID: "c"}}
	tests := map[string]struct {
		ids  []string
		want *int64
	}{
		"both":      {[]string{"a", "b", "c"}, &all},
		"not_known": {[]string{"c"}, nil},
		"none":      {nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, gpuMemNow(tc.ids, samples)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

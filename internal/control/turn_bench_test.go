package control

import (
	"fmt"
	"testing"

	"gbatch/internal/node"
	"gbatch/sched"
)

// BenchmarkTurn is what a node's word costs a turn beside all the others: it is taken in, a view is made, and when the
// next tick is due is asked twice, as the loop does.
func BenchmarkTurn(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			cfg := testConfig()
			cfg.NoRecords = true
			c, err := New(cfg, 1)
			if err != nil {
				b.Fatal(err)
			}
			names := make([]string, nodes)
			for i := range names {
				names[i] = fmt.Sprintf("n%05d", i)
				inv := &node.Inventory{Hostname: names[i], Cluster: 1, CPUs: 128, MemBytes: 1 << 40}
				Apply(c, 1000, NodeSync{Name: names[i], Instance: "i", Hash: "h", Inventory: inv})
			}
			now := sched.Time(1000)
			for i := 0; b.Loop(); i++ {
				now++
				Apply(c, now, NodeSync{Name: names[i%nodes], Instance: "i", Hash: "h"})
				c.NextTick(now)
				c.View(now)
				c.NextTick(now)
			}
		})
	}
}

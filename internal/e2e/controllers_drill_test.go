package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gbatch/internal/client"
)

// ownMachines are networks of so many machines at one switch, where the tests are too, at
// 198.51.100.11 and on. Plugged puts one's cable in, or pulls it.
func ownMachines(t *testing.T, n int) (list []*os.File, plugged func(i int, in bool)) {
	t.Helper()
	needs(t)
	run := func(script string) {
		t.Helper()
		if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("ip link add switch0 type bridge && ip addr add 198.51.100.1/24 dev switch0 && ip link set switch0 up")
	t.Cleanup(func() { run("ip link del switch0") })
	for i := range n {
		ns := newNetns(t)
		list = append(list, ns)
		run(fmt.Sprintf(`ip link add cable%[1]d type veth peer name port0
			nsenter --net=%[2]s sh -c 'ip link set lo up'
			ip link set port0 netns /proc/%[4]d/fd/%[5]d && ip link set cable%[1]d master switch0 up
			nsenter --net=%[2]s sh -c 'ip addr add 198.51.100.%[3]d/24 dev port0 && ip link set port0 up'`, i, pathOf(ns), 11+i, os.Getpid(), ns.Fd()))
	}
	return list, func(i int, in bool) {
		run(fmt.Sprintf("ip link set cable%d %s", i, map[bool]string{true: "up", false: "down"}[in]))
	}
}

// TestControllersDrill is TestFaultDrill with three controllers: any of them are killed and stopped, whoever
// leads is cut off from all others, and the first's clock is set, beside what is done to nodes. The same must hold.
func TestControllersDrill(t *testing.T) {
	minutes := number(t, "GBATCH_DRILL_MINUTES", 0)
	if minutes == 0 {
		t.Skip("SKIPPED: it takes as long as GBATCH_DRILL_MINUTES says; `DRILL=TestControllersDrill make drill` runs it")
	}
	seed := number(t, "GBATCH_E2E_SEED", int(time.Now().UnixNano()%1e9))
	hosts, plugged := ownMachines(t, 3)
	var at []string
	for _, port := range []string{"7077", "7078"} {
		for i := range hosts {
			at = append(at, fmt.Sprintf("198.51.100.%d:%s", 11+i, port))
		}
	}
	nodeDisk := loopDisk(t, 300)
	f := &faults{disks: []string{nodeDisk}, garbled: map[string]bool{}, done: map[string]int{}}
	c := newSeveral(t, siteOptions{nodes: 2, nodeDirs: []string{"", nodeDisk}, made: func(s *site) {
		f.clocks = append(f.clocks, newClock(t, s.ctld, s.dir))
		for _, n := range s.nodes {
			f.clocks = append(f.clocks, newClock(t, n, n.stateDir))
		}
	}}, at, hosts)
	f.drill = &drill{s: c.s, dice: rand.New(rand.NewPCG(uint64(seed), 3)), acked: map[string]int{}, more: c.all[1:], address: c.address, token: c.token}
	f.cutOff = func() func() {
		i := c.leading()
		plugged(i, false)
		return func() { plugged(i, true) }
	}
	f.clocks[0].proves(t, c.s.ctld)
	rounds := 0
	for end := time.Now().Add(time.Duration(minutes) * time.Minute); time.Now().Before(end) && !t.Failed(); rounds++ {
		f.round()
	}
	for _, k := range f.clocks {
		k.set(t, 0)
	}
	c.wholly()
	text, err := os.ReadFile(c.token)
	if err != nil {
		t.Fatal(err)
	}
	socket := f.s.api
	f.s.api = &client.Client{Address: c.address, Token: strings.TrimSpace(string(text)), Timeout: patience}
	f.check()
	f.s.api.Close()
	f.s.api = socket
	t.Logf("GBATCH_E2E_SEED=%d: %d rounds, %d jobs were acknowledged, %d had their records garbled; %v", seed, rounds, len(f.acked), len(f.garbled), f.done)
	c.first()
}

// leading is who leads, or would if it could: any where none says so.
func (c *several) leading() int {
	for i, text := range c.lists() {
		if strings.Contains(text, "leads") {
			return i
		}
	}
	return 0
}

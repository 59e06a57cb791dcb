package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/oci/netns"
)

// machines are two network namespaces that stand for machines with a cable
// between them; both have the open registry.
func machines(t *testing.T) [2]*os.File {
	t.Helper()
	needs(t)
	if err := netns.ProbeGang(); err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	var list [2]*os.File
	for i := range list {
		list[i] = newNetns(t)
	}
	cable := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "port0", Namespace: netlink.NsFd(list[0].Fd())}, PeerName: "port0", PeerNamespace: netlink.NsFd(list[1].Fd()),
	}
	if err := netlink.LinkAdd(cable); err != nil {
		t.Fatal(err)
	}
	for i, ns := range list {
		at := pathOf(ns)
		own, other := fmt.Sprint("198.51.100.", 11+i), fmt.Sprint("198.51.100.", 12-i)
		script := fmt.Sprintf("ip link set lo up && ip addr add %s/24 dev port0 && ip link set port0 up && ip route add default via %s", own, other)
		if out, err := exec.Command("nsenter", "--net="+at, "sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		registry := exec.Command("nsenter", "--net="+at, "docker-registry", "serve", filepath.Join(open.dir, "config.yml"))
		if err := startChild(registry); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(registry.Process.Kill(), registry.Wait()) })
	}
	return list
}

func newNetns(t *testing.T) *os.File {
	t.Helper()
	var f *os.File
	done := make(chan error)
	go func() { // the thread is in the new namespace and ends
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			f, err = os.Open("/proc/thread-self/ns/net")
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestGangOnTwoMachines: two containers on two machines find each other by
// name and reach each other, from the first try that the other one answers;
// another job on the same nodes reaches neither, nor what they listen on by the
// nodes' addresses. The controller and a node are killed meanwhile.
func TestGangOnTwoMachines(t *testing.T) {
	at := machines(t)
	s := newSite(t, siteOptions{nodes: 2, nodeNetns: func(i int) *os.File { return at[i] }})
	gang := s.submit(doc{name: "gang", cpus: 1, gbatch: map[string]any{"nodes": 2}, storage: []any{"/project"}, command: sh(
		`nc -ll -p 7001 -e sh -c 'cat >> /project/heard$GBATCH_RANK' &
for peer in $(echo $GBATCH_NODES | tr , ' '); do
  until echo $(hostname) to $peer, of $MASTER_ADDR | nc $peer 7001; do sleep 0.1; done
done
until [ -e /project/over ]; do sleep 0.1; done`)})
	heard := func(rank int) []string {
		b, err := os.ReadFile(filepath.Join(s.project(), fmt.Sprint("heard", rank)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	eventually(t, "both ranks hear both", func() bool { return len(heard(0)) == 2 && len(heard(1)) == 2 })
	names := s.job(gang).Nodes
	for rank := range 2 {
		for _, from := range names {
			want := fmt.Sprintf("%s to %s, of 10.214.0.1", from, names[rank])
			if got := strings.Join(heard(rank), "\n"); !strings.Contains(got, want) {
				t.Errorf("rank %d heard %q, and not %q", rank, got, want)
			}
		}
	}
	s.ctld.kill()
	s.nodes[0].kill()
	s.ctld.start()
	s.nodes[0].start()
	s.waitNodes("up", 2)
	for i := range 2 {
		stranger := s.submit(doc{name: "stranger", gbatch: map[string]any{"nodeNames": []string{s.nodeName(i)}}, command: sh(
			`for a in 10.214.0.1 10.214.0.2 198.51.100.11 198.51.100.12; do nc -w 3 $a 7001 </dev/null && echo reached $a; done; echo apart`)})
		if d := s.wait(stranger); d.State != job.Finished {
			t.Errorf("%s", describe(d))
		}
		if out := s.must("glog", stranger); !strings.HasSuffix(out, "apart\n") || strings.Contains(out, "reached") {
			t.Errorf("a stranger on node %d: %q", i, out)
		}
	}
	if err := os.WriteFile(filepath.Join(s.project(), "over"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if d := s.wait(gang); endOf(d) != finished {
		t.Errorf("gang:\n%s", describe(d))
	}
	for i, ns := range at {
		eventually(t, fmt.Sprintf("nothing is left of networks on machine %d", i), func() bool {
			out, err := exec.Command("nsenter", "--net="+pathOf(ns), "ip", "-o", "link").CombinedOutput()
			return err == nil && strings.Count(string(out), "\n") == 2 // lo and port0
		})
	}
}

// pathOf is how other programs name a file that this one has open.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

package cores

import (
	"fmt"
	"testing"
	"testing/fstest"

	"gbatch/cgroups"
	"gbatch/internal/job"
)

// TestInherit: who inherits a rank's cores has them when that one gives them back, and nobody else does;
// where one in the middle goes, who would have had its cores has those of the one before.
func TestInherit(t *testing.T) {
	sys := fstest.MapFS{}
	put := func(name, text string) { sys["devices/system/"+name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	put("cpu/online", "0-3")
	for cpu := range 4 {
		put(fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", cpu), fmt.Sprint(cpu))
		put(fmt.Sprintf("cpu/cpu%d/topology/physical_package_id", cpu), "0")
	}
	put("node/node0/cpulist", "0-3")
	put("node/node0/meminfo", "Node 0 MemTotal: 1048576 kB\nNode 0 MemFree: 1 kB")
	topology, err := cgroups.ReadTopology(sys)
	if err != nil {
		t.Fatal(err)
	}
	id := func(n int) job.RankID { return job.RankID{Job: job.Number(n), Attempt: 1} }
	m := &Map{Topology: topology, held: map[job.RankID]cgroups.CPUSet{}, heirs: map[job.RankID]job.RankID{}}
	take := func(n int) string {
		g, err := m.Take(id(n), 2, nil)
		if err != nil {
			return err.Error()
		}
		return g.CPUs.String()
	}
	inherit := func(n, of, cpus int) string {
		g, ok := m.Inherit(id(n), id(of), cpus)
		if !ok {
			return "none"
		}
		return g.CPUs.String()
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("the first", take(1), "0-1")
	check("the second", take(2), "2-3")
	check("more cores than the first has", inherit(3, 1, 3), "none")
	check("an heir", inherit(3, 1, 2), "0-1")
	check("a second heir of the same", inherit(4, 1, 2), "none")
	check("an heir of the heir", inherit(4, 3, 2), "0-1")
	check("an heir of one that holds nothing", inherit(6, 5, 2), "none")
	m.GiveBack(id(3)) // taken back
	m.GiveBack(id(1))
	check("who is left has them", take(4), "0-1")
	m.GiveBack(id(2))
	check("what nobody inherits is free", take(7), "2-3")
	m.GiveBack(id(4))
	check("and so is what an heir gives back", take(8), "0-1")
	if len(m.heirs) > 0 {
		t.Errorf("heirs are left: %v", m.heirs)
	}
}

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upgrade is a site whose programs are exchanged while it is used, by an earlier version's commands and by this one's.
type upgrade struct {
	*several
	older string // directory of the earlier version's programs
	users []*user
	long  []*long
	over  map[string]string // jobs that have ended, and how they were listed
	worst took
}

// TestUpgradeDrill exchanges the programs of a site with three controllers for newer ones and back, one after the other, while
// it is used: no command fails, each job runs once, what runs goes on, and both versions tell the same. It needs the programs
// of an earlier commit; see `make upgrade`.
func TestUpgradeDrill(t *testing.T) {
	older := os.Getenv("GBATCH_OLDER")
	if older == "" {
		t.Skip("SKIPPED: it needs the programs of an earlier commit, in the directory that GBATCH_OLDER names; `make upgrade OLDER=COMMIT` builds them and runs it")
	}
	c := newSeveral(t, siteOptions{bin: older}, nil, nil)
	u := &upgrade{several: c, older: older, over: map[string]string{}}
	t.Cleanup(func() { c.s.bin = bin }) // what ends a site is this version's
	for _, v := range []*user{{name: "older", bin: older}, {name: "newer", bin: bin}} {
		v.several = c
		v.longest.Store(&took{})
		u.users = append(u.users, v)
	}
	var over atomic.Bool
	var working sync.WaitGroup
	for _, v := range u.users {
		working.Go(func() { v.work(&over) })
	}
	t.Cleanup(working.Wait)
	u.begin()
	u.step("nothing", func() {})
	u.leaderLast()
	u.begin()
	u.back()
	u.begin()
	u.leaderFirst()
	over.Store(true)
	working.Wait()
	u.end()
	u.check()
	c.first()
}

// step does something to the site, and waits until all take part again and the users have done a turn or two.
func (u *upgrade) step(name string, do func()) {
	t := u.s.t
	t.Helper()
	do()
	u.wholly()
	for _, v := range u.users {
		before := v.turns.Load()
		eventually(t, "users go on after: "+name, func() bool { return v.turns.Load() >= before+2 })
	}
	u.agree()
	for _, v := range u.users {
		w := v.longest.Swap(&took{})
		t.Logf("%s: waited for at most %v", name, w)
		if w.Duration > u.worst.Duration {
			u.worst = *w
		}
	}
}

// agree compares how both versions list the jobs that have ended, and how they did before.
func (u *upgrade) agree() {
	t := u.s.t
	t.Helper()
	for _, v := range []*user{u.users[0], u.users[1], u.users[0]} {
		r := execute(v.command("gqueue", "-h", "-a", "-o", "%i %T %j %u %S %e"))
		if r.code != 0 {
			t.Errorf("gqueue -a of the %s version: %v", v.name, r)
		}
		now := map[string]string{}
		for line := range strings.Lines(r.out) {
			if f := strings.Fields(line); slices.Contains([]string{"FINISHED", "CANCELLED", "FAILED"}, f[1]) {
				now[f[0]] = line
			}
		}
		for id, line := range u.over {
			if now[id] != line {
				t.Errorf("the %s version lists %q, before it was %q", v.name, now[id], line)
			}
		}
		maps.Copy(u.over, now)
	}
}

// exchange has daemons run the programs of a directory.
func (u *upgrade) exchange(d *daemon, dir string) {
	u.s.t.Helper()
	if err := d.stop(); err != nil {
		u.s.t.Errorf("%s did not stop well: %v", d.name, err)
	}
	d.bin = dir
	d.start()
}

func (u *upgrade) to(i int) {
	u.s.t.Helper()
	eventually(u.s.t, u.all[i].name+" leads", func() bool {
		lead := u.leader()
		if lead != i {
			u.s.runOn(u.socket(lead), "gadm", "controllers", "transfer", u.name(i))
		}
		return lead == i
	})
}

// leaderLast is how docs/controllers.md has it. Between, a newer one leads older ones, and an older one after it.
func (u *upgrade) leaderLast() {
	lead := u.leader()
	first, second := (lead+1)%3, (lead+2)%3
	u.step("the first controller is newer", func() { u.exchange(u.all[first], bin) })
	u.step("it leads two older ones", func() { u.to(first) })
	u.step("an older one leads again", func() { u.to(lead) })
	u.step("the second is newer", func() { u.exchange(u.all[second], bin) })
	u.step("one of them leads the older one", func() { u.to(second) })
	u.step("the last is newer", func() { u.exchange(u.all[lead], bin) })
	u.step("the node is newer", func() { u.exchange(u.s.nodes[0], bin) })
}

// leaderFirst has whoever leads stop.
func (u *upgrade) leaderFirst() {
	older := func(d *daemon) bool { return !u.newer(d) }
	for slices.ContainsFunc(u.all, older) {
		if i := u.leader(); older(u.all[i]) {
			u.step("who leads is newer", func() { u.exchange(u.all[i], bin) })
		} else {
			u.step("an older one that followed leads", func() { u.to(slices.IndexFunc(u.all, older)) })
		}
	}
	u.step("the node is newer", func() { u.exchange(u.s.nodes[0], bin) })
}

// back is the other way round, the leader last, as far as the earlier version can take part.
func (u *upgrade) back() {
	u.step("the node is older", func() { u.exchange(u.s.nodes[0], u.older) })
	for can := true; can && slices.ContainsFunc(u.all, u.newer); {
		i := u.leader()
		if j := slices.IndexFunc(u.all, func(d *daemon) bool { return u.newer(d) && d != u.all[i] }); j >= 0 {
			i = j
		}
		u.step("a controller is older", func() { can = u.backTo(i) })
	}
}

func (u *upgrade) newer(d *daemon) bool { return d.bin != u.older }

// backTo has a controller run the earlier version. Where that refuses its records, it is taken out, emptied and added again; where
// it cannot take part for all that, the newer one says so, and is put back.
func (u *upgrade) backTo(i int) (can bool) {
	t, d := u.s.t, u.all[i]
	u.exchange(d, u.older)
	eventually(t, d.name+" takes part, or has ended", func() bool { return !d.running() || u.whole() })
	if d.running() {
		return true
	}
	t.Logf("the older version refuses: %s", tail(d.log, 2))
	u.anew(i)
	log, refused := u.all[u.leader()].log, false
	eventually(t, d.name+" takes part, or cannot", func() bool {
		b, err := os.ReadFile(log)
		refused = err == nil && strings.Contains(string(b), "so it will not count")
		return refused || u.whole()
	})
	if refused {
		t.Logf("the older version cannot take part: %s", tail(log, 1))
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		d.bin = bin
		u.anew(i)
	}
	return !refused
}

// anew takes a controller that does not run out, empties it and adds it again.
func (u *upgrade) anew(i int) {
	t := u.s.t
	t.Helper()
	u.all[i].cmd = nil
	if r := u.s.runOn(u.socket(u.leader()), "gadm", "controllers", "remove", u.name(i)); r.code != 0 {
		t.Fatalf("remove %s: %v", u.name(i), r)
	}
	if err := os.RemoveAll(u.dir(i)); err != nil {
		t.Fatal(err)
	}
	u.join(i)
}

// check looks at all that was submitted.
func (u *upgrade) check() {
	t := u.s.t
	t.Helper()
	once, cancelled, commands := []string{}, []string{}, 0
	for _, v := range u.users {
		once, cancelled, commands = append(once, v.ran...), append(cancelled, v.cancelled...), commands+v.commands
	}
	var numbers []string
	for _, l := range u.long {
		numbers = append(numbers, l.id)
	}
	if diff := cmp.Diff(numbers, lines(t, filepath.Join(u.s.project(), "begun"))); diff != "" {
		t.Errorf("long jobs began (-want +got):\n%s", diff)
	}
	got := lines(t, filepath.Join(u.s.project(), "ran"))
	slices.Sort(got)
	slices.Sort(once)
	if diff := cmp.Diff(once, got); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	numbers = append(append(numbers, once...), cancelled...)
	slices.Sort(numbers)
	if n := len(slices.Compact(slices.Clone(numbers))); n != len(numbers) {
		t.Errorf("%d jobs have %d numbers", len(numbers), n)
	}
	u.agree()
	ends := map[string]int{}
	for _, line := range u.over {
		f := strings.Fields(line)
		ends[f[2]+" "+f[1]]++
	}
	want := map[string]int{"once FINISHED": len(once), "endless CANCELLED": len(cancelled), "long FINISHED": len(u.long)}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	_, past, _ := strings.Cut(u.as("ginfo", u.s.nodeName(0)), "Past\n")
	if strings.Count(past, "\n") != 0 || !strings.Contains(past, "joined") {
		t.Errorf("this became of the node, which was to stay up:\n%s", past)
	}
	t.Logf("%d jobs, %d commands; the longest took %v", len(numbers), commands, u.worst)
}

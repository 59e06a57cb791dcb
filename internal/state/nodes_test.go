package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestNodes: over changes of all kinds a list has what a map has, by name; a snapshot stays as it was; and the
// changes since are those between what each had.
func TestNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Nodes
		all := map[string]*Node{}
		name := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("n%03d", rapid.IntRange(0, 3*nodesPage).Draw(t, "n")) })
		for _, first := range rapid.SliceOfN(name, 0, 3*nodesPage).Draw(t, "nodes") {
			all[first] = &Node{Name: first}
			l.Put(all[first])
		}
		before, was := l.Snapshot(), maps.Clone(all)
		changed := map[string]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			n := name.Draw(t, "name")
			changed[n] = true
			if all[n] != nil && rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
				l.Remove(n)
				delete(all, n)
				continue
			}
			v := &Node{Name: n}
			if old := l.Put(v); old != all[n] {
				t.Fatalf("%s was %p, want %p", n, old, all[n])
			}
			all[n] = v
		}
		for _, x := range []struct {
			list Nodes
			want map[string]*Node
		}{{l, all}, {before, was}} {
			var got []string
			for n := range x.list.All() {
				got = append(got, n.Name)
				if n != x.want[n.Name] || x.list.Get(n.Name) != n {
					t.Fatalf("%s has another value", n.Name)
				}
			}
			if d := cmp.Diff(slices.Sorted(maps.Keys(x.want)), got); d != "" || x.list.Len() != len(got) {
				t.Fatal(d)
			}
		}
		var want, got []string
		for _, n := range slices.Sorted(maps.Keys(changed)) {
			if was[n] != all[n] {
				want = append(want, n)
			}
		}
		for b, a := range before.Changes(&l) {
			n := ""
			for _, x := range []*Node{b, a} {
				if x != nil {
					n = x.Name
				}
			}
			if b != was[n] || a != all[n] {
				t.Fatalf("%s: from %p to %p, want from %p to %p", n, b, a, was[n], all[n])
			}
			got = append(got, n)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestNodesChangeAsTheyAreGoneThrough: what is put in meanwhile does not make one come twice or not at all.
func TestNodesChangeAsTheyAreGoneThrough(t *testing.T) {
	var l Nodes
	for i := range 2 * nodesPage {
		l.Put(&Node{Name: fmt.Sprintf("n%03d", 2*i)})
	}
	view := l.Snapshot()
	count := 0
	for n := range l.All() {
		count++
		l.Put(&Node{Name: n.Name, Hash: "new"})
		l.Put(&Node{Name: n.Name + "-twin"})
	}
	if count != 2*nodesPage || l.Len() != 2*count || view.Len() != count {
		t.Errorf("%d were gone through, %d there", count, l.Len())
	}
	for n := range view.All() {
		if n.Hash != "" {
			t.Fatalf("%s is another one in the snapshot", n.Name)
		}
	}
}

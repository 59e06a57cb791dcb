package fair

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestTurns: one user with ten times as much waiting, or with dear requests, does
// not put off the others: they are in the very next turn, whenever they came.
func TestTurns(t *testing.T) {
	type put struct {
		user string
		n    int
		cost int
	}
	for name, tc := range map[string]struct {
		puts []put
		want []map[string]int // in each turn, by user
	}{
		"alone":         {[]put{{"ann", 300, 1}}, []map[string]int{{"ann": 128}, {"ann": 128}, {"ann": 44}}},
		"ten times":     {[]put{{"ann", 200, 1}, {"bob", 20, 1}, {"eve", 20, 1}}, []map[string]int{{"ann": 128, "bob": 20, "eve": 20}, {"ann": 72}}},
		"all of it":     {[]put{{"ann", 2000, 1}, {"bob", 200, 1}, {"eve", 200, 1}}, []map[string]int{{"ann": 128, "bob": 128, "eve": 128}, {"ann": 128, "bob": 72, "eve": 72}, {"ann": 128}}},
		"dear":          {[]put{{"ann", 4, 300}, {"bob", 3, 50}}, []map[string]int{{"ann": 1, "bob": 3}, {"ann": 1}, {"ann": 1}, {"ann": 1}}},
		"dear for many": {[]put{{"ann", 2, 300}, {"bob", 300, 1}}, []map[string]int{{"ann": 1, "bob": 128}, {"bob": 128}, {"ann": 1, "bob": 44}}},
	} {
		t.Run(name, func(t *testing.T) {
			q := NewQueue[string](4096)
			for _, p := range tc.puts {
				for range p.n {
					if _, ok := q.Put(p.user, p.cost, p.user); !ok {
						t.Fatal("it is full")
					}
				}
			}
			var got []map[string]int
			for range tc.want {
				turn := map[string]int{}
				for _, u := range q.Take(512, 128) {
					turn[u]++
				}
				got = append(got, turn)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFull: who fills the queue is refused, and who comes then is let in.
func TestFull(t *testing.T) {
	q := NewQueue[string](10)
	for i := range 10 {
		if _, ok := q.Put("ann", 1, fmt.Sprint("ann", i)); !ok {
			t.Fatal("it is full too soon")
		}
	}
	if out, ok := q.Put("ann", 1, "ann10"); ok || out != "ann10" {
		t.Errorf("one more of hers: %q, %t", out, ok)
	}
	for i := range 5 {
		if out, ok := q.Put("bob", 1, fmt.Sprint("bob", i)); ok || out != fmt.Sprint("ann", 9-i) {
			t.Errorf("bob's %d put out %q, %t", i, out, ok)
		}
	}
	if out, ok := q.Put("bob", 1, "bob5"); ok || out != "bob5" {
		t.Errorf("bob's beyond his half: %q, %t", out, ok)
	}
	want := []string{"ann0", "ann1", "ann2", "ann3", "ann4", "bob0", "bob1", "bob2", "bob3", "bob4"}
	if diff := cmp.Diff(want, q.Take(100, 100)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnyOrder: whatever is put in comes out once, of each user in order, and a
// turn has something while anything waits. Nobody waits longer than others' dear
// requests make it: a user's first is out after as many turns as its own cost takes.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := NewQueue[[2]int](1000)
		in, out, waits := map[int]int{}, map[int]int{}, 0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			user := rapid.IntRange(0, 3).Draw(rt, "user")
			for range rapid.IntRange(0, 9).Draw(rt, "puts") {
				if _, ok := q.Put(fmt.Sprint(user), rapid.IntRange(0, 40).Draw(rt, "cost"), [2]int{user, in[user]}); ok {
					in[user]++
					waits++
				}
			}
			got := q.Take(rapid.IntRange(1, 12).Draw(rt, "most"), rapid.IntRange(1, 9).Draw(rt, "share"))
			if waits > 0 && len(got) == 0 {
				rt.Fatal("nothing was given out")
			}
			for _, x := range got {
				if x[1] != out[x[0]] {
					rt.Fatalf("user %d: number %d came, want %d", x[0], x[1], out[x[0]])
				}
				out[x[0]]++
				waits--
			}
			if waits != q.Len() {
				rt.Fatalf("%d wait, it says %d", waits, q.Len())
			}
		}
	})
}

package licenses

import (
	"testing"

	"pgregory.net/rapid"

	"gbatch/sched/spec"
)

// TestEarliest: what the book says of a moment is what adding up says of every moment
// until then, whatever was reserved and released in between.
func TestEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const last = 30
		var used [last]int64
		var held []reservation
		b := Book{Total: map[string]int64{"x": 3}, Holders: func(yield func([]spec.License, spec.Time)) {
			for _, h := range held {
				yield(h.list, h.end)
			}
		}}
		count := func(r reservation, sign int64) {
			for at := r.start; at < r.end; at++ {
				used[at] += sign * r.list[0].Count
			}
		}
		var kept []reservation
		for id := range rapid.IntRange(0, 12).Draw(t, "steps") {
			start := spec.Time(rapid.IntRange(0, last-1).Draw(t, "start"))
			r := reservation{spec.JobID(id), start, spec.Time(rapid.IntRange(int(start), last-1).Draw(t, "end")), []spec.License{{Name: "x", Count: rapid.Int64Range(1, 2).Draw(t, "count")}}}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				r.start = 0
				held = append(held, r)
				b.Take(r.list, r.end)
				count(r, +1)
			case 1:
				if len(kept) > 0 {
					gone := kept[0]
					kept = kept[1:]
					b.Release(func(id spec.JobID) bool { return id == gone.job })
					count(gone, -1)
				}
			case 2:
				b.Forget()
			default:
				kept = append(kept, r)
				b.Reserve(r.job, r.start, r.end, r.list)
				count(r, +1)
			}
			want, length := rapid.Int64Range(1, 4).Draw(t, "want"), spec.Time(rapid.IntRange(1, last).Draw(t, "length"))
			from := spec.Time(rapid.IntRange(0, last-1).Draw(t, "from"))
			best := spec.Never
			for at := from; at < last && best == spec.Never && want <= 3; at++ {
				best = at
				for k := at; k < min(at+length, last); k++ {
					if used[k]+want > 3 {
						best = spec.Never
					}
				}
			}
			if got := b.Earliest([]spec.License{{Name: "x", Count: want}}, from, length); got != best {
				t.Fatalf("%d for %d from %d: %d, want %d; in use: %v", want, length, from, got, best, used)
			}
		}
	})
}

// TestLacking: the words have the numbers.
func TestLacking(t *testing.T) {
	b := Book{Total: map[string]int64{"x": 4, "y": 1}, Holders: func(yield func([]spec.License, spec.Time)) {
		yield([]spec.License{{Name: "x", Count: 2}}, 10)
	}}
	b.Reserve(1, 5, 20, []spec.License{{Name: "x", Count: 2}})
	for name, tc := range map[string]struct {
		list  []spec.License
		text  string
		never bool
	}{
		"none":     {nil, "", false},
		"free":     {[]spec.License{{Name: "y", Count: 1}}, "", false},
		"too few":  {[]spec.License{{Name: "y", Count: 1}, {Name: "x", Count: 3}}, "2 of 4 x licences are free, and the job asks for 3", false},
		"planned":  {[]spec.License{{Name: "x", Count: 1}}, "2 of 4 x licences are free, and planned for jobs before it", false},
		"too many": {[]spec.License{{Name: "y", Count: 2}}, "the site has 1 y licence, and the job asks for 2", true},
		"unknown":  {[]spec.License{{Name: "z", Count: 1}}, "the site has 0 z licences, and the job asks for 1", true},
	} {
		if text, never := b.Lacking(tc.list, 10); text != tc.text || never != tc.never {
			t.Errorf("%s: %q, never %t; want %q, %t", name, text, never, tc.text, tc.never)
		}
	}
}

package metrics

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Other is the label of those that have none of their own.
const Other = "other"

// Top says which names keep their label: the n of the largest weight, ties by
// name. All others are Other.
func Top(weight map[string]float64, n int) func(string) string {
	names := slices.SortedFunc(maps.Keys(weight), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	keeps := map[string]bool{}
	for _, name := range names[:min(n, len(names))] {
		keeps[name] = true
	}
	return func(name string) string {
		if keeps[name] {
			return name
		}
		return Other
	}
}

// First gives a label of their own to the first Max names that it is asked for,
// and Other to all that come later: for counters, whose labels must not change.
type First struct {
	Max int

	mu   sync.Mutex
	have map[string]bool
}

// Label is the label of a name.
func (f *First) Label(name string) string {
	name = Label(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.have == nil {
		f.have = map[string]bool{}
	}
	if !f.have[name] {
		if len(f.have) >= f.Max {
			return Other
		}
		f.have[name] = true
	}
	return name
}

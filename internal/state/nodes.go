package state

import (
	"iter"
	"slices"
	"sort"
)

const nodesPage = 64

// Nodes holds nodes by name, copied on write by pages: what a change of one costs, and to compare
// two lists, does not grow with how many there are but by a pointer a page. Nodes that come and go
// are few, and make all pages anew, but for those that come in order.
type Nodes struct {
	pages  []*[nodesPage]*Node // all full but the last
	shared []bool              // pages[i] may be in a snapshot: copy before writing
	count  int
}

// NodesOf holds nodes that are sorted by name.
func NodesOf(list ...*Node) Nodes {
	l := Nodes{count: len(list)}
	for part := range slices.Chunk(list, nodesPage) {
		l.pages, l.shared = append(l.pages, new([nodesPage]*Node)), append(l.shared, false)
		copy(l.pages[len(l.pages)-1][:], part)
	}
	return l
}

// Len is how many there are.
func (l *Nodes) Len() int { return l.count }

func (l *Nodes) at(i int) *Node { return l.pages[i/nodesPage][i%nodesPage] }

func (l *Nodes) find(name string) (i int, ok bool) {
	i = sort.Search(l.count, func(i int) bool { return l.at(i).Name >= name })
	return i, i < l.count && l.at(i).Name == name
}

// Get is the node with that name, or nil.
func (l *Nodes) Get(name string) *Node {
	if i, ok := l.find(name); ok {
		return l.at(i)
	}
	return nil
}

// All yields the nodes by name. Meanwhile some may be put in: of one that is there its present value
// or the one before comes, and one that is not does not come.
func (l *Nodes) All() iter.Seq[*Node] {
	pages, count := l.pages, l.count
	return func(yield func(*Node) bool) {
		for i := range count {
			if !yield(pages[i/nodesPage][i%nodesPage]) {
				return
			}
		}
	}
}

func (l *Nodes) all() []*Node { return slices.AppendSeq(make([]*Node, 0, l.count+1), l.All()) }

// own lets a page be written.
func (l *Nodes) own(p int) {
	if l.shared[p] {
		page := *l.pages[p]
		l.pages[p], l.shared[p] = &page, false
	}
}

// Put replaces a node's value, or adds it; old is nil then.
func (l *Nodes) Put(n *Node) (old *Node) {
	i, ok := l.find(n.Name)
	switch {
	case ok:
	case i < l.count:
		*l = NodesOf(slices.Insert(l.all(), i, n)...)
		return nil
	default: // as they come when they are read
		if i%nodesPage == 0 {
			l.pages, l.shared = append(l.pages, new([nodesPage]*Node)), append(l.shared, false)
		}
		l.count++
	}
	l.own(i / nodesPage)
	slot := &l.pages[i/nodesPage][i%nodesPage]
	old, *slot = *slot, n
	return old
}

// Remove drops a node that is there.
func (l *Nodes) Remove(name string) {
	i, _ := l.find(name)
	*l = NodesOf(slices.Delete(l.all(), i, i+1)...)
}

// Snapshot is the list as it is now; later changes do not change it.
func (l *Nodes) Snapshot() Nodes {
	for i := range l.shared {
		l.shared[i] = true
	}
	return Nodes{pages: slices.Clone(l.pages), count: l.count}
}

// Changes yields the values that differ, of one node each and by name: nil before where it came, and
// nil after where it is gone.
func (l *Nodes) Changes(after *Nodes) iter.Seq2[*Node, *Node] {
	return func(yield func(was, is *Node) bool) {
		i, k := 0, 0
		for goOn := true; goOn && (i < l.count || k < after.count); {
			switch {
			case i < l.count && k < after.count && i%nodesPage == 0 && k%nodesPage == 0 && l.pages[i/nodesPage] == after.pages[k/nodesPage]:
				i, k = i+nodesPage, k+nodesPage
			case k >= after.count || i < l.count && l.at(i).Name < after.at(k).Name:
				goOn = yield(l.at(i), nil)
				i++
			case i >= l.count || after.at(k).Name < l.at(i).Name:
				goOn = yield(nil, after.at(k))
				k++
			default:
				if was, is := l.at(i), after.at(k); was != is {
					goOn = yield(was, is)
				}
				i, k = i+1, k+1
			}
		}
	}
}

package nodes

import (
	"fmt"

	"gbatch/sched/spec"
)

// Ranks that are not alike are in groups, each with a shape of its own. Where every rank has a
// node for itself (see shared.go for others), the question of all groups together is which node is whose.

// groupsOf are the groups of a request.
func groupsOf(in *spec.Shape) (out []*Shape) {
	for i := range len(in.Groups) + 1 {
		one := in.Alone(i)
		n, bounds, key := one.Canonical()
		g := newShape(&one, n)
		g.Key, g.Bounds = key, bounds
		out = append(out, g)
	}
	return out
}

// OfRank is the shape that a rank has.
func (shape *Shape) OfRank(rank int) *Shape {
	for _, g := range shape.Groups {
		if rank < g.Ranks() {
			return g
		}
		rank -= g.Ranks()
	}
	return shape
}

// Kinds are the groups, or the shape itself where all ranks are alike.
func (shape *Shape) Kinds() []*Shape {
	if len(shape.Groups) > 0 {
		return shape.Groups
	}
	return []*Shape{shape}
}

// Divide gives each group nodes for its ranks, of those that will do for it, and no node to
// two. It finds places for as many ranks as can have one at all, and of a group's nodes
// takes the first where it can. placed is how many have one.
func Divide(groups []*Shape, will [][]*Node) (given [][]*Node, placed int) {
	d := divider{will: will, owner: map[*Node]int{}}
	for i, g := range groups {
		for range g.Ranks() {
			d.asked = make([]bool, len(groups))
			if !d.more(i) {
				break
			}
			placed++
		}
	}
	given = make([][]*Node, len(groups))
	for i := range groups {
		for _, n := range will[i] {
			if at, ok := d.owner[n]; ok && at == i {
				given[i] = append(given[i], n)
			}
		}
	}
	return given, placed
}

// divider is a division in the making.
type divider struct {
	will  [][]*Node
	owner map[*Node]int
	asked []bool // groups that were asked for a node in this turn
}

// more gives a group one more node: one that nobody has, else one of another group that can
// have another for it.
func (d *divider) more(group int) bool {
	d.asked[group] = true
	for _, n := range d.will[group] {
		if _, taken := d.owner[n]; !taken {
			d.owner[n] = group
			return true
		}
	}
	for _, n := range d.will[group] {
		if of := d.owner[n]; !d.asked[of] && d.more(of) {
			d.owner[n] = group
			return true
		}
	}
	return false
}

// matchingGroups is for how many ranks there are nodes, if nothing else were on them.
func (ix *Index) matchingGroups(shape *Shape) int {
	if shape.Shares() {
		return ix.matchingShared(shape)
	}
	will := make([][]*Node, len(shape.Groups))
	for i, g := range shape.Groups {
		for _, kind := range ix.Order {
			if !g.On(kind).OK {
				continue
			}
			for _, n := range kind.Nodes {
				if !n.Gone && g.Named(n) {
					will[i] = append(will[i], n)
				}
			}
		}
	}
	_, placed := Divide(shape.Groups, will)
	return placed
}

// countGroups is Count for ranks that are not alike: what each group finds, and for how many
// ranks together there is room.
func (ix *Index) countGroups(req *Request, now spec.Time) Counts {
	if req.Shape.Shares() {
		return ix.countShared(req, now)
	}
	groups := req.Shape.Groups
	out := Counts{Near: Lack{Free: -1}, Nodes: ix.matchingGroups(req.Shape)}
	room, shut := make([][]*Node, len(groups)), make([][]*Node, len(groups))
	for i, g := range groups {
		one := *req
		one.Shape = g
		c := ix.Count(&one, now)
		if c.Window != "" && (out.Window == "" || c.Window < out.Window) {
			out.Window = c.Window
		}
		out.Groups = append(out.Groups, c)
		for _, n := range ix.Sorted {
			f := g.On(n.Kind)
			if !f.Now() || !n.TakesJobs() || !g.Named(n) {
				continue
			}
			if _, ok := n.Room(g, f); !ok {
				continue
			}
			if shut[i] = append(shut[i], n); n.ShutBy(&one, f, now) == nil {
				room[i] = append(room[i], n)
			}
		}
	}
	_, out.Room = Divide(groups, room)
	_, open := Divide(groups, shut)
	out.Shut = open - out.Room
	return out
}

// groupWords says which groups have no room, and what they lack.
func (c *Counts) groupWords(shape *Shape) (text string) {
	if shape.Shares() {
		return c.sharedWords(shape)
	}
	for i, g := range shape.Groups {
		if of := &c.Groups[i]; of.Room < g.Ranks() {
			text += fmt.Sprintf("; group %d: %d of %d nodes have room%s", i, of.Room, g.Ranks(), of.lackWords(g))
		}
	}
	if text == "" {
		text = fmt.Sprintf("; %d of %d nodes have room, as groups need the same ones", c.Room, shape.Ranks())
	}
	return text
}

// neverGroups is NeverText for ranks that are not alike.
func (ix *Index) neverGroups(shape *Shape, matching int) string {
	if shape.Shares() {
		return ix.neverShared(shape, matching)
	}
	for i, g := range shape.Groups {
		if m := ix.Matching(g); m < g.Ranks() {
			return fmt.Sprintf("group %d: %s", i, ix.NeverText(g, m))
		}
	}
	return fmt.Sprintf("needs %s: there are nodes for %d of %d ranks, as groups need the same ones", shape.Text(), matching, shape.Ranks())
}

package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// fault is one thing that befalls a part, and when it is over.
type fault struct {
	at    time.Duration
	kind  string
	on    int  // number of the node; -1: of none
	ctl   bool // it is one of the controllers, and not a node
	leads bool // it is the controller that leads then, where one does
	small bool // it counts when something met it
	lasts time.Duration
	by    time.Duration // how far a clock is set, how slow a disk is
}

func (f fault) String() string {
	s := fmt.Sprintf("%s at %s for %s", f.kind, f.at.Round(time.Millisecond), f.lasts.Round(time.Millisecond))
	if f.on >= 0 {
		s += fmt.Sprintf(" on %s%d", map[bool]string{false: "n", true: "c"}[f.ctl], f.on)
	}
	if f.leads {
		s += " or who leads"
	}
	if f.by != 0 {
		s += fmt.Sprintf(" by %s", f.by.Round(time.Millisecond))
	}
	return s
}

// kind is one of faults.
type kind struct {
	name   string
	onPart bool          // of a node, or of several controllers
	most   time.Duration // that it lasts
	by     time.Duration // the most by which
}

// kinds are the faults that there are, each as often as the others.
var kinds = []kind{
	{"kill the controller", false, time.Minute, 0},
	{"cut the controller's power", false, 2 * time.Minute, 0},
	{"slow disk of the controller", false, time.Minute, 2 * time.Second},
	{"full disk of the controller", false, 2 * time.Minute, 0},
	{"set the controller's clock", false, 0, 5 * time.Hour},
	{"bad network", false, 3 * time.Minute, 0},
	{"old answers", true, 3 * time.Minute, 0},
	{"cut a node off", true, 5 * time.Minute, 0},
	{"lose a node's requests", true, 5 * time.Minute, 0},
	{"lose answers to a node", true, 5 * time.Minute, 0},
	{"kill a node's daemon", true, 4 * time.Minute, 0},
	{"crash a node", true, 4 * time.Minute, 0},
	{"flip a bit of a node's", true, time.Minute, 0},
	{"replace a node", true, 4 * time.Minute, 0},
	{"set a node's clock", true, 0, 5 * time.Hour},
}

// apart are drawn by themselves, so that all others befall a seed as they did before these were there: which seeds find a
// planted bug hangs by that.
var apart = []kind{{"full disk of a node", true, 4 * time.Minute, 0}}

// drawApart adds these to the faults of a history, each about as often as one of the others.
func (h *history) drawApart(every time.Duration) {
	h.faults = append(h.faults, drawing{apart, h.nodes, h.lasts, 16 * every}.draw(rand.New(rand.NewPCG(h.seed, 12)))...)
}

// drawLarge adds to the faults of a large site's nodes, of which each is to have some.
func (h *history) drawLarge(every time.Duration) {
	if h.nodes >= large {
		of := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.onPart })
		h.faults = append(h.faults, drawing{of, h.nodes, h.lasts, every * large / time.Duration(h.nodes)}.draw(rand.New(rand.NewPCG(h.seed, 14)))...)
	}
}

// ofSeveral are those of a site with several controllers.
var ofSeveral = []kind{
	{"kill a controller", true, time.Minute, 0},
	{"cut a controller's power", true, 2 * time.Minute, 0},
	{"pause a controller", true, 20 * time.Second, 0},
	{"pause a controller", true, 6 * time.Second, 0}, // another one may just lead when it goes on
	{"cut a controller off", true, 2 * time.Minute, 0},
	{"lose what a controller sends", true, 2 * time.Minute, 0},
	{"lose what is sent to a controller", true, 2 * time.Minute, 0},
	{"slow disk of a controller", true, time.Minute, 2 * time.Second},
	{"full disk of a controller", true, 2 * time.Minute, 0},
	{"set a controller's clock", true, 0, 5 * time.Hour},
	{"lose a controller's machine", true, 2 * time.Minute, 0},
	{"remove a controller", true, 2 * time.Minute, 0},
	{"lose a controller's store", true, time.Minute, 0},
	{"flip a bit of a controller's", true, time.Minute, 0},
	{"update a controller", true, 20 * time.Second, 0},
}

// glitches are small: for a moment what a part sends is lost, late or sent twice, or its disk is slow. They come often, and
// what goes on meanwhile goes on.
var glitches = []kind{
	{"lose a few messages", true, 2 * time.Second, 0},
	{"delay a few messages", true, 2 * time.Second, 700 * time.Millisecond},
	{"repeat a few messages", true, 2 * time.Second, 0},
}

// ofControllers are those of several controllers.
var ofControllers = append(slices.Clone(glitches), kind{"slow syncs", true, 2 * time.Second, 200 * time.Millisecond})

// drawGlitches adds those that come so often to the faults of a history.
func (h *history) drawGlitches(often time.Duration) {
	all := drawing{glitches, h.nodes, h.lasts, 2 * often}.draw(rand.New(rand.NewPCG(h.seed, 10)))
	if h.controllers > 0 {
		more := drawing{ofControllers, h.controllers + 1, h.lasts, 2 * often}.draw(rand.New(rand.NewPCG(h.seed, 11)))
		for i := range more {
			more[i].ctl = true
		}
		all = append(all, more...)
	}
	for i := range all {
		all[i].small = true
	}
	h.faults = append(h.faults, all...)
	slices.SortStableFunc(h.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
}

// drawSeveral are those of a history with several controllers: as often of these as of all else.
func drawSeveral(seed uint64, h history, every time.Duration) []fault {
	out := drawing{ofSeveral, h.controllers + 1, h.lasts, 2 * every}.draw(rand.New(rand.NewPCG(seed, 8)))
	var around []fault
	for i := range out {
		out[i].ctl = true
		out[i].leads = i%2 == 0 && slices.Contains(silencing, out[i].kind)
		if out[i].kind == "lose a controller's machine" && out[i].on < h.controllers {
			around = append(around, out[i].around(h.controllers)...)
		}
	}
	out = append(out, around...)
	rest := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.onPart && k.name != "bad network" })
	out = append(out, drawing{rest, h.nodes, h.lasts, 2 * every}.draw(rand.New(rand.NewPCG(seed, 9)))...)
	slices.SortStableFunc(out, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return out
}

// stirs is for how long clients ask a lot when who leads may be another one soon.
const stirs = 15 * time.Second

// silencing are faults by which one that leads is not heard of, so that another one may lead beside it. Half of them
// befall who leads.
var silencing = []string{"pause a controller", "cut a controller off", "lose what a controller sends", "lose what is sent to a controller"}

// around has one of the others have missed what was agreed on last when a machine is lost with its disk, and be the first
// whom the new one hears of: what was agreed on is on the third's disk alone, which is away just then.
func (f *fault) around(controllers int) []fault {
	const before, after = 15 * time.Second, 2 * time.Second
	f.lasts = min(f.lasts, 30*time.Second)
	misses, has := (f.on+1)%controllers, (f.on+2)%controllers
	return []fault{
		{at: max(0, f.at-before), kind: "cut a controller off", on: misses, ctl: true, lasts: before + f.lasts + after},
		{at: f.at + f.lasts - after, kind: "cut a controller off", on: has, ctl: true, lasts: 10 * after},
	}
}

// drawFaults are those of a history.
func drawFaults(seed uint64, nodes int, lasts, every time.Duration) (out []fault) {
	return drawing{kinds, nodes, lasts, every}.draw(rand.New(rand.NewPCG(seed, 7)))
}

// drawing is of which faults so many are drawn.
type drawing struct {
	kinds        []kind
	parts        int           // any of which they befall
	lasts, every time.Duration // over which time, and how often
}

func (d drawing) draw(r *rand.Rand) (out []fault) {
	for range int(d.lasts / d.every) {
		k := d.kinds[r.IntN(len(d.kinds))]
		f := fault{at: time.Duration(r.Int64N(int64(d.lasts))), kind: k.name, on: -1}
		if k.onPart {
			f.on = r.IntN(d.parts)
		}
		if k.most > 0 {
			f.lasts = time.Duration(r.Int64N(int64(k.most)))
		}
		if k.by > 0 {
			f.by = time.Duration(r.Int64N(int64(k.by)))
			if k.most == 0 && r.IntN(2) == 0 {
				f.by = -f.by
			}
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return out
}

// befall has a fault happen, and ends it.
func (w *world) befall(f fault) {
	if f.leads {
		f.on = w.whoLeads(f.on)
		w.stirred.Store(int64(w.now() + stirs))
	}
	w.note("fault: %s", f)
	if f.small {
		w.glitch(f)
		w.note("over: %s", f)
		return
	}
	if f.kind != imaged && f.kind != unheard && f.kind != oldStore { // which happen later
		w.audit.fault(f.kind)
	}
	if f.ctl {
		w.members[f.on].befall(f)
		w.note("over: %s", f)
		return
	}
	var m *machine
	if f.on >= 0 {
		m = w.nodes_[f.on]
	}
	switch f.kind {
	case "kill the controller":
		w.ctl.restart(100, f.lasts)
	case "cut the controller's power":
		w.ctl.restart(0, f.lasts)
	case "slow disk of the controller":
		w.ctl.disk.slow.Add(int64(f.by))
		_ = w.sleep(f.lasts)
		w.ctl.disk.slow.Add(-int64(f.by))
	case "full disk of the controller":
		w.ctl.disk.full.Add(1)
		_ = w.sleep(f.lasts)
		w.ctl.disk.full.Add(-1)
	case "set the controller's clock":
		w.ctl.ahead.Add(int64(f.by))
	case "set a node's clock":
		m.ahead.Add(int64(f.by))
	case "kill a node's daemon":
		m.killDaemon(f.lasts)
	case "flip a bit of a node's":
		m.flip(f.lasts)
	case "full disk of a node":
		m.fill(f.lasts)
	case "crash a node":
		m.crash(f.lasts, nil)
	case "replace a node":
		m.crash(f.lasts, m.empty)
	case imaged, unheard:
		m.putBack(f)
	default:
		w.net.disturb(f)
	}
	w.note("over: %s", f)
}

// whoLeads is the number of the controller that takes itself for the one that leads, or another one.
func (w *world) whoLeads(other int) int {
	for i, m := range w.members {
		if e := m.part(); e != nil && e.leads() {
			return i
		}
	}
	return other
}

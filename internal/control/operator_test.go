package control

import (
	"fmt"
	"strings"
	"time"

	"gbatch/internal/control/quota"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// operator is a step that an operator takes.
func (w *world) operator(cmd, first string, arg func(string, string) string, number func(string, string) int) (string, bool) {
	switch cmd {
	case "limits":
		w.cfg.Policy.User.Queued = number("queued", "0")
		bound := func(key string) int64 { return int64(number(key, "0")) }
		w.cfg.PerUser = quota.Limits{Jobs: bound("jobs"), Tasks: bound("tasks"), Templates: bound("templates"), Needs: bound("dependencies"),
			Bytes: bound("bytes"), DayBytes: bound("daybytes")}
		w.cfg.Users = map[string]quota.Limits{"root": {}}
		return w.answer(w.apply(Reconfigure{w.cfg})), true
	case "away":
		w.now += sched.Time(atoi(w.t, strings.TrimSuffix(first, "s"))) * sched.Second
		w.restart()
		return "", true
	case "led":
		if r, due := w.c.There(w.now); due {
			w.stored[recordKey(r)] = r
			return string(r.Value) + "\n", true
		}
		return "nothing new\n", true
	case "forget":
		return w.answer(w.apply(Forget{Node: first, GiveUpJobs: arg("giveup", "") != ""})), true
	case "drain", "resume":
		ev := Drain{Node: first, GPU: arg("gpu", ""), Reason: arg("reason", ""), By: "op", Evict: arg("evict", "") != "", Reboot: arg("reboot", "") != ""}
		if in := number("in", "0"); in > 0 {
			ev.EvictAt = w.now + sched.Time(in)*sched.Second
		}
		return w.answer(w.apply(ev)), true
	case "says":
		v := w.c.nodes.get(first)
		ev := NodeSync{Name: first, Instance: v.Instance, Hash: v.Hash, Boot: arg("boot", v.Boot), Checked: arg("checked", "") != ""}
		if text := arg("failed", ""); text != "" {
			ev.Reboot = &node.Reboot{Seq: v.OrdersReboot(), Failed: text}
		}
		if text := arg("unhealthy", ""); text != "" {
			ev.Unhealthy = []string{text}
		}
		w.apply(ev)
		return w.nodeState(first), true
	case "state":
		return w.nodeState(first), true
	case "reserve":
		r := Reserve{Window: sched.Window{
			Name: first, Start: w.now + sched.Time(number("in", "0"))*sched.Second, End: w.now + sched.Time(number("until", "0"))*sched.Second,
			Nodes: []string{arg("node", "n1")}, Maintenance: arg("maintenance", "") != "",
			GPUs: strings.FieldsFunc(arg("gpus", ""), func(c rune) bool { return c == '/' }), GPUsPerNode: number("each", "0"),
		}}
		if cron := arg("every", ""); cron != "" {
			r.Every, r.Zone = &state.Every{Cron: strings.ReplaceAll(cron, "_", " "), Zone: "UTC"}, time.UTC
		}
		return w.answer(w.apply(r)), true
	case "unreserve":
		return w.answer(w.apply(Unreserve{Name: first, Once: arg("once", "") != ""})), true
	case "reservations":
		var b strings.Builder
		for _, r := range w.c.View(w.now).Windows {
			fmt.Fprintf(&b, "%s on %s: %s +%ds, %d more\n", r.Name, strings.Join(r.Nodes, ","), time.UnixMilli(int64(r.Start)).UTC().Format("01-02T15:04"), (r.End-r.Start)/1000, len(r.More))
		}
		return b.String(), true
	}
	return "", false
}

// nodeState is what ginfo tells of a node, and whether it is told to reboot.
func (w *world) nodeState(name string) string {
	n := w.c.nodes.get(name)
	word, reason := n.State()
	return fmt.Sprintf("%s: %s; reboot=%s told=%t\n", word, reason, n.Reboot.Stage(), n.OrdersReboot() > 0)
}

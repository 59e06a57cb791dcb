package mpi

import (
	"slices"

	"gbatch/internal/document"
)

// What a launcher's pod and container may have otherwise than the workers', as all nodes are
// the workers': where it runs, how much it takes, and what a cluster does with it.
var (
	ofPod = []string{"containers", "volumes", "restartPolicy", "nodeSelector", "tolerations", "affinity", "serviceAccount", "serviceAccountName", "schedulerName",
		"terminationGracePeriodSeconds", "dnsPolicy", "enableServiceLinks", "automountServiceAccountToken", "topologySpreadConstraints"}
	ofContainer = []string{"name", "imagePullPolicy", "resources", "ports", "command", "args", "env", "workingDir", "volumeMounts", "tty", "stdin"}
)

// pod is the template of the workers with the launcher's program; nil beside a problem.
func (m *mpiJob) pod(d *decoder) *node {
	launcher, worker := podOf(d, m.launcher), podOf(d, m.worker)
	if launcher == nil || worker == nil {
		return nil
	}
	if m.launcher.count != 1 {
		d.Problem(m.launcher.at.Child("replicas"), "must be 1: there is one launcher", "")
	}
	p := newPatterns()
	l, w := launcher.Given("containers").Kids[0], worker.Given("containers").Kids[0]
	alike(d, launcher, worker, ofPod)
	alike(d, l, w, ofContainer)
	mounted(d, launcher, worker)
	if command := w.Given("command"); command != nil || w.Given("args") != nil {
		if words := said(command) + said(w.Given("args")); !p.only(words) {
			d.Problem(w, "runs a program of its own, and workers wait for mpirun here", "remove its command and args; "+batch)
		} else {
			d.Note(w, "waits for mpirun without its command")
		}
	}
	if l.Given("command") == nil && l.Given("args") == nil {
		d.Problem(l, "says no command", "name the launcher's program")
	}
	for _, key := range []string{"command", "args", "env"} {
		if n := l.Given(key); n != nil {
			p.check(d, n)
		}
	}
	if r := l.Given("resources"); r != nil && !m.asWorker {
		d.Note(r, "are not used: the launcher is in the first worker's container")
	}
	restart := text(worker, "restartPolicy", "OnFailure")
	if m.launcher.restart != nil {
		restart.Text = m.launcher.restart.Text
	}
	one := without(w, "command", "args", "env")
	one.Kids = append(one.Kids, l.Child("command"), l.Child("args"), variables(l, w))
	if dir := l.Given("workingDir"); dir != nil {
		one = without(one, "workingDir")
		one.Kids = append(one.Kids, dir)
	}
	one.Kids = slices.DeleteFunc(one.Kids, func(n *node) bool { return n == nil })
	spec := without(worker, "containers", "restartPolicy")
	spec.Kids = append(spec.Kids, object(worker.Child("containers"), one), restart)
	template := without(m.worker.template, "spec")
	template.Kids = append(template.Kids, spec)
	return template
}

// podOf is the pod of a template, which has one container.
func podOf(d *decoder, r *replicas) *node {
	if r.template == nil || r.template.Given("spec") == nil {
		d.Missing(r.at, "template", "")
		return nil
	}
	spec := r.template.Given("spec")
	if list := spec.Given("containers"); list == nil || len(list.Kids) != 1 {
		d.Problem(spec, "must have one container", batch)
		return nil
	}
	return spec
}

// alike finds what a launcher has and the workers have not, or otherwise.
func alike(d *decoder, launcher, worker *node, but []string) {
	for _, n := range launcher.Kids {
		if n.Kind != document.NullKind && !slices.Contains(but, n.Key) && !same(n, worker.Given(n.Key)) {
			d.Problem(n, "is another than the Worker's, and the launcher is in the first worker's container", "have it the same in both; "+batch)
		}
	}
}

// mounted finds what a launcher mounts and the workers do not.
func mounted(d *decoder, launcher, worker *node) {
	mounts := func(pod *node) []*node { return members(pod.Given("containers").Kids[0], "volumeMounts") }
	volume := func(pod, mount *node) *node {
		for _, v := range members(pod, "volumes") {
			if said(v.Given("name")) == said(mount.Given("name")) {
				return v
			}
		}
		return object(pod)
	}
	for _, n := range mounts(launcher) {
		has := slices.ContainsFunc(mounts(worker), func(o *node) bool { return same(n, o) })
		if !has || !same(volume(launcher, n), volume(worker, n)) {
			d.Problem(n, "is not mounted by the Worker, in whose container the launcher is", "mount it in both, from the same volume")
		}
	}
}

// members are the elements of a list that an object may have.
func members(of *node, key string) []*node {
	if list := of.Given(key); list != nil {
		return list.Kids
	}
	return nil
}

// variables are the workers', and the launcher's, which win.
func variables(l, w *node) *node {
	a, b := w.Given("env"), l.Given("env")
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a
	}
	out := *b
	out.Kids = nil
	name := func(n *node) string { return said(n.Given("name")) }
	for _, n := range a.Kids {
		if !slices.ContainsFunc(b.Kids, func(o *node) bool { return name(o) == name(n) }) {
			out.Kids = append(out.Kids, n)
		}
	}
	out.Kids = append(out.Kids, b.Kids...)
	return &out
}

// said are all texts of a value, one after the other.
func said(n *node) string {
	if n == nil {
		return ""
	}
	all := n.Text
	for _, kid := range n.Kids {
		all += " " + said(kid)
	}
	return all
}

// same says that two values are the same.
func same(a, b *node) bool {
	if b == nil || a.Kind != b.Kind || a.Text != b.Text || len(a.Kids) != len(b.Kids) {
		return false
	}
	for i, kid := range a.Kids {
		other := b.Kids[i]
		if a.Kind == document.ObjectKind {
			other = b.Child(kid.Key)
		}
		if !same(kid, other) {
			return false
		}
	}
	return true
}

// object is one in place of another, with other members or elements; their places stay.
func object(at *node, kids ...*node) *node {
	out := *at
	out.Kids = kids
	return &out
}

func without(n *node, keys ...string) *node {
	out := *n
	out.Kids = slices.DeleteFunc(slices.Clone(n.Kids), func(kid *node) bool { return slices.Contains(keys, kid.Key) })
	return &out
}

// text is a member that a file has not, or otherwise.
func text(of *node, key, value string) *node {
	return &node{Kind: document.StringKind, Line: of.Line, Up: of, Key: key, Text: value}
}

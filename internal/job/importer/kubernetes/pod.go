package kubernetes

import (
	"fmt"
	"slices"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/times"
)

func templateFields() []field[manifest] {
	return []field[manifest]{
		{"metadata", func(d *decoder, n *node, k *manifest) {
			document.Object(d, n, []field[manifest]{{"labels", readLabels, false}, {"annotations", readLabels, false},
				{"name", foreign.Remark[manifest](noObjects), false}, {"creationTimestamp", foreign.Remark[manifest](noObjects), false}}, k)
		}, false},
		{"spec", func(d *decoder, n *node, k *manifest) {
			if v := n.Given("volumes"); v != nil {
				readVolumes(d, v, k) // containers refer to them
			}
			document.Object(d, n, podFields(), k)
		}, true},
	}
}

func podFields() []field[manifest] {
	return []field[manifest]{
		{"containers", readContainers, true},
		{"volumes", func(*decoder, *node, *manifest) {}, false}, // read before
		{"restartPolicy", readRestart, false},
		{"nodeSelector", readSelector, false},
		{"nodeName", func(d *decoder, n *node, k *manifest) {
			d.Text(n, &k.spec.Request.Resources.SlaveName, "request.resources.slaveName")
		}, false},
		{"affinity", readAffinity, false},
		{"activeDeadlineSeconds", func(d *decoder, n *node, k *manifest) {
			if k.spec.Request.Scheduling.MaxDuration > 0 {
				d.Problem(n, "is given for the job and for its pods: gbatch has one limit", "keep one of them")
				return
			}
			d.Deadline(n, &k.spec, job.LimitAttempt)
		}, false},
		{"terminationGracePeriodSeconds", func(d *decoder, n *node, k *manifest) {
			if x, ok := d.Integer(n, 0, int(times.MaxDuration)); ok {
				k.spec.Gbatch.StopGrace = job.Duration(max(x, 1))
				d.Becomes("gbatch.stopGrace", n)
			}
		}, false},
		{"priorityClassName", func(d *decoder, n *node, k *manifest) {
			k.spec.Gbatch.QOS, _ = d.Str(n)
			d.Becomes("gbatch.qos", n)
			d.Note(n, "is understood as the qos of that name")
		}, false},
		{"hostNetwork", func(d *decoder, n *node, k *manifest) {
			if on, _ := d.Boolean(n); on {
				k.spec.Gbatch.Network = job.NetworkHost
			}
		}, false},
		{"securityContext", readPodSecurity, false},
		{"initContainers", readInits, false},
		{"ephemeralContainers", refuse[manifest]("use gexec in the running job"), false},
		{"hostPID", refuse[manifest]("jobs have processes of their own: remove it if the job needs no others'; what looks at a node's processes is a check or a prolog of the site's, or runs on the node itself"), false},
		{"hostIPC", refuse[manifest]("jobs have shared memory of their own"), false},
		{"shareProcessNamespace", readShares, false},
		{"runtimeClassName", foreign.Remark[manifest]("is not used: GPUs need no runtime class here"), false},
		{"imagePullSecrets", foreign.Remark[manifest]("is not used: put USER:PASSWORD@ in front of the image, or let the site configure the login on its nodes"), false},
		{"tolerations", foreign.Remark[manifest]("is not used: nodes have no taints here"), false},
		{"schedulerName", foreign.Remark[manifest]("is not used: gbatch itself schedules the job"), false},
		{"serviceAccountName", foreign.Remark[manifest](noAPI), false},
		{"serviceAccount", foreign.Remark[manifest](noAPI), false},
		{"automountServiceAccountToken", foreign.Remark[manifest](noAPI), false},
		{"enableServiceLinks", foreign.Remark[manifest](noAPI), false},
		{"dnsPolicy", foreign.Remark[manifest](nodeNames), false},
		{"topologySpreadConstraints", readSpread, false},
		{"priority", refuse[manifest]("use gbatch.priority of a native job"), false},
		{"hostAliases", refuse[manifest]("use addresses"), false},
		{"dnsConfig", readDNS, false},
		{"hostname", foreign.Remark[manifest]("is not used: the host name is the node's or the job's"), false},
		{"subdomain", func(_ *decoder, n *node, k *manifest) { k.subdomain = n }, false},
		{"resourceClaims", readPodClaims, false},
		{"schedulingGroup", foreign.Remark[manifest](together), false},
		{"os", func(d *decoder, n *node, k *manifest) {
			document.Object(d, n, []field[manifest]{{"name", func(d *decoder, n *node, _ *manifest) { d.OneOf(n, "linux") }, true}}, k)
		}, false},
	}
}

// readRestart is whether a container that failed begins again in its pod.
func readRestart(d *decoder, n *node, k *manifest) {
	if k.restarted != "" {
		d.Note(n, k.restarted)
		return
	}
	word, _ := d.OneOf(n, "Never", "OnFailure")
	switch {
	case word != "OnFailure":
	case containersOf(n) > 1:
		k.together = true
		d.Note(n, "OnFailure has the first container that fails end the others: all of them are tried again in fresh ones, as backoffLimit allows")
	default:
		d.Note(n, "OnFailure is as Never here: what failed is tried again in a fresh container, as backoffLimit allows")
	}
}

const (
	noAPI     = "is not used: there is no Kubernetes to talk to"
	nodeNames = "is not used: names are resolved as on the node"
)

// containersOf is how many containers the pod has that a field is of.
func containersOf(field *node) int {
	if list := field.Up.Given("containers"); list != nil && list.Kind == document.ArrayKind {
		return len(list.Kids)
	}
	return 1
}

// readDNS takes what leaves the meaning of names as it is: servers behind the one that is
// asked first, those that know public names, and how they are asked.
func readDNS(d *decoder, n *node, k *manifest) {
	document.Object(d, n, []field[manifest]{
		{"nameservers", func(d *decoder, n *node, _ *manifest) {
			private := slices.DeleteFunc(d.Strs(n), func(s string) bool { return slices.Contains(publicServers, s) })
			if policy := n.Up.Up.Given("dnsPolicy"); len(private) > 0 && policy != nil && policy.Text == "None" {
				d.Problem(n, "are the only servers that are asked with dnsPolicy None, and names are resolved as on the node", "remove them where the node knows the names, too, else use addresses")
				return
			}
			d.Note(n, nodeNames)
		}, false},
		{"searches", refuse[manifest]("write the names with their domains"), false},
		{"options", foreign.Remark[manifest](nodeNames), false},
	}, k)
}

// publicServers know the names that everybody knows, nodes too.
var publicServers = []string{"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "149.112.112.112"}

// readSelector makes labels of nodes features: name=value.
func readSelector(d *decoder, n *node, k *manifest) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, "an object")
		return
	}
	for _, kid := range n.Kids {
		if value, ok := d.Scalar(kid); ok {
			k.require(d, kid, kid.Key, []string{value})
		}
	}
}

func readPodSecurity(d *decoder, n *node, k *manifest) {
	document.Object(d, n, []field[manifest]{
		{"runAsUser", func(d *decoder, n *node, k *manifest) { readID(d, n, &k.runAs, "request.docker.user") }, false},
		{"runAsGroup", func(d *decoder, n *node, k *manifest) { readID(d, n, &k.runAsGroup, "request.docker.user") }, false},
		{"fsGroup", readGroups, false},
		{"supplementalGroups", readGroups, false},
		{"runAsNonRoot", foreign.Remark[manifest]("is not checked: the container runs as its image's user, or as runAsUser"), false},
		{"fsGroupChangePolicy", foreign.Remark[manifest](storageOwn), false},
		{"seccompProfile", foreign.Remark[manifest](ownProfile), false},
		{"seLinuxOptions", foreign.Remark[manifest](ownProfile), false},
		{"appArmorProfile", foreign.Remark[manifest](ownProfile), false},
		{"sysctls", refuse[manifest]("kernel settings are the node's"), false},
	}, k)
}

const (
	storageOwn = "is not used: files in project storage keep their owners"
	ownProfile = "is not used: every container has gbatch's own system call filter"
)

func readID(d *decoder, n *node, to *string, becomes string) {
	if x, ok := d.Integer(n, 0, 1<<31-1); ok {
		*to = fmt.Sprint(x)
		d.Becomes(becomes, n)
	}
}

func readGroups(d *decoder, n *node, k *manifest) {
	one := func(n *node) {
		if x, ok := d.Integer(n, 0, 1<<31-1); ok {
			k.spec.Request.Docker.GroupAdd = append(k.spec.Request.Docker.GroupAdd, fmt.Sprint(x))
		}
	}
	if n.Kind == document.NumberKind {
		one(n)
		return
	}
	d.Elements(n, one)
}

// readShares is that containers see each other's processes, if there are several.
func readShares(d *decoder, n *node, k *manifest) {
	if on, _ := d.Boolean(n); on {
		k.shares = n
	}
}

// readSpread is how pods are to be spread over nodes, which a cluster may do without.
func readSpread(d *decoder, n *node, k *manifest) {
	d.Elements(n, func(n *node) {
		if x := n.Given("whenUnsatisfiable"); x != nil && x.Text == "ScheduleAnyway" {
			d.Note(n, ownShare)
		} else {
			k.spreads = append(k.spreads, n)
		}
	})
}

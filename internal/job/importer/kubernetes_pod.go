package importer

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
)

func kubeTemplateFields() []field[kubeJob] {
	return []field[kubeJob]{
		{"metadata", func(d *decoder, n *node, k *kubeJob) {
			object(d, n, []field[kubeJob]{{"labels", kubeLabels, false}, {"annotations", kubeLabels, false},
				{"name", remark[kubeJob](kubeObjects), false}, {"creationTimestamp", remark[kubeJob](kubeObjects), false}}, k)
		}, false},
		{"spec", func(d *decoder, n *node, k *kubeJob) {
			if v := n.given("volumes"); v != nil {
				kubeVolumes(d, v, k) // containers refer to them
			}
			object(d, n, kubePodFields(), k)
		}, true},
	}
}

func kubePodFields() []field[kubeJob] {
	return []field[kubeJob]{
		{"containers", kubeContainers, true},
		{"volumes", func(*decoder, *node, *kubeJob) {}, false}, // read before
		{"restartPolicy", func(d *decoder, n *node, _ *kubeJob) {
			if word, _ := d.oneOf(n, "Never", "OnFailure"); word == "OnFailure" {
				d.note(n, "OnFailure is as Never here: what failed is tried again in a fresh container, as backoffLimit allows")
			}
		}, false},
		{"nodeSelector", kubeSelector, false},
		{"nodeName", func(d *decoder, n *node, k *kubeJob) {
			k.spec.Request.Resources.SlaveName, _ = d.str(n)
			d.becomes("request.resources.slaveName", n)
		}, false},
		{"affinity", kubeAffinity, false},
		{"activeDeadlineSeconds", func(d *decoder, n *node, k *kubeJob) {
			if k.spec.Request.Scheduling.MaxDuration > 0 {
				d.problem(n, "is given for the job and for its pods: gbatch has one limit", "keep one of them")
				return
			}
			d.deadline(n, &k.spec, job.LimitAttempt)
		}, false},
		{"terminationGracePeriodSeconds", func(d *decoder, n *node, k *kubeJob) {
			if x, ok := d.integer(n, 0, int(job.MaxDuration)); ok {
				k.spec.Gbatch.StopGrace = job.Duration(max(x, 1))
				d.becomes("gbatch.stopGrace", n)
			}
		}, false},
		{"priorityClassName", func(d *decoder, n *node, k *kubeJob) {
			k.spec.Gbatch.QOS, _ = d.str(n)
			d.becomes("gbatch.qos", n)
			d.note(n, "is understood as the qos of that name")
		}, false},
		{"hostNetwork", func(d *decoder, n *node, k *kubeJob) {
			if on, _ := d.boolean(n); on {
				k.spec.Gbatch.Network = job.NetworkHost
			}
		}, false},
		{"securityContext", kubePodSecurity, false},
		{"initContainers", refuse[kubeJob]("do what they do at the start of the command, or bring data by gbatch.inputs of a native job"), false},
		{"ephemeralContainers", refuse[kubeJob]("use gexec in the running job"), false},
		{"hostPID", refuse[kubeJob]("jobs have processes of their own"), false},
		{"hostIPC", refuse[kubeJob]("jobs have shared memory of their own"), false},
		{"shareProcessNamespace", refuse[kubeJob]("a job has one container"), false},
		{"runtimeClassName", remark[kubeJob]("is not used: GPUs need no runtime class here"), false},
		{"imagePullSecrets", remark[kubeJob]("is not used: put USER:PASSWORD@ in front of the image, or let the site configure the login on its nodes"), false},
		{"tolerations", remark[kubeJob]("is not used: nodes have no taints here"), false},
		{"schedulerName", remark[kubeJob]("is not used: gbatch itself schedules the job"), false},
		{"serviceAccountName", remark[kubeJob](noAPI), false},
		{"serviceAccount", remark[kubeJob](noAPI), false},
		{"automountServiceAccountToken", remark[kubeJob](noAPI), false},
		{"enableServiceLinks", remark[kubeJob](noAPI), false},
		{"dnsPolicy", remark[kubeJob]("is not used: names are resolved as on the node"), false},
		{"topologySpreadConstraints", refuse[kubeJob]("name nodes with nodeSelector"), false},
		{"priority", refuse[kubeJob]("use gbatch.priority of a native job"), false},
		{"hostAliases", refuse[kubeJob]("use addresses"), false},
		{"dnsConfig", refuse[kubeJob]("names are resolved as on the node"), false},
		{"hostname", remark[kubeJob]("is not used: the host name is the node's or the job's"), false},
		{"subdomain", remark[kubeJob]("is not used: tasks of a job do not talk to each other; for ranks that do use gbatch.nodes of a native job"), false},
	}
}

const noAPI = "is not used: there is no Kubernetes to talk to"

// kubeSelector makes labels of nodes features: name=value.
func kubeSelector(d *decoder, n *node, k *kubeJob) {
	if n.kind != objectKind {
		d.wrongKind(n, "an object")
		return
	}
	for _, kid := range n.kids {
		if value, ok := d.scalar(kid); ok {
			k.require(d, kid, kid.key, []string{value})
		}
	}
}

// require asks for nodes whose label has one of the values.
func (k *kubeJob) require(d *decoder, n *node, label string, values []string) {
	r, g := &k.spec.Request.Resources, k.spec.Gbatch
	switch label {
	case "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		if !slices.Contains(values, "linux") && !slices.Contains(values, "amd64") && !slices.Contains(values, "arm64") {
			d.problem(n, fmt.Sprintf("is %s, which no node is", quote(strings.Join(values, ", "))), "")
		}
	case "kubernetes.io/hostname":
		g.NodeNames = append(g.NodeNames, values...)
	case "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/class", "k8s.amazonaws.com/accelerator":
		for _, v := range values {
			// Labels of nodes have - for the blanks and a prefix of the model's name.
			model := strings.TrimPrefix(strings.ReplaceAll(strings.ToUpper(v), "-", " "), "NVIDIA ")
			model = strings.TrimPrefix(strings.TrimPrefix(model, "TESLA "), "GEFORCE ")
			r.GPUModel = append(r.GPUModel, model)
		}
		d.note(n, "is understood as the GPU model "+strings.Join(r.GPUModel, " or "))
	default:
		var any []string
		for _, v := range values {
			any = append(any, label+"="+v)
		}
		addAnyFeature(d, n, g, any)
	}
}

// kubeAffinity takes required node affinity of one term with In and Exists.
func kubeAffinity(d *decoder, n *node, k *kubeJob) {
	object(d, n, []field[kubeJob]{
		{"nodeAffinity", func(d *decoder, n *node, k *kubeJob) {
			object(d, n, []field[kubeJob]{
				{"requiredDuringSchedulingIgnoredDuringExecution", func(d *decoder, n *node, k *kubeJob) {
					object(d, n, []field[kubeJob]{{"nodeSelectorTerms", kubeTerms, true}}, k)
				}, false},
				{"preferredDuringSchedulingIgnoredDuringExecution", remark[kubeJob]("is not used: gbatch places jobs so that the least is left over"), false},
			}, k)
		}, false},
		{"podAffinity", refuse[kubeJob]("name nodes with nodeSelector"), false},
		{"podAntiAffinity", remark[kubeJob]("is not used: every job has its cores, memory and GPUs for itself; for a node of its own use gbatch.exclusive of a native job"), false},
	}, k)
}

func kubeTerms(d *decoder, n *node, k *kubeJob) {
	if n.kind == arrayKind && len(n.kids) > 1 {
		d.problem(n, "has several terms, one is supported", "put all values of one label into one term")
		return
	}
	d.elements(n, func(n *node) {
		object(d, n, []field[kubeJob]{{"matchExpressions", func(d *decoder, n *node, k *kubeJob) {
			d.elements(n, func(n *node) {
				var e kubeExpression
				if object(d, n, kubeExpressionFields, &e) && e.operator == "In" {
					k.require(d, n, e.key, e.values)
				} else if e.operator == "Exists" {
					d.problem(n, "asks whether a label exists, which is not supported", "use operator In with the label's values")
				}
			})
		}, true}}, k)
	})
}

type kubeExpression struct {
	key, operator string
	values        []string
}

var kubeExpressionFields = []field[kubeExpression]{
	{"key", func(d *decoder, n *node, e *kubeExpression) { e.key, _ = d.str(n) }, true},
	{"operator", func(d *decoder, n *node, e *kubeExpression) {
		switch word, ok := d.str(n); {
		case word == "In" || word == "Exists":
			e.operator = word
		case ok:
			d.problem(n, fmt.Sprintf("is %s: only In is supported", quote(word)), "name the values that will do")
		}
	}, true},
	{"values", func(d *decoder, n *node, e *kubeExpression) { e.values = d.strs(n) }, false},
}

func kubePodSecurity(d *decoder, n *node, k *kubeJob) {
	object(d, n, []field[kubeJob]{
		{"runAsUser", kubeID(func(k *kubeJob) *string { return &k.runAs }), false},
		{"runAsGroup", kubeID(func(k *kubeJob) *string { return &k.runAsGroup }), false},
		{"fsGroup", kubeGroups, false},
		{"supplementalGroups", kubeGroups, false},
		{"runAsNonRoot", remark[kubeJob]("is not checked: the container runs as its image's user, or as runAsUser"), false},
		{"fsGroupChangePolicy", remark[kubeJob](storageOwn), false},
		{"seccompProfile", remark[kubeJob](ownProfile), false},
		{"seLinuxOptions", remark[kubeJob](ownProfile), false},
		{"appArmorProfile", remark[kubeJob](ownProfile), false},
		{"sysctls", refuse[kubeJob]("kernel settings are the node's"), false},
	}, k)
}

const (
	storageOwn = "is not used: files in project storage keep their owners"
	ownProfile = "is not used: every container has gbatch's own system call filter"
)

func kubeID(to func(*kubeJob) *string) func(*decoder, *node, *kubeJob) {
	return func(d *decoder, n *node, k *kubeJob) {
		if x, ok := d.integer(n, 0, 1<<31-1); ok {
			*to(k) = fmt.Sprint(x)
			d.becomes("request.docker.user", n)
		}
	}
}

func kubeGroups(d *decoder, n *node, k *kubeJob) {
	one := func(n *node) {
		if x, ok := d.integer(n, 0, 1<<31-1); ok {
			k.spec.Request.Docker.GroupAdd = append(k.spec.Request.Docker.GroupAdd, fmt.Sprint(x))
		}
	}
	if n.kind == numberKind {
		one(n)
		return
	}
	d.elements(n, one)
}

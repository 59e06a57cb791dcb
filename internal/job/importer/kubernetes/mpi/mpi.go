// Package mpi makes a Job of an MPIJob: its pods are those of the workers, of which the first
// runs what the launcher does. It is pure.
package mpi

import (
	"fmt"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

type (
	decoder      = foreign.Decoder
	node         = document.Node
	field[T any] = foreign.Field[T]
)

// mpiJob is an MPIJob as it is read.
type mpiJob struct {
	slots, workers   int
	asWorker         bool
	kept             []*node // what a Job has, too
	launcher, worker *replicas
}

// replicas are pods of one template.
type replicas struct {
	count        int
	at, template *node
	restart      *node
}

const (
	maxWorkers = 1000
	maxSlots   = 1000
	batch      = "submit it as a batch script, in which mpirun starts tasks on all nodes without ssh: #SBATCH --nodes --ntasks-per-node"
)

// Read makes a Job of an MPIJob, with what its pod's rank starts the others by. Other objects
// it returns as they are; false says that this one cannot be had.
func Read(d *decoder, found *node) (as *node, launch *job.Launch, ok bool) {
	if kind := found.Given("kind"); kind == nil || kind.Text != "MPIJob" {
		return found, nil, true
	}
	before := d.Count()
	m := &mpiJob{slots: 1}
	if !document.Object(d, found, fields, m) || d.Count() > before {
		return found, nil, false
	}
	spec := found.Given("spec")
	replicas := spec.Given("mpiReplicaSpecs")
	if m.launcher == nil || m.worker == nil || m.worker.count == 0 {
		d.Problem(replicas, "needs a Launcher and a Worker with one replica at least", "what runs in one pod alone is a Job")
		return found, nil, false
	}
	if m.workers = m.worker.count; m.asWorker {
		m.workers++
	}
	template := m.pod(d)
	if d.Count() > before {
		return found, nil, false
	}
	d.Note(replicas, fmt.Sprintf("are %d nodes, on which mpirun starts its tasks without ssh, %d on each at most; the launcher is beside the first worker, in its container", m.workers, m.slots))
	made := object(spec, append(m.kept, template)...)
	return object(found, text(found, "apiVersion", "batch/v1"), text(found, "kind", "Job"), found.Child("metadata"), made),
		&job.Launch{Tasks: m.workers * m.slots, PerNode: m.slots}, true
}

// Start has a job start its tasks on so many nodes. An mpirun that cannot do that by srun
// fails then, and does not start all of them on its own node.
func Start(s *job.Spec, l *job.Launch) {
	if l == nil {
		return
	}
	if s.Gbatch.Launch = l; l.Tasks == l.PerNode {
		return
	}
	s.Gbatch.Nodes = l.Tasks / l.PerNode
	for _, name := range []string{"OMPI_MCA_plm", "PRTE_MCA_plm"} { // of Open MPI to 4, and from 5 on
		foreign.Set(&s.Request.Docker.Environment, name, "slurm")
	}
}

var fields = []field[mpiJob]{
	{"apiVersion", func(d *decoder, n *node, _ *mpiJob) { d.OneOf(n, "kubeflow.org/v2beta1", "kubeflow.org/v1") }, true},
	{"kind", func(*decoder, *node, *mpiJob) {}, true},
	{"metadata", func(*decoder, *node, *mpiJob) {}, true}, // read as a Job's
	{"spec", func(d *decoder, n *node, m *mpiJob) { document.Object(d, n, specFields, m) }, true},
	{"status", foreign.Remark[mpiJob]("is not used: it is a cluster's record of a job"), false},
}

var specFields = append([]field[mpiJob]{
	{"mpiReplicaSpecs", func(d *decoder, n *node, m *mpiJob) {
		document.Object(d, n, []field[mpiJob]{
			{"Launcher", func(d *decoder, n *node, m *mpiJob) { m.launcher = read(d, n) }, true},
			{"Worker", func(d *decoder, n *node, m *mpiJob) { m.worker = read(d, n) }, true},
		}, m)
	}, true},
	{"slotsPerWorker", func(d *decoder, n *node, m *mpiJob) { m.slots, _ = d.Integer(n, 1, maxSlots) }, false},
	{"runLauncherAsWorker", func(d *decoder, n *node, m *mpiJob) { m.asWorker, _ = d.Boolean(n) }, false},
	{"runPolicy", func(d *decoder, n *node, m *mpiJob) { document.Object(d, n, policyFields, m) }, false},
	{"mpiImplementation", func(d *decoder, n *node, _ *mpiJob) {
		if n.Text != "OpenMPI" {
			d.Problem(n, "is not supported: programs of Open MPI are", "have its program started by srun, which knows PMI-2: "+batch)
		}
	}, false},
	{"sshAuthMountPath", foreign.Remark[mpiJob]("is not used: nothing logs in by ssh"), false},
	{"launcherCreationPolicy", foreign.Remark[mpiJob]("is not used: all nodes are ready before the launcher begins"), false},
}, policyFields...) // where v1 had it

var policyFields = []field[mpiJob]{
	{"cleanPodPolicy", foreign.Remark[mpiJob]("is not used: nothing of a job is left when its launcher has ended"), false},
	{"schedulingPolicy", foreign.Remark[mpiJob]("is not used: all nodes are had together, and gbatch itself queues the job"), false},
	{"backoffLimit", keep, false}, {"activeDeadlineSeconds", keep, false}, {"suspend", keep, false}, {"ttlSecondsAfterFinished", keep, false},
	{"managedBy", func(d *decoder, n *node, _ *mpiJob) { d.OneOf(n, "kubeflow.org/mpi-operator") }, false},
}

func keep(_ *decoder, n *node, m *mpiJob) { m.kept = append(m.kept, n) }

func read(d *decoder, n *node) *replicas {
	r := &replicas{count: 1, at: n}
	document.Object(d, n, []field[replicas]{
		{"replicas", func(d *decoder, n *node, r *replicas) { r.count, _ = d.Integer(n, 0, maxWorkers) }, false},
		{"restartPolicy", func(d *decoder, n *node, r *replicas) {
			r.restart = n
			d.OneOf(n, "Never", "OnFailure")
		}, false},
		{"template", func(_ *decoder, n *node, r *replicas) { r.template = n }, true},
	}, r)
	return r
}

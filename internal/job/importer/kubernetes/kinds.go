package kubernetes

import (
	"fmt"

	"gbatch/internal/document"
)

const (
	gangs  = "a native job with gbatch.nodes is a gang, which starts everywhere or nowhere; its ranks find each other by MASTER_ADDR, MASTER_PORT, GBATCH_RANK, GBATCH_NUM_NODES and a hostfile for mpirun"
	server = "gbatch runs jobs that end; a server can run as one, whose ports gexec --forward reaches"
)

// instead says what to write in place of objects that run something and are no Job.
var instead = map[string]string{
	"TrainJob":   "write it as a PyTorchJob with what its runtime says, which is not in the file; or " + gangs,
	"TFJob":      gangs,
	"PaddleJob":  gangs,
	"XGBoostJob": gangs,
	"JAXJob":     gangs,
	"RayJob":     gangs,
	"RayCluster": gangs,
	"Workflow":   "submit each step as a job, of which some wait for others (gsubmit --dependency)",
	"Pod":        "write it as a Job: what is below spec comes below spec.template.spec, with restartPolicy Never",
	"Deployment": server, "StatefulSet": server, "DaemonSet": server, "ReplicaSet": server,
}

// refuse is a reader for a key that cannot be done. What is empty, false or 0 asks for
// nothing, as a cluster and the tools that write manifests have it.
func refuse[T any](hint string) func(*decoder, *node, *T) {
	return func(d *decoder, n *node, _ *T) {
		zero := map[bool]string{n.Kind == document.BoolKind: "false", n.Kind == document.NumberKind: "0"}[true]
		if n.Text == zero && len(n.Kids) == 0 {
			return
		}
		d.Problem(n, "is not supported", hint)
	}
}

// runsOtherwise tells of an object that runs something and is no Job of batch/v1.
func runsOtherwise(d *decoder, n *node) bool {
	version, kind := n.Given("apiVersion"), n.Given("kind")
	if version == nil || kind == nil || version.Kind != document.StringKind {
		return false
	}
	hint := instead[kind.Text]
	if hint != "" {
		d.Problem(kind, fmt.Sprintf("is %s, which is not supported", document.Quote(kind.Text)), hint)
	}
	return hint != ""
}

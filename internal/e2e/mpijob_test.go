package e2e

import "testing"

// TestMPIJob: mpirun of an MPIJob's launcher starts its tasks on the nodes of the workers, so
// many on each as it has slots, and the job ends with it.
func TestMPIJob(t *testing.T) {
	ref := openMPIImage(t)
	t.Parallel()
	s := newSite(t, siteOptions{nodes: 2})
	file := func(command string) string {
		return `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: hello}
spec:
  slotsPerWorker: 2
  runPolicy: {backoffLimit: 0}
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: launcher
            image: ` + ref + `
            command: [sh, -c, "` + command + `"]
            env: [{name: OMPI_ALLOW_RUN_AS_ROOT, value: "1"}, {name: OMPI_ALLOW_RUN_AS_ROOT_CONFIRM, value: "1"}]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: worker, image: "` + ref + `", command: [/usr/sbin/sshd, -De], resources: {limits: {cpu: 2, memory: 1Gi}}}
`
	}
	for _, c := range []struct {
		name, command, out string
		end                ended
	}{
		{"all slots", "mpirun.openmpi -np 4 /app/hello ring > /tmp/out; echo $?; sort /tmp/out", "0\n" + saidHello(4), finished},
		{"where", "mpirun.openmpi -np 4 hostname | sort -u | wc -l", "2\n", finished},
		{"too many", "mpirun.openmpi -np 5 /app/hello 2> /tmp/err; echo $?; grep -c 'not enough slots' /tmp/err", "1\n1\n", finished},
		{"fails", "mpirun.openmpi -np 4 sh -c 'exit 7' 2> /tmp/err", "", ended{"FAILED", "BACKOFF_LIMIT", 7}},
	} {
		id := s.file(file(c.command))
		d := s.wait(id)
		if out := s.must("glog", id); endOf(d) != c.end || out != c.out {
			t.Errorf("%s: %q\n%s", c.name, out, describe(d))
		}
	}
}

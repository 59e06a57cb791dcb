package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gbatch/oci/image/imagetest"
)

// otherImage has a file, variables and a directory of its own where programs begin.
func otherImage(t *testing.T) string {
	t.Helper()
	ref, err := open.push("demo/other:1", imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{
		{Name: "app/run", Body: []byte("of the other image\n")}, {Name: "app/here", Body: []byte("x")},
	}}, Config: v1.Config{Env: []string{"OF=image", "WORD=image"}, WorkingDir: "/app"}})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// stepImages is a script on two nodes, some of whose steps are in another image.
const stepImages = `#!/bin/sh
#SBATCH --image=IMAGE -N 2 -n 2 -c 1 --mem=256M --container-mounts=/project
exec 2>&1 # both are one stream, so that the order is what it was
cd /project
mkdir -p deep; echo deeper > deep/file; mkdir /inner; echo inside > /inner/file
AT=$(pwd) IN=$(echo /inner) # what only the script knows
export OF=script MINE=script WORD=script LANG=de
echo == own
srun sh -c 'test -e /app/run || echo task $SLURM_PROCID in $PWD' | sort
echo == other
srun -l --container-image=OTHER --container-env=WORD sh -c 'cat run; echo $SLURM_PROCID/$SLURM_NTASKS rank $GBATCH_RANK in $PWD; echo $OF $MINE $WORD $LANG; hostname; touch /new' | sort
echo == again
srun -n1 -N1 --container-image=OTHER --container-workdir=/project sh -c 'exec 2>&1; ls /new; echo in $PWD; echo output of a task > from; exit 3'; echo code $?
cat from
echo == mounts
srun -n1 -N1 --container-mounts=$AT/deep:/a:ro,$IN:/b sh -c 'exec 2>&1; cat /a/file /b/file; echo x > /a/file; echo more > /b/more'; cat /inner/more
srun -n1 -N1 --container-mounts=${IN}x:/a true; echo code $?
srun -n1 -N1 --container-mounts=$IN:/proc/x true; echo code $?
ln -s /proc/1/root /inner/root
srun -n1 -N1 --container-mounts=$IN/root:/a true; echo code $?
echo == names
srun --container-name=one --container-image=OTHER sh -c 'echo of $SLURM_NODEID > /kept'
srun -l --container-name=one sh -c 'cat /kept run' | sort
srun -n1 -N1 --container-name=two sh -c 'ls /kept'; echo code $?
srun -n1 -N1 --container-name=one sh -c 'touch /project/up; until [ -e /there ]; do sleep 0.1; done; echo joined' & until [ -e up ]; do sleep 0.1; done
srun -n1 -N1 --overlap --container-name=one touch /there; wait
echo == unknown
srun -n1 -N1 --container-image=OTHER-no true; echo code $?
srun -n1 -N1 --container-image=$IN.sqsh true; echo code $?
srun -n1 -N1 --container-image=OTHER no-such-program; echo code $?
srun -n1 -N1 --container-image=OTHER --container-readonly touch /x; echo code $?
echo == input
echo one line | srun -n1 -N1 --container-image=OTHER cat
`

const stepImagesSaid = `== own
task 0 in /project
task 1 in /project
== other
0: 0/2 rank 0 in /app
0: image script script
0: NODE
0: of the other image
1: 1/2 rank 1 in /app
1: image script script
1: NODE
1: of the other image
== again
ls: /new: No such file or directory
in /project
srun: error: NODE: task 0: Exited with exit code 3
code 3
output of a task
== mounts
deeper
inside
/usr/sbin/sh: can't create /a/file: Read-only file system
more
slurmstepd: error: container of the step: cannot mount /innerx on /a: the job's container has no such file or directory: mount its storage by --container-mounts of sbatch
srun: error: NODE: task 0: Exited with exit code 1
code 1
slurmstepd: error: container of the step: mount target /proc/x lies in /proc, which belongs to the runtime
srun: error: NODE: task 0: Exited with exit code 1
code 1
slurmstepd: error: container of the step: cannot mount /inner/root on /a: links lead there that are not followed
srun: error: NODE: task 0: Exited with exit code 1
code 1
== names
0: of 0
0: of the other image
1: of 1
1: of the other image
ls: /kept: No such file or directory
srun: error: NODE: task 0: Exited with exit code 1
code 1
joined
== unknown
slurmstepd: error: container of the step: image OTHER-no: no such tag at registry REGISTRY, or no such repository
srun: error: NODE: task 0: Exited with exit code 1
code 1
srun: --container-image=/inner.sqsh: squashed images are not read: name an image in a registry, or oci:/PATH of a layout on the nodes
Try "srun --help" for more information
code 255
slurmstepd: error: execve(): no-such-program: No such file or directory
srun: error: NODE: task 0: Exited with exit code 2
code 2
touch: /x: Read-only file system
srun: error: NODE: task 0: Exited with exit code 1
code 1
== input
one line
`

// TestStepImages: steps of one script run in several images, on two nodes.
func TestStepImages(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	other := otherImage(t)
	id := s.file(strings.NewReplacer("IMAGE", image, "OTHER", other).Replace(stepImages))
	d := s.wait(id)
	text := strings.NewReplacer(s.nodeName(0), "NODE", s.nodeName(1), "NODE", other, "OTHER", strings.TrimSuffix(other, "/demo/other:1"), "REGISTRY").Replace(s.must("glog", id))
	if diff := cmp.Diff(stepImagesSaid, text); diff != "" || endOf(d) != finished {
		t.Errorf("%s (-want +got):\n%s", describe(d), diff)
	}
}

// TestStepImagesOutliveDaemons: a step in another image goes on while its nodes' daemons are
// killed, and one that waits for its image begins when they are back, once.
func TestStepImagesOutliveDaemons(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	id := s.file(strings.NewReplacer("IMAGE", image, "OTHER", otherImage(t)).Replace(`#!/bin/sh
#SBATCH --image=IMAGE -N 2 --mem=256M --container-mounts=/project
exec 2>&1
srun --container-image=OTHER sh -c 'echo up >> /project/up-$SLURM_PROCID; until [ -e /project/go ]; do sleep 0.1; done; cat run; exit $SLURM_PROCID'; echo code $?
srun --container-image=OTHER --container-name=n sh -c 'echo $SLURM_PROCID >> /project/after'
`))
	s.waitFiles("up-0", "up-1")
	s.nodes[0].kill()
	s.nodes[1].kill()
	if err := os.WriteFile(filepath.Join(s.project(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.nodes[0].start()
	s.nodes[1].start()
	d := s.wait(id)
	if endOf(d) != finished {
		t.Errorf("%s", describe(d))
	}
	out := strings.NewReplacer(s.nodeName(0), "NODE", s.nodeName(1), "NODE").Replace(s.must("glog", id))
	if diff := cmp.Diff("of the other image\nof the other image\nsrun: error: NODE: task 1: Exited with exit code 1\ncode 1\n", out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, n := range map[string]int{"up-0": 1, "up-1": 1, "after": 2} {
		if got := lines(t, filepath.Join(s.project(), name)); len(got) != n {
			t.Errorf("%s has %d lines, want %d", name, len(got), n)
		}
	}
}

// TestStepImageEnds: a step in another image is cancelled alone; one that still runs when
// its job is cancelled ends with it.
func TestStepImageEnds(t *testing.T) {
	s := newSite(t, siteOptions{})
	other := otherImage(t)
	id := s.file(strings.NewReplacer("IMAGE", image, "OTHER", other).Replace(`#!/bin/sh
#SBATCH --image=IMAGE --mem=128M --container-mounts=/project
srun --container-image=OTHER sh -c 'touch /project/up; sleep 1000'; echo code $?
srun --container-image=OTHER sh -c 'touch /project/again; sleep 1000'
`))
	s.waitFiles("up")
	s.must("gcancel", id+".0")
	s.waitFiles("again")
	if d := s.job(id); len(d.Steps) != 2 || d.Steps[0].Image != other || d.Steps[1].Image != other {
		t.Errorf("steps %+v, want each with image %s", d.Steps, other)
	}
	if out := s.must("gexec", "-T", id+".1", "--", "cat", "run"); out != "of the other image\n" {
		t.Errorf("gexec in a step's container: %q", out)
	}
	if r := s.run("gexec", id+".0", "--", "true"); r.code == 0 || !strings.Contains(r.err, "step 0 of job "+id+" does not run") {
		t.Errorf("gexec in a step that is over: %v", r)
	}
	if out := s.must("gqueue", "show", id); !strings.Contains(out, "IMAGE") || !strings.Contains(out, other) {
		t.Errorf("no image of a step in\n%s", out)
	}
	if out := s.must("glog", id); !strings.Contains(out, "*** STEP "+id+".0 ON") || !strings.Contains(out, "code 143\n") {
		t.Errorf("%s", out)
	}
	s.must("gcancel", id)
	s.wait(id)
}

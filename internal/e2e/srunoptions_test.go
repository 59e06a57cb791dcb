package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSrunEnds: how steps end by -K, -W, -t and signals, as Slurm's do.
func TestSrunEnds(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	id := s.file(`#!/bin/sh
#SBATCH --image=` + image + ` -N 2 -n 4 --mem=128M --container-mounts=/project
cd /project
# The first srun leaves a process behind, which has none of its files.
held=$(exec 7>&1; srun -n1 -N1 echo held); echo $held
srun -K sh -c '[ $SLURM_PROCID = 2 ] && exit 9; sleep 1000'; echo kill $?
srun -n 4 sh -c '[ $SLURM_PROCID = 2 ] && exit 9; echo goes on $SLURM_PROCID' | sort; echo
srun -W 1 sh -c '[ $SLURM_PROCID = 1 ] && exit 0; sleep 1000'; echo wait $?
srun -n 2 -N 2 sh -c 'trap "echo got it; exit 6" USR1; touch up-$SLURM_PROCID; while :; do sleep 0.1; done' & pid=$!
until [ -e up-0 ] && [ -e up-1 ]; do sleep 0.1; done; kill -USR1 $pid; wait $pid; echo signal $?
srun -n 2 -N 2 sh -c 'touch term-$SLURM_PROCID; exec sleep 1000' & pid=$!
until [ -e term-0 ] && [ -e term-1 ]; do sleep 0.1; done; kill -TERM $pid; wait $pid; echo term $?
echo '0 sh -c "echo %o of %t"
1-2,3 sh -c "echo $SLURM_PROCID %t"' > multi
srun -l --multi-prog multi | sort
srun --multi-prog /nowhere; echo none $?
srun -n 1 -N 1 -o 'o-%4j-%s' -e e-%t sh -c 'echo out; echo err >&2'; cat o-* e-0
srun -n1 -N1 -c 1 --exact nproc
`)
	d := s.wait(id)
	var got []string
	for _, l := range strings.Split(s.must("glog", id), "\n") {
		if !strings.Contains(l, "srun:") && !strings.Contains(l, "slurmstepd:") && l != "" && l != "User defined signal 1" {
			got = append(got, l)
		}
	}
	want := []string{"held", "kill 143", "goes on 0", "goes on 1", "goes on 3", "wait 137", "got it", "got it", "signal 6", "term 143",
		"0: 0 of 0", "1: 1 1", "2: 2 2", "3: 3 3", "none 1", "out", "err", "1"}
	if diff := cmp.Diff(want, got); diff != "" || endOf(d) != finished {
		t.Errorf("(-want +got):\n%s\n%s\n%s", diff, s.must("glog", id), describe(d))
	}
}

// TestSrunTimeLimit: a step ends at its limit, which is a minute at least, as Slurm counts these.
func TestSrunTimeLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{})
	id := s.file("#!/bin/sh\n#SBATCH --image=" + image + " --mem=128M\nsrun -t 0:01 sleep 1000; echo time $?\n")
	poll(3*patience, func() bool { return s.job(id).State.Final() })
	d := s.wait(id)
	if out := s.must("glog", id); !strings.HasSuffix(out, "\ntime 143\n") || endOf(d) != finished || d.Ended.Sub(d.Started) < time.Minute {
		t.Errorf("%s\n%s", out, describe(d))
	}
}

// TestSrunGPUs: what GPUs tasks see, by each way to say it.
func TestSrunGPUs(t *testing.T) {
	s := newSite(t, siteOptions{nodeConfig: "gpu: {simulate: \"h100:4\"}\n"})
	id := s.file(`#!/bin/sh
#SBATCH --image=` + image + ` -n 4 --gpus=4 --mem=128M
echo job $CUDA_VISIBLE_DEVICES
say='echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES'
srun sh -c "$say" | sort
srun --gpus-per-task=1 sh -c "$say" | sort
srun -n 2 --gpus-per-task=2 sh -c "$say" | sort
srun --gpu-bind=single:2 sh -c "$say" | sort
srun --gpu-bind=map_gpu:3,2,1,0 sh -c "$say" | sort
srun -n 1 --gpus=2 sh -c "$say"
srun -n 1 --gres=gpu:1 sh -c "$say"
srun -n 1 --gres=none sh -c 'echo none "$CUDA_VISIBLE_DEVICES"'
srun -n 1 --gpus=5 true; echo code $?
for i in 1 2 3 4; do srun -n1 --exact --gpus=1 sh -c 'echo part $CUDA_VISIBLE_DEVICES; sleep 0.3' & done | sort; wait
`)
	d := s.wait(id)
	out := s.must("glog", id)
	lines := func(of ...string) (text string) {
		for i, l := range of {
			text += fmt.Sprintf("%d %s\n", i, l)
		}
		return text
	}
	const each = "0,1,2,3"
	want := "job " + each + "\n" + lines(each, each, each, each) + lines("0", "1", "2", "3") + lines("0,1", "2,3") + lines("0", "0", "1", "1") + lines("3", "2", "1", "0") +
		"0 0,1\n0 0\nnone \nsrun: error: Unable to create step for job 1: More processors requested than permitted\ncode 1\npart 0\npart 1\npart 2\npart 3\n"
	if diff := cmp.Diff(want, out); diff != "" || endOf(d) != finished {
		t.Errorf("(-want +got):\n%s\n%s", diff, describe(d))
	}
}

// TestSrunStartsMany: 64 tasks over two nodes, as one step. How long that takes is
// shown, and not judged.
func TestSrunStartsMany(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	id := s.file(`#!/bin/sh
#SBATCH --image=` + image + ` -N 2 --mem=512M --container-mounts=/project
srun true
for i in 1 2 3; do
	a=$(cut -d' ' -f1 /proc/uptime); srun -n 64 -O true || exit 1; b=$(cut -d' ' -f1 /proc/uptime)
	echo $a $b >> /project/took
done
`)
	if d := s.wait(id); endOf(d) != finished {
		t.Fatalf("%s\n%s", s.must("glog", id), describe(d))
	}
	b, err := os.ReadFile(filepath.Join(s.project(), "took"))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		var from, to float64
		if _, err := fmt.Sscan(l, &from, &to); err != nil {
			t.Fatal(err)
		}
		t.Logf("64 tasks took %v from srun's start to its end", time.Duration((to-from)*float64(time.Second)).Round(10*time.Millisecond))
	}
}

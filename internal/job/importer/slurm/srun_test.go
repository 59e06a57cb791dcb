package slurm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestStepContainers: what srun in a script asks for is the job's container where the
// script alone says what that is, however it is written.
func TestStepContainers(t *testing.T) {
	for name, tc := range map[string]struct{ script, image, mounts string }{
		"literal":                  {script: "srun --container-image=nvcr.io#nvidia/pytorch:24.01-py3 a", image: "nvcr.io/nvidia/pytorch:24.01-py3"},
		"escaped":                  {script: `srun --container-image=nvcr.io\#a/b:1 a`, image: "nvcr.io/a/b:1"},
		"next word":                {script: "srun -N 2 --mpi pmix --container-image docker://r.example.org/a:1 a", image: "r.example.org/a:1"},
		"variable":                 {script: "IMAGE=r.example.org/a:1\nsrun --container-image=$IMAGE a", image: "r.example.org/a:1"},
		"quoted":                   {script: "R=r.example.org\nexport IMAGE=\"${R}/a:1\"\nsrun \"--container-image=${IMAGE}\" a", image: "r.example.org/a:1"},
		"default":                  {script: "IMAGE=${IMAGE:-r.example.org/a:1}\nsrun --container-image $IMAGE a", image: "r.example.org/a:1"},
		"empty, with a default":    {script: "I=\nsrun --container-image=${I-r.example.org/a:1} a"},
		"twice alike":              {script: "I=r.example.org/a:1\nD=/d:/d:ro\nsrun --container-image=$I --container-mounts=$D a\nsrun --container-image=$I --container-mounts=$D,/e b", image: "r.example.org/a:1", mounts: "/d /e"},
		"several":                  {script: "srun --container-image=r.example.org/a:1 --container-mounts=/a:/d a\nsrun --container-image=r.example.org/b:1 --container-mounts=/b:/d b", image: "r.example.org/a:1", mounts: "/d /b"},
		"changing":                 {script: "if a; then I=r.example.org/a:1; else I=r.example.org/b:1; fi\nsrun --container-image=$I a"},
		"changing, with a default": {script: "I=r.example.org/a:1\nI=$(b)\nsrun --container-image=${I:-c} a"},
		"in a loop":                {script: "I=a\nfor I in b c; do srun --container-image=$I a; done"},
		"unknown":                  {script: "srun --container-image=$1 --container-mounts=/a:$2 a"},
		"of programs":              {script: "srun a --container-image=b"},
		"of others":                {script: "I=a b\nsrun --container-image=$I a"},
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := Parse([]byte("#!/bin/bash\n#SBATCH --mem=1G\n"+tc.script+"\n"), surroundings)
			if err != nil {
				t.Fatal(err)
			}
			var mounts []string
			for _, m := range sub.Spec.Request.Docker.Storage {
				mounts = append(mounts, m.ContainerPath)
			}
			got := []string{sub.Spec.Request.Docker.Image, strings.Join(mounts, " ")}
			if diff := cmp.Diff([]string{tc.image, tc.mounts}, got); diff != "" {
				t.Errorf("image and mounts (-want +got):\n%s", diff)
			}
			told := func(n job.Note) bool { return strings.Contains(n.Message, "the image of the whole job") }
			if has := len(sub.Notes) > 0 && told(sub.Notes[0]); has != (tc.image != "") {
				t.Errorf("notes: %v", sub.Notes)
			}
		})
	}
}

// TestStepContainersRefused: a step in a file of enroot's would not do what was meant.
func TestStepContainersRefused(t *testing.T) {
	for script, want := range map[string]string{
		"A=r.example.org/a:1\nB=r.example.org/b:c:d\nsrun --container-image=$A a\nsrun --container-image=$B b": "is no image reference",
		"I=/images/a.sqsh\nsrun --container-image=$I a":                                                        "squashed images",
		"D=/a:/b:x-mount\nsrun --container-mounts=$D a":                                                        "want ro or rw",
	} {
		if _, err := Parse([]byte("#!/bin/bash\n#SBATCH --mem=1G\n"+script+"\n"), surroundings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", script, err)
		}
	}
}

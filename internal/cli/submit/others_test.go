package submit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/job"
)

const (
	uuid   = "a280f7e8-b1e6-41e9-93a1-ffe9aeb472f8"
	script = "#!/bin/sh\n#SBATCH --image=debian -n 2 --mem=1G\necho \"$@\"\n"
)

// typed runs gsubmit with a command line, in a directory with a job file and a
// script. It gives the jobs that were sent.
func typed(t *testing.T, line ...string) (sent []job.Spec, b *clitest.Bench, err error) {
	t.Helper()
	b = clitest.Start(t, &clitest.Fake{
		Kept: []api.Reservation{{Name: "course", UUID: uuid, Nodes: []string{"n1", "n2"}, Start: time.UnixMilli(5000)}, {Name: "night", Nodes: []string{"n1"}}},
		Submit: func(r *api.SubmitRequest, _ string) (*api.SubmitResponse, *api.Error) {
			sub, err := job.Parse(r.Job)
			if err != nil {
				t.Error(err)
			}
			sent = append(sent, sub.Spec)
			return &api.SubmitResponse{Number: job.Number(len(sent))}, nil
		},
	})
	for name, text := range map[string]string{"job.json": helloJob, "bad.json": badJob, "x.sbatch": script} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := &struct {
		Submit
		cli.IDsFlag
	}{}
	k, err := kong.New(o, kong.ExplicitGroups([]kong.Group{{Key: "job"}, {Key: "container"}, {Key: "output"}}))
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(line, "--"); i >= 0 {
		o.AfterDashes(line[i+1:])
		line = line[:i]
	}
	if line, err = o.OtherOptions(line, k.Model.Flags); err != nil {
		return nil, b, err
	}
	if _, err = k.Parse(line); err != nil {
		return nil, b, err
	}
	err = o.Run(t.Context(), b.App)
	return sent, b, err
}

// TestOthersOptions proves what options of sbatch and docker become on a command
// line, for a command, a script and a job file.
func TestOthersOptions(t *testing.T) {
	t.Chdir(t.TempDir())
	const native = `"cpus":1,"cpuMemoryGb":1`
	for line, want := range map[string][]string{ // what the job has
		"--image a -b now+1hour -C ib&big --nice=7 --comment hi --signal USR1@60 -- true": {`"notBefore":`, `"features":["ib","big"]`, `"priority":-7`,
			`"labels":{"comment":"hi"}`, `"warnBefore":"1 minute"`, `"warnSignal":"USR1"`},
		"--image a --gres gpu:a100:2 --mem-per-gpu=8G --cpus-per-gpu 4 -- true":    {`"gpus":2,"cpus":8,"cpuMemoryGb":16,"gpuModel":["a100"]`},
		"--image a -o out-%j.txt --error err.txt --open-mode append -- true":       {`"stdio":{"output":"out-%j.txt","error":"err.txt","append":true}`},
		"--image a --reservation course -- true":                                   {`"reservationIds":["` + uuid + `"]`, `"nodeNames":["n1","n2"]`},
		"--image a --mail-type=END --mail-user me@example.org -- true":             {`"notify":[{"to":"me@example.org","on":["end"]}]`},
		"--image a --export A=1,B=2 -p 3 --mem 0 --exclusive -- true":              {`"environment":{"A":"1","B":"2"}`, `"clusterId":3`, `"exclusive":true,"allMemory":true`},
		"--image a -p gpu,long --cpus-per-task 3 --partition=big --name x -- true": {`"partitions":["big"]`, `"cpus":3`, `"name":"x"`},
		"--image a --gpus all --shm-size 8g --user 1000:1000 -w /work -p 8080:80 -v /d:/e -e A=b --memory 16g -l a=b --rm -- true": {`"gpus":-1`, `"shmSizeMb":8192`, `"user":"1000:1000"`,
			`"workingDir":"/work"`, `"portMappings":[{"containerPort":80,"hostPort":8080}]`, `"hostPath":"/d"`, `"cpuMemoryGb":16`, `"labels":{"a":"b"}`},
		"--image a -m 2g --entrypoint /init -w n1 --cap-add NET_RAW --publish 443 -- run me": {`"cpuMemoryGb":2`, `"entrypoint":["/init"]`, `"nodeNames":["n1"]`, `"capabilities":["NET_RAW"]`, `"command":["run","me"]`, `"containerPort":443`},
		"x.sbatch -n8 -c 2 -N2 -G 4 -- one two":                                              {`"gpus":2,"cpus":8,"cpuMemoryGb":1`, `"nodes":2`, `"tasks":8,"cpusPerTask":2`, `"command":["one","two"]`},
		"--image b x.sbatch -C ib --exclusive -t 30 --gres=gpu":                              {`"image":"docker.io/library/b:latest"`, `"features":["ib"]`, `"exclusive":true`, `"maxDuration":"30 minutes"`, `"gpus":1`},
		"--wrap hostname --image a -n 4 -J named --mem=2G":                                   {`"script":"#!/bin/sh\nhostname\n"`, `"tasks":4`, `"cpus":4`, `"name":"named"`},
		"-Wn 3 --wrap hostname --image a --mem 1G --dry-run":                                 {`"tasks":3`},
		"--wrap hostname --image a":                                                          {`"name":"wrap"`},
		"job.json --comment hi --begin 2030-01-01 --constraint ib --nice=3":                  {native, `"labels":{"comment":"hi"}`, `"features":["ib"]`, `"priority":-3`},
		"job.json --hint=nomultithread -Q":                                                   {native},
	} {
		sent, b, err := typed(t, strings.Fields(line)...)
		if err != nil || len(sent) != 1 {
			t.Errorf("%s: %v, %d jobs\n%s", line, err, len(sent), b.Err.String())
			continue
		}
		doc, _ := json.Marshal(sent[0])
		for _, part := range want {
			if part = strings.ReplaceAll(part, "\n", `\n`); !strings.Contains(strings.ReplaceAll(string(doc), `\u0026`, "&"), part) {
				t.Errorf("%s: the job has no %s:\n%s", line, part, doc)
			}
		}
	}
}

// TestOthersProblems proves that what cannot be done is told with what can.
func TestOthersProblems(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"--image a --ipc=host -- true":                 "--shm-size",
		"--image a --restart always -- true":           "--retry",
		"--image a --dependancy afterok:1 -- true":     "--dependency",
		"--image a --constrain ib -- true":             "--constraint",
		"--image a --x11 -- true":                      "gexec --forward",
		"--image a --exclusive=user -- true":           "whole nodes",
		"--image a -n 4 -- true":                       "--wrap",
		"job.json --ntasks-per-node=4":                 "--wrap",
		"--image a -e err.txt -- true":                 "--error",
		"--image a --shm-size 64 -- true":              "512m",
		"--image a --publish 80/udp -- true":           "TCP",
		"--image a --reservation other -- true":        "only course",
		"--image a --reservation night -- true":        "reservation night is for others",
		"job.json bad.json":                            "bad.json: request.docker.comand",
		"job.json x.sbatch --follow":                   "one file",
		"x.sbatch job.json -- arg":                     "one script",
		"--wrap true job.json":                         "without a file",
		"--image a --mem-per-gpu 1G --begin x -- true": "--begin",
	} {
		sent, _, err := typed(t, strings.Fields(line)...)
		if err == nil || len(sent) > 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d jobs, error %v, want %q", line, len(sent), err, want)
		}
	}
}

// TestSeveralFiles proves that each file is a job, and that one that the
// controller refuses is told without the others being lost.
func TestSeveralFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	sent, b, err := typed(t, "job.json", "x.sbatch", filepath.Join(".", "job.json"), "-J", "all", "--parsable")
	if err != nil || len(sent) != 3 || sent[1].Name != "all" {
		t.Fatalf("%v, %d jobs", err, len(sent))
	}
	if diff := cmp.Diff("1\n2\n3\n", b.Out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestImagesOwnCommand: with an image and nothing to run, the image's own command
// is the job.
func TestImagesOwnCommand(t *testing.T) {
	sent, b, err := typed(t, "--image", "registry.example.org/demo/hello:2", "--")
	if err != nil || len(sent) != 1 {
		t.Fatalf("%v, %s", err, b.Err.String())
	}
	if c := sent[0].Request.Docker.Command; sent[0].Name != "hello" || len(c.Argv) > 0 || c.Line != "" {
		t.Errorf("job %q runs %+v", sent[0].Name, c)
	}
	// A person at a terminal has no job file to type.
	b = clitest.Start(t, &clitest.Fake{Submit: func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) {
		return &api.SubmitResponse{Number: 1}, nil
	}})
	b.App.Term.In = true
	o := &Submit{}
	o.Image = "debian"
	if err := o.Run(t.Context(), b.App); err != nil {
		t.Error(err)
	}
}

// TestOtherCase: a letter that is no flag, and is one in the other case, is said with that.
func TestOtherCase(t *testing.T) {
	for given, want := range map[string]string{
		"-g2": "there is no flag -g; did you mean -G, --gpus?", "-T": "there is no flag -T; did you mean -t, --time?", "-9": "there is no flag -9",
	} {
		_, _, err := typed(t, "job.json", given)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

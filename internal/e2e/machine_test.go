package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/oci/image/imagetest"
)

// workshop is a site whose scripts see this machine's programs and a directory of
// the stranger's, so that tools which are installed here run in containers too.
// The test is skipped where a program of these is missing.
func workshop(t *testing.T, o siteOptions, programs ...string) (s *site, dir string) {
	t.Helper()
	for _, p := range programs {
		if _, err := os.Stat("/usr/bin/" + p); err != nil {
			t.Skipf("NOT TESTED: there is no /usr/bin/%s here: apt-get install snakemake python3-distributed toil", p)
		}
	}
	needs(t)
	dir, err := os.MkdirTemp("/tmp", "gbatch-e2e-work-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	o.ctldConfig += "imageAliases: {slurm: \"" + machineImage(t) + "\"}\nbatch:\n  mounts: [{hostPath: /usr}, {hostPath: " + dir + "}]\n  environment: {HOME: " + dir + "}\n"
	o.nodeConfig += "  - {name: /usr, path: /usr, readOnly: true}\n  - {name: " + dir + ", path: " + dir + "}\n"
	return newSite(t, o), dir
}

// machineImage is an image with nothing but what leads to the programs below /usr.
func machineImage(t *testing.T) string {
	t.Helper()
	files := []imagetest.File{{Name: "etc/"}, {Name: "etc/alternatives/"}, {Name: "dev/"}, {Name: "proc/"}, {Name: "sys/"}, {Name: "usr/"}, {Name: "tmp/", Mode: 0o1777}}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		files = append(files, imagetest.File{Name: name, Link: "usr/" + name})
	}
	links, err := filepath.Glob("/etc/alternatives/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil {
			files = append(files, imagetest.File{Name: link[1:], Link: to})
		}
	}
	for _, name := range []string{"etc/passwd", "etc/group"} {
		body, err := os.ReadFile("/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, imagetest.File{Name: name, Body: body})
	}
	ref, err := open.push("demo/machine:1", imagetest.Options{Layers: [][]imagetest.File{files}})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// tool runs a tool of this machine as the stranger, who the root of their jobs is on
// shared files, with Slurm's names first in its PATH.
func (s *site) tool(dir string, words ...string) result {
	s.t.Helper()
	program, err := os.ReadFile(filepath.Join(bin, "gslurm")) // where it lies, not all may go
	if err == nil {
		err = errors.Join(os.Chmod(s.dir, 0o755), os.WriteFile(filepath.Join(s.dir, "gslurm"), program, 0o755))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol", "sacctmgr"} {
		if err := os.Symlink("gslurm", filepath.Join(s.dir, name)); err != nil && !os.IsExist(err) {
			s.t.Fatal(err)
		}
	}
	cmd := exec.Command("env", words...) // looks into that PATH
	cmd.Dir, cmd.Stdin = dir, strings.NewReader("")
	cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket(), "PATH="+s.dir+":/usr/bin:/bin", "HOME="+dir, "USER=nobody")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	return execute(cmd)
}

// TestMachinesPrograms: a batch script runs in an image that has nothing, with the machine's
// programs mounted read-only where srun would be put, and finds srun all the same.
func TestMachinesPrograms(t *testing.T) {
	s, dir := workshop(t, siteOptions{})
	r := s.tool(dir, "sbatch", "--parsable", "--wait", "-t", "5", "--mem=128M", "-n", "2", "--wrap", "srun sh -c 'echo task $SLURM_PROCID'; command -v srun")
	text, err := os.ReadFile(filepath.Join(dir, "slurm-1.out"))
	lines := strings.Fields(strings.ReplaceAll(string(text), "task ", ""))
	slices.Sort(lines)
	if diff := cmp.Diff([]string{job.LaunchDir + "/srun", "0", "1"}, lines); diff != "" || err != nil || r.code != 0 {
		t.Errorf("%v (-want +got):\n%s%v", err, diff, r)
	}
}

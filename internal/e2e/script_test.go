package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// home is a site whose scripts have their users' homes and an image, and a way
// to submit from a directory there as a stranger: path is what they call it.
func home(t *testing.T) (s *site, dir, path string, sbatch func(env []string, in string, args ...string) result) {
	t.Helper()
	s = newSite(t, siteOptions{
		nodeConfig: "  - name: /home\n    path: DIR/home\n",
		ctldConfig: "imageAliases: {slurm: \"" + image + "\"}\nbatch:\n  mounts: [{hostPath: \"/home/{user}\"}]\n  environment: {HOME: \"/home/{user}\"}\n",
		ready: func(s *site) {
			for _, d := range []string{"/home", "/home/nobody", "/home/root"} {
				if err := os.Mkdir(s.dir+d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chown(s.dir+"/home/nobody", stranger, stranger); err != nil {
				t.Fatal(err)
			}
		},
	})
	s.as(stranger)
	link := filepath.Join(s.dir, "bin", "gslurm")
	b, err := os.ReadFile(filepath.Join(bin, "gslurm"))
	if err == nil {
		err = os.WriteFile(link, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, path = s.dir+"/home/nobody", "/home/nobody"
	return s, dir, path, func(env []string, in string, args ...string) result {
		cmd := exec.Command(link, append([]string{"sbatch", "--mem=64M"}, args...)...)
		cmd.Env = append(append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket()), env...)
		cmd.Stdin, cmd.Dir = strings.NewReader(in), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		return execute(cmd)
	}
}

// submitted is the number in what sbatch says.
func submitted(r result) string {
	return strings.TrimSpace(strings.TrimPrefix(r.out, "Submitted batch job "))
}

// TestScriptFiles: a script begins where it was submitted from, its output is
// in files there that belong to its user, and in glog as well.
func TestScriptFiles(t *testing.T) {
	s, dir, path, sbatch := home(t)
	for name, text := range map[string]string{"words": "from a file\n", "old": "old\n", "secret": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, name), stranger, stranger); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(dir, "secret"), 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	const script = "#!/bin/sh\npwd; echo $HOME; cat; echo oops >&2\n"
	said := path + "\n" + path + "\noops\n"
	for name, tc := range map[string]struct {
		args  []string
		files map[string]string // ID is the job's number
		end   ended
	}{
		"default": {nil, map[string]string{"slurm-ID.out": said}, finished},
		"errors":  {[]string{"-o", "%x-%5j.%u.txt", "-e", "%x.err", "-J", "named", "-i", "words"}, map[string]string{"named-0000ID.nobody.txt": path + "\n" + path + "\nfrom a file\n", "named.err": "oops\n"}, finished},
		"append":  {[]string{"-o", "old", "--open-mode=append"}, map[string]string{"old": "old\n" + said}, finished},
		"array":   {[]string{"-a", "3"}, map[string]string{"slurm-ID_3.out": said}, finished},
		"nothing": {[]string{"-o", "/dev/null"}, nil, finished},
		"link":    {[]string{"-o", "out"}, nil, ended{job.Failed, job.Mount, 125}},
		"theirs":  {[]string{"-o", "secret"}, map[string]string{"secret": "x"}, ended{job.Failed, job.Mount, 125}},
		"late":    {[]string{"-o", "made-%j/out"}, map[string]string{"made-ID/out": said}, finished}, // by who submitted, when the number is known
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-D", path}, tc.args...)
			r := sbatch(nil, script, args...)
			if r.code != 0 {
				t.Fatal(r)
			}
			id := submitted(r)
			if name == "late" {
				if err := errors.Join(os.Mkdir(dir+"/made-"+id, 0o755), os.Chown(dir+"/made-"+id, stranger, stranger)); err != nil {
					t.Fatal(err)
				}
			}
			d := s.wait(id)
			if tc.end == finished && d.State != job.Finished || tc.end != finished && d.State != job.Failed {
				t.Errorf("%s", describe(d))
			}
			if name != "array" {
				if diff := cmp.Diff(tc.end, endOf(d)); diff != "" {
					t.Errorf("end (-want +got):\n%s\n%s", diff, describe(d))
				}
				if tc.end == finished && len(tc.files) < 2 {
					if log := s.must("glog", id); log != said {
						t.Errorf("log %q", log)
					}
				}
			}
			for file, want := range tc.files {
				at := filepath.Join(dir, strings.ReplaceAll(file, "0000ID", strings.Repeat("0", 5-len(id))+id))
				at = strings.ReplaceAll(at, "ID", id)
				b, err := os.ReadFile(at)
				if err != nil || string(b) != want {
					t.Errorf("%s: %q, %v; want %q", file, b, err, want)
				}
				if st, err := os.Stat(at); err == nil && file != "secret" && st.Sys().(*syscall.Stat_t).Uid != stranger {
					t.Errorf("%s belongs to %d", file, st.Sys().(*syscall.Stat_t).Uid)
				}
			}
		})
	}
}

// TestScriptElsewhere: a script that was submitted from where no storage is
// runs all the same, and is told where its output is.
func TestScriptElsewhere(t *testing.T) {
	s, dir, _, sbatch := home(t)
	r := sbatch(nil, "#!/bin/sh\necho $SLURM_SUBMIT_DIR $SLURM_JOB_NAME $SLURM_NPROCS $0\n", "-n2")
	if r.code != 0 || !strings.Contains(r.err, "read with glog") {
		t.Fatal(r)
	}
	s.wait(submitted(r))
	if log := s.must("glog", submitted(r)); log != "/ sbatch 2 /opt/gbatch/slurm_script\n" {
		t.Errorf("log %q", log)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) > 0 {
		t.Errorf("there are %v", files)
	}
	if r := sbatch(nil, "#!/bin/sh\ncat\n", "-i", "/etc/hostname"); r.code == 0 || !strings.Contains(r.err, "no storage that the job mounts") {
		t.Errorf("input from the node: %v", r)
	}
	// An interpreter that the image does not have.
	r = sbatch(nil, "#!/usr/bin/none -x\n", "-J", "none")
	if d := s.wait(submitted(r)); d.State != job.Failed || !strings.Contains(describe(d), "/usr/bin/none") {
		t.Errorf("%s", describe(d))
	}
}

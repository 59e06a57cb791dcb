package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci/image/imagetest"
)

// helloMPI adds up, and says so. Asked to, each task sends its number to the next
// before, or task 1 calls MPI_Abort, or ends without a word: "early" before it has
// met the others.
const helloMPI = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int c, char **v) {
	int rank, size, sum = 0, from = -1;
	const char *mode = c > 1 ? v[1] : "", *id = getenv("SLURM_PROCID");
	if (strcmp(mode, "early") == 0 && id && strcmp(id, "1") == 0)
		return 5;
	MPI_Init(&c, &v);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(mode, "abort") == 0 && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 9);
	if (strcmp(mode, "die") == 0 && rank == 1)
		_exit(5);
	if (strcmp(mode, "ring") == 0)
		MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (strcmp(mode, "ring") == 0 && from != (rank + size - 1) % size)
		return 6;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("%d of %d, sum %d\n", rank, size, sum);
	MPI_Finalize();
	return 0;
}
`

// mpiImage is an image with a hello of an MPI that this machine has, and what it
// needs of the machine's files.
func mpiImage(t *testing.T, flavour string, beside ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, hello := filepath.Join(dir, "hello.c"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte(helloMPI), 0o644); err != nil {
		t.Fatal(err)
	}
	cc := "mpicc." + flavour
	if err := exec.Command(cc, "-E", source).Run(); err != nil { // Debian has the headers in a package of their own
		t.Skip("NOT TESTED: there is no " + cc + " with headers here: apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev")
	}
	if out, err := exec.Command(cc, source, "-o", hello).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	return hostImage(t, flavour, map[string]string{"app/hello": hello}, beside)
}

// hostImage is an image with programs of this machine, files and directories of it
// beside them, and the libraries that these need.
func hostImage(t *testing.T, name string, programs map[string]string, beside []string) string {
	t.Helper()
	layer := map[string]imagetest.File{}
	add := func(name, at string) {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		st, _ := os.Stat(name)
		layer[at] = imagetest.File{Name: at, Mode: int64(st.Mode().Perm()), Body: body}
		if !strings.HasPrefix(string(body[:min(4, len(body))]), "\x7fELF") {
			return
		}
		libraries, _ := exec.Command("ldd", name).Output() // of one that needs none it fails
		for _, path := range regexp.MustCompile(`/[^ ]+\.so[^ ]*`).FindAllString(string(libraries), -1) {
			if at := strings.TrimPrefix(path, "/"); layer[at].Name == "" {
				body, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				layer[at] = imagetest.File{Name: at, Mode: 0o755, Body: body}
			}
		}
	}
	for at, name := range programs {
		add(name, at)
	}
	for _, path := range beside {
		if err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			if err == nil {
				if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
					add(name, strings.TrimPrefix(name, "/"))
				}
			}
			return err
		}); err != nil {
			t.Skip("NOT TESTED: ", err)
		}
	}
	layer["usr/bin/ssh"] = imagetest.File{Name: "usr/bin/ssh", Mode: 0o755, Body: []byte("#!/bin/sh\nexit 1\n")} // that there is one, Open MPI wants
	var files []imagetest.File
	for _, name := range slices.Sorted(maps.Keys(layer)) {
		files = append(files, layer[name])
	}
	ref, err := open.push("demo/"+name+":1", imagetest.Options{Busybox: true, Layers: [][]imagetest.File{files}})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func openMPIImage(t *testing.T) string {
	t.Helper()
	lib := "/usr/lib/x86_64-linux-gnu/"
	return mpiImage(t, "openmpi", "/usr/bin/mpirun.openmpi", "/usr/bin/orted", lib+"openmpi/lib", lib+"pmix2", "/usr/share/openmpi", "/etc/openmpi")
}

// saidHello is what tasks of the hello print together, in order.
func saidHello(tasks int) string {
	var lines []string
	for i := range tasks {
		lines = append(lines, fmt.Sprintf("%d of %d, sum %d\n", i, tasks, tasks*(tasks-1)/2))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestMPICH: MPICH of Debian meets over two nodes, started by srun. Over TCP it stands still in
// MPI_Finalize now and then on a busy machine, under its own mpiexec too: then it is begun again.
func TestMPICH(t *testing.T) {
	ref := mpiImage(t, "mpich")
	t.Parallel()
	s := newSite(t, siteOptions{nodes: 2})
	id := s.file(`#!/bin/sh
#SBATCH --image=` + ref + ` -N 2 -n 6 --mem=1G
hello() {
	for try in 1 2 3 4 5; do
		timeout 30 srun --mpi=pmi2 -o /tmp/out -e /tmp/err "$@" /app/hello 2> /tmp/said && break
	done
	code=$?
	echo code $code
	[ $code = 0 ] || cat /tmp/said
	sort /tmp/out
}
hello; cat /tmp/err
hello -n 3 -N 1 -m cyclic
`)
	d := s.wait(id)
	if out := s.must("glog", id); endOf(d) != finished || out != "code 0\n"+saidHello(6)+"code 0\n"+saidHello(3) {
		t.Errorf("%s\n%s", out, describe(d))
	}
}

// TestOpenMPI: mpirun of Debian's OpenMPI starts its daemons by srun and its tasks
// meet over two nodes.
func TestOpenMPI(t *testing.T) {
	ref := openMPIImage(t)
	t.Parallel()
	s := newSite(t, siteOptions{nodes: 2})
	id := s.file(`#!/bin/sh
#SBATCH --image=` + ref + ` -N 2 --ntasks-per-node=2 --mem=1G
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun.openmpi /app/hello > /tmp/out 2> /tmp/err; echo code $?
sort /tmp/out; cat /tmp/err
`)
	d := s.wait(id)
	if out := s.must("glog", id); endOf(d) != finished || out != "code 0\n"+saidHello(4) {
		t.Errorf("%s\n%s", out, describe(d))
	}
}

// TestPMIx: tasks of OpenMPI meet over two nodes started by srun alone, asked to by
// --mpi=pmix or not, and a step ends as a whole where one of them does.
func TestPMIx(t *testing.T) {
	ref := openMPIImage(t)
	t.Parallel()
	s := newSite(t, siteOptions{nodes: 2})
	ends := func(mode string) string {
		return "srun --mpi=pmix /app/hello " + mode + ` > /tmp/out 2> /tmp/err; echo code $?
grep 'error: task 1' /tmp/err || cat /tmp/err; grep -c 'Job step aborted' /tmp/err`
	}
	for _, c := range []struct{ name, script, want string }{
		{"asked", "srun --mpi=pmix -n 8 -O /app/hello ring | sort", saidHello(8)},
		{"unasked", "srun -m cyclic /app/hello ring | sort", saidHello(4)},
		{"alone", "srun --mpi=pmix -n 1 -N 1 /app/hello", saidHello(1)},
		{"twice", "srun -n 2 -N 1 sh -c '/app/hello; /app/hello' | sort", strings.Repeat("0 of 2, sum 1\n", 2) + strings.Repeat("1 of 2, sum 1\n", 2)},
		{"abort", ends("abort"), "code 9\nsrun: error: task 1 called MPI_Abort with code 9\n1\n"},
		{"dies", ends("die"), "code 137\nsrun: error: task 1 has ended before MPI_Finalize\n1\n"},
		{"dies-early", ends("early"), "code 137\nsrun: error: task 1 has ended before MPI_Finalize\n1\n"},
		{"missing", `printf '1 /app/none\n* /app/hello\n' > /tmp/multi
srun --multi-prog /tmp/multi 2>&1 > /tmp/out | grep 'error: task 1'`, "srun: error: task 1 has ended before MPI_Finalize\n"},
		{"kept-away", "srun -n1 -N1 sh -c 'srun --overlap -n1 -N1 --mpi=none env' | grep -c ^PMIX_", "0\n"},
		{"list", "srun --mpi=list 2>&1", "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n"},
	} {
		id := s.file(`#!/bin/sh
#SBATCH --image=` + ref + ` -N 2 -n 4 --mem=1G
export OMPI_MCA_mpi_yield_when_idle=1 # there are fewer cores than tasks
` + c.script + "\ntrue\n")
		d := s.wait(id)
		if diff := cmp.Diff(c.want, s.must("glog", id)); endOf(d) != finished || diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", c.name, diff, describe(d))
		}
	}
}

// Package sbcast is the command of that name inside of a job: it puts a file of
// the script's container into those of all ranks, by one step of srun.
package sbcast

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/launch"
	"gbatch/internal/launch/srun"
)

// options are what the command line says.
type options struct {
	force, preserve bool
	from, to        string
}

// Main is the command. It returns its exit code.
func Main(args []string) int {
	o, err := parse(args)
	if err == nil {
		var code int
		if code, err = o.send(); err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "sbcast: error:", err)
	return 1
}

func parse(args []string) (options, error) {
	var o options
	var rest []string
	for i := 0; i < len(args); i++ {
		name, _, given := strings.Cut(args[i], "=")
		switch name {
		case "-f", "--force":
			o.force = true
		case "-p", "--preserve":
			o.preserve = true
		case "-C", "--compress", "-v", "--verbose", "--fanout", "--size", "--timeout": // how it travels
			if !given && (name == "--fanout" || name == "--size" || name == "--timeout") {
				i++
			}
		case "-F", "-s", "-t":
			i++
		case "-j", "--jobid", "--send-libs", "--exclude":
			return o, fmt.Errorf("%s is not supported: it copies the one file to all ranks of this job", name)
		default:
			if len(name) > 2 && strings.Contains("Fst", name[1:2]) && name[0] == '-' && name[1] != '-' { // -F8
				continue
			}
			if strings.HasPrefix(name, "-") && name != "-" {
				return o, fmt.Errorf("unrecognized option '%s'", args[i])
			}
			rest = append(rest, args[i])
		}
	}
	if len(rest) != 2 {
		return o, errors.New("Need two file names, have " + strconv.Itoa(len(rest)) + " names") //nolint:staticcheck // as Slurm writes it
	}
	if o.from, o.to = rest[0], rest[1]; strings.HasSuffix(o.to, "/") {
		o.to = filepath.Join(o.to, filepath.Base(o.from))
	}
	return o, nil
}

// send starts one task on each rank that writes what srun reads. A file by the name
// of "-" is standard input, which is read once.
func (o options) send() (int, error) {
	mode, changed, in := os.FileMode(0o755), int64(0), "all"
	if o.from != "-" {
		st, err := os.Stat(o.from)
		switch {
		case err != nil:
			return 1, err
		case !st.Mode().IsRegular():
			return 1, fmt.Errorf("%s is no regular file", o.from)
		}
		if in, err = filepath.Abs(o.from); err != nil {
			return 1, err
		}
		if mode = st.Mode().Perm(); o.preserve {
			changed = st.ModTime().UnixNano()
		}
	}
	args := []string{"-J", "sbcast", "--ntasks-per-node=1", "--overlap", "--cpu-bind=none", "-c1", "-i", in, "--mpi=none", "--export=NONE", "--gres=none"}
	if strings.Contains(in, "%") {
		return 1, fmt.Errorf("%s: a %% in its name is not supported", in)
	}
	args = append(args, job.LaunchDir+"/"+launch.RankProgram, launch.ModePut, strconv.FormatBool(o.force), strconv.FormatUint(uint64(mode), 8), strconv.FormatInt(changed, 10), o.to)
	for _, name := range []string{"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_DISTRIBUTION", "SLURM_STDOUTMODE", "SLURM_STDERRMODE"} {
		_ = os.Unsetenv(name) // those of the script's steps
	}
	return srun.Main(args), nil
}

// Put is one of its tasks: it writes its input into a file beside the one that is
// meant, and puts it in place when all of it is there.
func Put(args []string) error {
	if len(args) != 4 {
		return errors.New("sbcast is of another version")
	}
	force, _ := strconv.ParseBool(args[0])
	mode, err := strconv.ParseUint(args[1], 8, 32)
	if err != nil {
		return err
	}
	changed, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	return file{args[3], force, os.FileMode(mode), changed}.put(os.Stdin)
}

// file is one to be written.
type file struct {
	to      string
	force   bool // in place of another
	mode    os.FileMode
	changed int64 // in nanoseconds; 0: now
}

func (x file) put(in io.Reader) error {
	if _, err := os.Lstat(x.to); err == nil && !x.force {
		return fmt.Errorf("%s: File exists; --force replaces it", x.to)
	}
	f, err := os.CreateTemp(filepath.Dir(x.to), ".sbcast-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // when it was put in place there is none
	_, err = io.Copy(f, in)
	if err == nil {
		err = f.Chmod(x.mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if x.changed != 0 {
		if err := os.Chtimes(f.Name(), time.Time{}, time.Unix(0, x.changed)); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), x.to)
}

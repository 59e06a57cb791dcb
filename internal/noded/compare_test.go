package noded

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/benchtest"
	"gbatch/oci/draft"
	"gbatch/oci/image"
	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// engine runs a container of `true` from nothing to nothing left. latency is
// from the request to the begin of the program.
type engine struct {
	name string
	once func(n int) (latency time.Duration, err error)
}

// BenchmarkNode compares jobs per second and start latency of this daemon, from
// an order to the end that the controller hears of, with libcontainer in a
// process that lives on and with the command runc, all on one image, overlay
// and filter. They take turns in each round, as the speed of shared machines
// drifts; the ratios are what counts. GBATCH_BENCH_TABLE names a file for the
// table. Meant for -benchtime=1x.
func BenchmarkNode(b *testing.B) {
	s := newSite(b, func(c *config.Config) { c.Cores, c.Launches = 16, 4 }).start()
	s.run(rankID(1), order("true"))
	bench := newRivals(b, s)
	engines := []engine{bench.node("gnoded", true), bench.node("gnoded, tag asked each time", false), {"libcontainer", bench.bare}}
	if _, err := exec.LookPath("runc"); err == nil {
		engines = append(engines, engine{"runc", bench.runc})
	} else {
		b.Log("SKIPPED, no runc on this machine: apt-get install runc")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| | 1 at once | of libcontainer | 4 at once | of libcontainer | 16 at once | of libcontainer | start, median | of libcontainer | processor time | of libcontainer |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	lat, cpu := bench.costs(b, engines)
	rates := map[string]map[int][]float64{}
	const rounds = 7
	for round := range rounds {
		for _, parallel := range []int{1, 4, 16} {
			for i := range engines {
				e := engines[(i+round)%len(engines)]
				rate, _ := bench.round(b, e, parallel, 16+2*parallel)
				if rates[e.name] == nil {
					rates[e.name] = map[int][]float64{}
				}
				rates[e.name][parallel] = append(rates[e.name][parallel], rate)
			}
		}
	}
	for _, e := range engines {
		fmt.Fprintf(&table, "| %s ", e.name)
		for _, parallel := range []int{1, 4, 16} {
			mine, bare := rates[e.name][parallel], rates["libcontainer"][parallel]
			ratios := make([]float64, len(mine))
			for i := range mine {
				ratios[i] = mine[i] / bare[i]
			}
			fmt.Fprintf(&table, "| %.1f/s | %.2f (%.2f to %.2f) ", median(mine), median(ratios), slices.Min(ratios), slices.Max(ratios))
			b.ReportMetric(median(ratios), fmt.Sprintf("%s-%d-of-libcontainer", strings.ReplaceAll(strings.ReplaceAll(e.name, ",", ""), " ", "-"), parallel))
		}
		for _, figures := range []map[string][]time.Duration{lat, cpu} {
			mine, bare := median(figures[e.name]), median(figures["libcontainer"])
			fmt.Fprintf(&table, "| %.1f ms | %.2f ", mine.Seconds()*1000, float64(mine)/float64(bare))
		}
		fmt.Fprintln(&table, "|")
	}
	fmt.Fprintf(&table, "\nAn image of 2 MB that is not there yet, from a registry on loopback, order to begin: %.0f ms.\n", bench.cold(b).Seconds()*1000)
	b.Log("\n" + table.String())
	if file := os.Getenv("GBATCH_BENCH_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(table.String()), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	s.holdsNothing()
}

func median[T int64 | float64 | time.Duration](list []T) T {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// rivals are the ways to run a container.
type rivals struct {
	s    *site
	img  *image.Image
	dir  string
	next int
}

func newRivals(b *testing.B, s *site) *rivals {
	name, _, err := ref.Parse(testReg.image)
	if err != nil {
		b.Fatal(err)
	}
	img, err := s.a.images.Store.Pull(b.Context(), image.PullRequest{Ref: name})
	if err != nil {
		b.Fatal(err)
	}
	return &rivals{s: s, img: img, dir: b.TempDir(), next: 10}
}

// costs are what each takes from request to begin, and of the processors, one at
// a time in many short turns: other load on the machine changes by the second.
func (r *rivals) costs(b *testing.B, engines []engine) (lat, cpu map[string][]time.Duration) {
	lat, cpu = map[string][]time.Duration{}, map[string][]time.Duration{}
	const turns, jobs = 30, 8
	for turn := range turns {
		for i := range engines {
			e := engines[(i+turn)%len(engines)]
			before := benchtest.ProcessorTime(b)
			_, latencies := r.round(b, e, 1, jobs)
			// What it removes afterwards is its own.
			until(b, "the node to be done", func() bool { return len(r.s.a.all()) == 0 })
			lat[e.name] = append(lat[e.name], latencies...)
			cpu[e.name] = append(cpu[e.name], (benchtest.ProcessorTime(b)-before)/jobs)
		}
	}
	return lat, cpu
}

// round runs some jobs, that many at once, and returns jobs per second.
func (r *rivals) round(b *testing.B, e engine, parallel, jobs int) (float64, []time.Duration) {
	latencies := make([]time.Duration, jobs)
	var g errgroup.Group
	g.SetLimit(parallel)
	begin := time.Now()
	for i := range jobs {
		r.next++
		n := r.next
		g.Go(func() (err error) {
			latencies[i], err = e.once(n)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatalf("%s: %v", e.name, err)
	}
	return float64(jobs) / time.Since(begin).Seconds(), latencies
}

// node is the daemon, with the digest known as for all attempts but the first,
// or asking the registry for the tag.
func (r *rivals) node(name string, pinned bool) engine {
	return engine{name, func(n int) (time.Duration, error) {
		id := rankID(n)
		began := time.Now()
		r.s.want(id, order("true", func(o *api.RunOrder) {
			o.Spec.Request.Docker.Command = job.Command{Argv: []string{"/bin/true"}}
			if pinned {
				o.Digest = r.img.Digest
			}
		}))
		e := r.s.exit(id)
		r.s.drop(id)
		if e.Code != 0 {
			return 0, fmt.Errorf("exit %+v", e)
		}
		return time.UnixMilli(e.StartedMS).Sub(began), nil
	}}
}

// cold is the daemon's start of an image that is not there.
func (r *rivals) cold(b *testing.B) time.Duration {
	var took []time.Duration
	for i := range 5 {
		image := r.s.push(fmt.Sprintf("cold%d", i), imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{{Name: "n", Body: []byte{byte(i)}}}}})
		if i == 0 {
			continue // brings the layer of busybox
		}
		id := rankID(1_000_000 + i)
		began := time.Now()
		r.s.want(id, order("true", func(o *api.RunOrder) { o.Spec.Request.Docker.Image = image }))
		e := r.s.exit(id)
		r.s.drop(id)
		if e.Code != 0 {
			b.Fatalf("cold start: %+v", e)
		}
		took = append(took, time.UnixMilli(e.StartedMS).Sub(began))
	}
	return median(took)
}

// bundle makes what both rivals need at least: a mounted root and a spec with
// the same limits and filter as the daemon's.
func (r *rivals) bundle(n int) (dir, id string, spec *specs.Spec, err error) {
	id = fmt.Sprintf("%srival.%d", testPrefix, n)
	dir = filepath.Join(r.dir, id)
	for _, sub := range []string{"rootfs", "upper", "work", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return "", "", nil, err
		}
	}
	spec, err = draft.Build(draft.Request{
		Command: []string{"/bin/true"}, Network: draft.Network{Host: true}, CgroupPath: r.s.a.host.CgroupPrefix() + "/" + id,
		Limits: cgroups.Limits{MemoryBytes: 256 << 20, Pids: int64(r.s.cfg.PidsMax)},
	})
	if err != nil {
		return "", "", nil, err
	}
	spec.Root.Path = filepath.Join(dir, "rootfs")
	spec.Process.User.Username = ""
	if spec.Linux.Seccomp, err = seccomp.GetDefaultProfile(spec); err != nil {
		return "", "", nil, err
	}
	if runtime.GOARCH == "amd64" {
		spec.Linux.Seccomp.Architectures = []specs.Arch{specs.ArchX86_64}
	}
	lower := slices.Clone(r.img.Layers)
	slices.Reverse(lower)
	opts := "lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + dir + "/upper,workdir=" + dir + "/work"
	return dir, id, spec, unix.Mount("bench", spec.Root.Path, "overlay", unix.MS_NODEV, opts)
}

func removeBundle(dir string) error {
	if err := unix.Unmount(filepath.Join(dir, "rootfs"), 0); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func (r *rivals) bare(n int) (time.Duration, error) {
	began := time.Now()
	dir, id, spec, err := r.bundle(n)
	if err != nil {
		return 0, err
	}
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: id, Spec: spec})
	if err != nil {
		return 0, err
	}
	c, err := libcontainer.Create(filepath.Join(dir, "state"), id, config)
	if err != nil {
		return 0, err
	}
	caps := configs.Capabilities{Bounding: spec.Process.Capabilities.Bounding, Effective: spec.Process.Capabilities.Effective, Permitted: spec.Process.Capabilities.Permitted}
	p := &libcontainer.Process{Args: spec.Process.Args, Env: spec.Process.Env, Cwd: "/", Init: true, Capabilities: &caps}
	if err := c.Run(p); err != nil {
		return 0, err
	}
	latency := time.Since(began)
	if _, err := p.Wait(); err != nil {
		return 0, err
	}
	if err := c.Destroy(); err != nil {
		return 0, err
	}
	return latency, removeBundle(dir)
}

// runc tells no begin of its own: its latency is that of runc run as a whole,
// less nothing.
func (r *rivals) runc(n int) (time.Duration, error) {
	began := time.Now()
	dir, id, spec, err := r.bundle(n)
	if err != nil {
		return 0, err
	}
	b, err := json.Marshal(spec)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600); err != nil {
		return 0, err
	}
	out, err := exec.Command("runc", "--root", filepath.Join(dir, "state"), "run", "--bundle", dir, id).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return time.Since(began), removeBundle(dir)
}

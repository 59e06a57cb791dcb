package oci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci"
	"gbatch/oci/benchtest"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/userns"
)

// BenchmarkMapped compares the start of a container whose root is a user of the
// host with one whose ids are the host's, in turns.
func BenchmarkMapped(b *testing.B) {
	needContainers(b)
	var mapped, plain cost
	for b.Loop() {
		mapped.add(round(b, 4, func(id string) { oursOnce(b, draft.SeccompNative, id, userns.MapOf(alice)) }))
		plain.add(round(b, 4, func(id string) { oursOnce(b, draft.SeccompNative, id, userns.Map{}) }))
	}
	jobs := float64(b.N * 4)
	b.ReportMetric(mapped.wall.Seconds()*1000/jobs, "ms/mapped")
	b.ReportMetric(plain.wall.Seconds()*1000/jobs, "ms/plain")
	b.ReportMetric(mapped.cpu.Seconds()*1000/jobs, "cpu-ms/mapped")
	b.ReportMetric(plain.cpu.Seconds()*1000/jobs, "cpu-ms/plain")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStart compares jobs per second of `true` through a shim with the
// same spec given to libcontainer by a process that lives on, which keeps
// nothing through a crash. Both run in turns, as the speed of shared machines
// drifts; the ratio is what counts (budget: at least 0.8).
func BenchmarkStart(b *testing.B) {
	needContainers(b)
	modes := map[draft.SeccompMode]string{draft.SeccompNative: "native", draft.SeccompCompat: "compat", draft.SeccompOff: "off"}
	for mode, name := range modes {
		for _, parallel := range []int{1, 4} {
			b.Run(fmt.Sprintf("seccomp=%s/parallel=%d", name, parallel), func(b *testing.B) {
				var ours, bare cost
				for b.Loop() {
					ours.add(round(b, parallel, func(id string) { oursOnce(b, mode, id, userns.Map{}) }))
					bare.add(round(b, parallel, func(id string) { bareOnce(b, mode, id) }))
				}
				jobs := float64(b.N * parallel)
				b.ReportMetric(ours.wall.Seconds()*1000/jobs, "ms/ours")
				b.ReportMetric(bare.wall.Seconds()*1000/jobs, "ms/bare")
				b.ReportMetric(ours.cpu.Seconds()*1000/jobs, "cpu-ms/ours")
				b.ReportMetric(bare.cpu.Seconds()*1000/jobs, "cpu-ms/bare")
				b.ReportMetric(bare.wall.Seconds()/ours.wall.Seconds(), "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// cost is what some containers took on the clock and of the processors. The
// second varies less with the machine's other load.
type cost struct{ wall, cpu time.Duration }

func (c *cost) add(o cost) { c.wall, c.cpu = c.wall+o.wall, c.cpu+o.cpu }

func round(b *testing.B, parallel int, once func(id string)) cost {
	begin, used := time.Now(), benchtest.ProcessorTime(b)
	var wg sync.WaitGroup
	for range parallel {
		id := fmt.Sprintf("b%d.%d", os.Getpid(), lastID.Add(1))
		wg.Go(func() { once(id) })
	}
	wg.Wait()
	return cost{time.Since(begin), benchtest.ProcessorTime(b) - used}
}

func benchSpec(b *testing.B, mode draft.SeccompMode, id string, ids userns.Map) *specs.Spec {
	box := newBox(b, "")
	box.req.IDs = ids
	box.req.Command, box.req.CgroupPath, box.req.Seccomp = []string{"/bin/true"}, testCgroup+"/"+id, mode
	spec, err := draft.Build(box.req)
	if err != nil {
		b.Error(err)
	}
	return spec
}

func oursOnce(b *testing.B, mode draft.SeccompMode, id string, ids userns.Map) {
	dir := filepath.Join(benchDir, id)
	if err := oci.Prepare(dir, benchSpec(b, mode, id, ids), oci.ShimConfig{ID: id, Layers: []string{layer}}); err != nil {
		b.Error(err)
		return
	}
	var hand handed.Handover
	if !ids.IsZero() {
		ns, err := userns.New(ids, false)
		if err != nil {
			b.Error(err)
			return
		}
		defer ns.Close()
		hand.User = ns.User
	}
	s, err := shims.Start(dir, hand)
	if err != nil {
		b.Error(err)
		return
	}
	<-s.Done()
	if exit, err := s.Exit(); err != nil || exit.Code != 0 {
		b.Errorf("%+v, %v", exit, err)
	}
	if err := oci.Remove(dir); err != nil {
		b.Error(err)
	}
}

// benchDir is where the benchmark's containers are made.
var benchDir string

// bareOnce does what any user of libcontainer has to do at least.
func bareOnce(b *testing.B, mode draft.SeccompMode, id string) {
	dir := filepath.Join(benchDir, id)
	defer os.RemoveAll(dir)
	spec := benchSpec(b, mode, id, userns.Map{})
	for _, sub := range []string{"rootfs", "upper", "work", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			b.Error(err)
			return
		}
	}
	spec.Root.Path = filepath.Join(dir, "rootfs")
	if err := draft.FillSeccomp(spec); err != nil {
		b.Error(err)
		return
	}
	opts := "lowerdir=" + layer + ",upperdir=" + dir + "/upper,workdir=" + dir + "/work"
	if err := unix.Mount("bench", spec.Root.Path, "overlay", unix.MS_NODEV, opts); err != nil {
		b.Error(err)
		return
	}
	defer unix.Unmount(spec.Root.Path, 0)
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: id, Spec: spec})
	if err != nil {
		b.Error(err)
		return
	}
	c, err := libcontainer.Create(filepath.Join(dir, "state"), id, config)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Destroy()
	caps := configs.Capabilities{Bounding: spec.Process.Capabilities.Bounding, Effective: spec.Process.Capabilities.Effective, Permitted: spec.Process.Capabilities.Permitted}
	p := &libcontainer.Process{Args: spec.Process.Args, Env: spec.Process.Env, Cwd: "/", Init: true, Capabilities: &caps}
	if err := c.Run(p); err != nil {
		b.Error(err)
		return
	}
	if _, err := p.Wait(); err != nil {
		b.Error(err)
	}
}

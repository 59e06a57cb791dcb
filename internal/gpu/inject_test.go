package gpu

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/gpu/setup"
	"gbatch/internal/node"
)

func specOf(env ...string) *specs.Spec {
	return &specs.Spec{Process: &specs.Process{Env: env}, Linux: &specs.Linux{}}
}

func TestVisible(t *testing.T) {
	whole := []GPU{{GPU: node.GPU{UUID: "GPU-a"}}, {GPU: node.GPU{UUID: "GPU-b"}}}
	cases := map[string]struct {
		env  []string
		gpus []GPU
		want []string
	}{
		"none":      {[]string{"A=1"}, nil, []string{"A=1"}},
		"claims":    {[]string{"NVIDIA_VISIBLE_DEVICES=all"}, nil, []string{"NVIDIA_VISIBLE_DEVICES=void"}},
		"whole":     {nil, whole, []string{"NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=0,1"}},
		"image":     {[]string{"NVIDIA_VISIBLE_DEVICES=all", "A=1"}, whole[:1], []string{"A=1", "NVIDIA_VISIBLE_DEVICES=GPU-a", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=0"}},
		"reordered": {[]string{"CUDA_VISIBLE_DEVICES=1,0"}, whole, []string{"CUDA_VISIBLE_DEVICES=1,0", "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}},
		"hidden":    {[]string{"CUDA_VISIBLE_DEVICES="}, whole[:1], []string{"CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=GPU-a", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}},
		"hosts":     {[]string{"CUDA_VISIBLE_DEVICES=4,5"}, whole, []string{"NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=0,1"}},
		"mig":       {nil, []GPU{{GPU: node.GPU{UUID: "MIG-a"}, MIG: &mig{}}}, []string{"NVIDIA_VISIBLE_DEVICES=MIG-a", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=MIG-a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := specOf(tc.env...)
			setVisible(spec, tc.gpus)
			if diff := cmp.Diff(tc.want, spec.Process.Env); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHookClaims: a job asks NVIDIA's program for its GPUs and for nothing beside them,
// neither by variables nor by mounts.
func TestHookClaims(t *testing.T) {
	lib := fake(t, "h100:2").Server // taken for real
	in, err := newInjector(InjectorConfig{Lib: lib, Injection: setup.Injection{Mode: setup.Hook, Hook: "/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	gpus := discover(t, lib).GPUs[:1]
	spec := specOf("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_MIG_CONFIG_DEVICES=all", "NVIDIA_MIG_MONITOR_DEVICES=all", "NVIDIA_IMEX_CHANNELS=0,1", "NVIDIA_IMEX_CHANNELS=2", "NVIDIA_VISIBLE_DEVICES=1", "LD_PRELOAD=/evil.so")
	if err := in.edit(spec, gpus); err != nil {
		t.Fatal(err)
	}
	want := []string{"LD_PRELOAD=/evil.so", "NVIDIA_DRIVER_CAPABILITIES=compute,utility", "NVIDIA_VISIBLE_DEVICES=" + gpus[0].UUID, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=0"}
	if diff := cmp.Diff(want, spec.Process.Env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, e := range spec.Hooks.Prestart[0].Env { //nolint:staticcheck // as it is made
		if !strings.HasPrefix(e, "PATH=/usr/local/sbin:") {
			t.Errorf("the hook has %s", e)
		}
	}
	for at, refused := range map[string]bool{"/var/run/nvidia-container-devices/all": true, "/run/nvidia-container-devices": true, "/x/../var//run/nvidia-container-devices/GPU-b/": true, "/data/run/nvidia-container-devices": false, "/run/nvidia": false} {
		spec := specOf()
		spec.Mounts = []specs.Mount{{Destination: at}}
		if err := in.edit(spec, gpus); (err != nil) != refused {
			t.Errorf("a mount at %s: %v", at, err)
		}
	}
}

// What a container is not given, and what it is told instead.
func TestEditsRefuse(t *testing.T) {
	lib := fake(t, "h100:2")
	lib.at(1).GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 1, nvml.SUCCESS }
	monitor, err := newMonitor(lib, setup.Limits{}, Memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	injector, err := newInjector(InjectorConfig{Lib: lib})
	if err != nil {
		t.Fatal(err)
	}
	node := &Node{monitor, injector}
	for id, want := range map[string]string{
		lib.at(1).UUID: "uncorrectable memory error",
		"GPU-other":    "this node has no GPU GPU-other",
	} {
		spec := specOf("A=1")
		if err := node.Edits(spec, []string{lib.at(0).UUID, id}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", id, err, want)
		}
		if diff := cmp.Diff(specOf("A=1"), spec); diff != "" {
			t.Errorf("the spec was changed (-want +got):\n%s", diff)
		}
	}
}

func TestInjectorRefuses(t *testing.T) {
	lib := fake(t, "h100:1").Server // taken for real
	if _, err := newInjector(InjectorConfig{Lib: lib, Injection: setup.Injection{Mode: setup.Hook, Hook: "/no/such/hook"}}); err == nil || !strings.Contains(err.Error(), "install nvidia-container-toolkit") {
		t.Errorf("hook that is not there: %v", err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "broken.yaml"), "kind: {")
	in, err := newInjector(InjectorConfig{Lib: lib, HookDir: t.TempDir(), SpecDirs: []string{dir}, Injection: setup.Injection{Devices: []string{"example.com/rdma=all"}}})
	if err != nil {
		t.Fatal(err)
	}
	uuid := discover(t, lib).GPUs[0].UUID
	writeFile(t, filepath.Join(dir, "gpu.yaml"), "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n- name: "+uuid+"\n  containerEdits:\n    env: [A=1]\n")
	err = in.edit(specOf(), discover(t, lib).GPUs)
	if err == nil || !strings.Contains(err.Error(), "CDI device example.com/rdma=all is in no file of "+dir) || !strings.Contains(err.Error(), "broken.yaml") {
		t.Errorf("device that is not there: %v", err)
	}
}

// On NVIDIA's boards the driver is a list of files, and the only GPU has no
// node of its own among those that discrete GPUs have.
func TestTegra(t *testing.T) {
	needContainers(t) // makes device nodes
	node, root := realNode(t, 1, InjectorConfig{})
	uuid := node.Inventory().GPUs[0].UUID
	writeFile(t, filepath.Join(root, "etc/nv_tegra_release"), "# R36")
	if err := node.Edits(specOf(), []string{uuid}); err == nil || !strings.Contains(err.Error(), "nvidia-l4t-init") {
		t.Errorf("board without lists: %v", err)
	}
	writeFile(t, filepath.Join(root, "etc/nvidia-container-runtime/host-files-for-container.d/devices.csv"),
		"dev, /dev/nvidia-uvm\nlib, /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15\n")
	spec := specOf()
	if err := node.Edits(spec, []string{uuid}); err != nil {
		t.Fatal(err)
	}
	var devices, mounts []string
	for _, d := range spec.Linux.Devices {
		devices = append(devices, d.Path)
	}
	for _, m := range spec.Mounts {
		mounts = append(mounts, m.Destination)
	}
	if !slices.Contains(devices, "/dev/nvidia-uvm") || !slices.Contains(mounts, "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15") {
		t.Errorf("devices %q, mounts %q", devices, mounts)
	}
}

func FuzzParseSimulation(f *testing.F) {
	for _, s := range []string{"h100:8", "a100:2, b200:2", "h100", "k80:-1", ",:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sim, err := setup.ParseSimulation(s)
		if err != nil || len(sim) == 0 {
			return
		}
		if len(sim) > setup.MaxSimulated {
			t.Fatalf("%d GPUs", len(sim))
		}
		if inv := discover(t, simulate(sim, "n", nil)); len(inv.GPUs) != len(sim) {
			t.Fatalf("%d GPUs of %d", len(inv.GPUs), len(sim))
		}
	})
}

// BenchmarkEdits is what CDI adds to a start in this process, before any hook.
func BenchmarkEdits(b *testing.B) {
	needContainers(b) // makes device nodes
	node, _ := realNode(b, 8, InjectorConfig{})
	var uuids []string
	for _, g := range node.Inventory().GPUs {
		uuids = append(uuids, g.UUID)
	}
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if err := node.Edits(specOf(), uuids[:n]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

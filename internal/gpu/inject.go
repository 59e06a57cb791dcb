package gpu

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
	"github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"

	"gbatch/internal/gpu/setup"
)

// defaultHook is the program of mode hook when none is configured.
const defaultHook = "/usr/bin/nvidia-container-runtime-hook"

// InjectorConfig is how a node's containers get GPUs. Lib and HookDir must be
// set where there are GPUs; the zero value of anything else is the default.
type InjectorConfig struct {
	Lib nvml.Interface

	setup.Injection

	// HookDir is a directory of the daemon's own, where a link to this program
	// is made that containers' hooks are run by.
	HookDir string

	// SpecDirs hold the site's own CDI files. A device there that is named
	// nvidia.com/gpu=UUID is used instead of what would be made here. Default:
	// /etc/cdi and /var/run/cdi, the later one wins.
	SpecDirs []string

	// Root is where the driver is installed. Default "/".
	Root string

	Log *slog.Logger // default slog.Default
}

// injector gives containers their GPUs. Its methods may be called from several
// goroutines.
type injector struct {
	cfg  InjectorConfig
	hook string // the link
}

// newInjector checks the configuration and makes the link for hooks.
func newInjector(cfg InjectorConfig) (*injector, error) {
	cfg.Mode = cmp.Or(cfg.Mode, setup.CDI)
	cfg.Hook = cmp.Or(cfg.Hook, defaultHook)
	cfg.Root = cmp.Or(cfg.Root, "/")
	if cfg.SpecDirs == nil {
		cfg.SpecDirs = slices.Clone(cdi.DefaultSpecDirs)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	in := &injector{cfg: cfg}
	if cfg.Lib == nil || in.simulated() {
		return in, nil
	}
	switch cfg.Mode {
	case setup.Hook:
		if _, err := exec.LookPath(cfg.Hook); err != nil {
			return nil, fmt.Errorf("find GPU hook: %w: install nvidia-container-toolkit, or set gpu.mode to cdi", err)
		}
	case setup.CDI:
		var err error
		if in.hook, err = linkHook(cfg.HookDir); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("gpu mode %q: use cdi or hook", cfg.Mode)
	}
	return in, nil
}

func (in *injector) simulated() bool {
	_, ok := in.cfg.Lib.(*simulated)
	return ok
}

// edit gives the container of spec exactly the given GPUs, in their order. It
// must be called for containers without GPUs too: their images may claim all.
// Simulated GPUs come as environment only.
func (in *injector) edit(spec *specs.Spec, gpus []GPU) error {
	gpus = slices.Clone(gpus)
	slices.SortFunc(gpus, func(a, b GPU) int { return a.Index - b.Index })
	if len(gpus) > 0 && !in.simulated() {
		edit := in.editCDI
		if in.cfg.Mode == setup.Hook {
			edit = in.editHook
		}
		if err := edit(spec, gpus); err != nil {
			return fmt.Errorf("give GPU %s: %w", gpus[0].UUID, err)
		}
	}
	setVisible(spec, gpus) // after the edits, which set it to void
	if len(gpus) > 0 && in.simulated() {
		setEnv(spec, "GBATCH_SIMULATED_GPUS", "1")
	}
	return nil
}

// hookClaims are variables by which a container asks NVIDIA's program for more than
// its GPUs: to cut GPUs, to watch those of others, memory of other nodes' GPUs. What
// it has of GPUs itself is set after this.
var hookClaims = []string{"NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES", "NVIDIA_IMEX_CHANNELS"}

// hookMounts is where mounts ask for GPUs by their names, where the program's settings
// let them; those of the environment count no more then.
const hookMounts = "/run/nvidia-container-devices/"

func (in *injector) editHook(spec *specs.Spec, _ []GPU) error {
	if _, ok := env(spec, "NVIDIA_DRIVER_CAPABILITIES"); !ok {
		setEnv(spec, "NVIDIA_DRIVER_CAPABILITIES", "compute,utility")
	}
	for _, name := range hookClaims {
		dropEnv(spec, name)
	}
	for _, m := range spec.Mounts {
		if at := filepath.Clean(m.Destination); strings.HasPrefix(strings.TrimPrefix(at, "/var")+"/", hookMounts) {
			return fmt.Errorf("a mount at %s would ask for GPUs that the job was not given", at)
		}
	}
	if spec.Hooks == nil {
		spec.Hooks = &specs.Hooks{}
	}
	// There is no other kind of hook that NVIDIA's program works as.
	spec.Hooks.Prestart = append(spec.Hooks.Prestart, specs.Hook{ //nolint:staticcheck
		Path: in.cfg.Hook, Args: []string{filepath.Base(in.cfg.Hook), "prestart"},
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	})
	return nil
}

// generate makes the edits for GPUs out of what the driver installed.
func (in *injector) generate(spec *specs.Spec, uuids []string) error {
	if err := in.ensureUVM(); err != nil {
		return err
	}
	mode, ids := nvcdi.ModeNvml, uuids
	if isTegra(in.cfg.Root) {
		mode = nvcdi.ModeCSV
		if n, _ := in.cfg.Lib.DeviceGetCount(); n <= 1 {
			ids = []string{"0"} // the only GPU of a Tegra goes by no other name
		}
	}
	csv, err := filepath.Glob(filepath.Join(in.cfg.Root, "etc/nvidia-container-runtime/host-files-for-container.d/*.csv"))
	if err != nil {
		return fmt.Errorf("find the board's lists of driver files: %w", err)
	}
	if mode == nvcdi.ModeCSV && len(csv) == 0 {
		return fmt.Errorf("find the board's lists of driver files: none in /etc/nvidia-container-runtime/host-files-for-container.d: install nvidia-l4t-init")
	}
	lib, err := nvcdi.New(
		nvcdi.WithLibrarySearchPaths(in.libraryDirs()), // none: the usual ones
		nvcdi.WithCSVFiles(csv),                        // looked at in mode csv only
		nvcdi.WithMode(mode), nvcdi.WithNvmlLib(in.cfg.Lib), nvcdi.WithLogger(toolkitLog{in.cfg.Log}),
		nvcdi.WithDriverRoot(in.cfg.Root), nvcdi.WithDevRoot(in.cfg.Root),
		nvcdi.WithNVIDIACDIHookPath(in.hook), nvcdi.WithLdconfigPath(ldconfigPath()),
		nvcdi.WithFeatureFlags(nvcdi.FeatureDisableNvsandboxUtils),
		// One more process for each GPU, which obeys the job's environment.
		nvcdi.WithDisabledHooks("apply-cuda-memory-limits"),
	)
	if err != nil {
		return fmt.Errorf("prepare CDI: %w", err)
	}
	devices, err := lib.GetDeviceSpecsByID(ids...)
	if err != nil {
		return fmt.Errorf("make CDI devices: %w", err)
	}
	common, err := lib.GetCommonEdits()
	if err != nil {
		return fmt.Errorf("make CDI edits: %w", err)
	}
	for _, e := range append(editsOf(devices), common) {
		if err := e.Apply(spec); err != nil {
			return fmt.Errorf("apply CDI edits: %w", err)
		}
	}
	return nil
}

// libraryDirs is where the driver's libraries are if that is no usual place.
func (in *injector) libraryDirs() []string {
	if in.cfg.Root != "/" {
		return nil
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer maps.Close()
	if dir := driverDir(maps); dir != "" {
		return []string{dir}
	}
	return nil
}

func editsOf(devices []cdispecs.Device) []*cdi.ContainerEdits {
	var list []*cdi.ContainerEdits
	for i := range devices {
		list = append(list, &cdi.ContainerEdits{ContainerEdits: &devices[i].ContainerEdits})
	}
	return list
}

// ensureUVM has the driver make the device that CUDA needs beside the GPUs:
// after a boot it is not there before somebody asks.
func (in *injector) ensureUVM() error {
	const node = "dev/nvidia-uvm"
	if _, err := os.Stat(filepath.Join(in.cfg.Root, node)); err == nil || isTegra(in.cfg.Root) {
		return nil
	}
	out, err := exec.Command("nvidia-modprobe", "-u", "-c=0").CombinedOutput()
	if err != nil {
		return fmt.Errorf("/%s is missing and nvidia-modprobe cannot make it: %w %s: run modprobe nvidia-uvm", node, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// isTegra says whether this is one of NVIDIA's own boards, whose driver is a
// list of files and not a package.
func isTegra(root string) bool {
	_, err := os.Stat(filepath.Join(root, "etc/nv_tegra_release"))
	return err == nil
}

// usualDirs are where the toolkit looks for the driver's libraries by itself.
var usualDirs = []string{
	"/usr/lib64", "/lib64", "/usr/lib", "/lib",
	"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu", "/lib/aarch64-linux-gnu",
}

// driverDir is the directory from which this process has loaded the driver's
// library, by the kernel's list of its mappings, if it is an unusual one:
// installers of machine images put it where only the loader's settings know.
// Where the management library is, the rest of the driver is too.
func driverDir(maps io.Reader) string {
	for in := bufio.NewScanner(maps); in.Scan(); {
		_, path, found := strings.Cut(in.Text(), "/")
		if path = "/" + path; !found || !strings.HasPrefix(filepath.Base(path), "libnvidia-ml.so") {
			continue
		}
		dir := filepath.Dir(path)
		if slices.Contains(usualDirs, dir) {
			return ""
		}
		return dir
	}
	return ""
}

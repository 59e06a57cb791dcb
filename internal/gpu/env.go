package gpu

import (
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// setVisible tells programs in the container which GPUs there are. Images come
// with NVIDIA_VISIBLE_DEVICES=all, which would be a lie, so it is corrected.
//
// CUDA numbers the GPUs that it finds in the container from 0 on, whatever
// their numbers on the host; many programs cannot read UUIDs there. An instance
// of MIG has no number, so those go by UUID.
func setVisible(spec *specs.Spec, gpus []GPU) {
	uuids := make([]string, len(gpus))
	names := make([]string, len(gpus))
	for i, g := range gpus {
		uuids[i], names[i] = g.UUID, strconv.Itoa(i)
		if g.MIG != nil {
			names[i] = g.UUID
		}
	}
	if len(gpus) == 0 {
		if _, claims := env(spec, "NVIDIA_VISIBLE_DEVICES"); claims {
			setEnv(spec, "NVIDIA_VISIBLE_DEVICES", "void")
		}
		return
	}
	setEnv(spec, "NVIDIA_VISIBLE_DEVICES", strings.Join(uuids, ","))
	setEnv(spec, "CUDA_DEVICE_ORDER", "PCI_BUS_ID")
	if own, ok := env(spec, "CUDA_VISIBLE_DEVICES"); !ok || !onlyNames(own, slices.Concat(names, uuids)) {
		setEnv(spec, "CUDA_VISIBLE_DEVICES", strings.Join(names, ","))
	}
}

// onlyNames says whether a job's own CUDA_VISIBLE_DEVICES makes sense: it may
// hide some of its GPUs or put them in another order.
func onlyNames(value string, known []string) bool {
	if value == "" || value == "-1" || value == "NoDevFiles" {
		return true
	}
	for name := range strings.SplitSeq(value, ",") {
		if !slices.Contains(known, strings.TrimSpace(name)) {
			return false
		}
	}
	return true
}

func env(spec *specs.Spec, name string) (string, bool) {
	for _, kv := range slices.Backward(spec.Process.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// setEnv replaces a variable, wherever and however often it was set.
func setEnv(spec *specs.Spec, name, value string) {
	dropEnv(spec, name)
	spec.Process.Env = append(spec.Process.Env, name+"="+value)
}

func dropEnv(spec *specs.Spec, name string) {
	spec.Process.Env = slices.DeleteFunc(spec.Process.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

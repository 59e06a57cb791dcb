package gpu

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"
)

// editCDI takes each GPU from the site's files where they have it, and makes
// the rest.
func (in *injector) editCDI(spec *specs.Spec, gpus []GPU) (err error) {
	defer func() { // null in a list of a file ends the library
		if r := recover(); r != nil {
			err = fmt.Errorf("read CDI files of %s: one has an empty entry (%v)", strings.Join(in.cfg.SpecDirs, " or "), r)
		}
	}()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(in.cfg.SpecDirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return fmt.Errorf("read CDI files: %w", err)
	}
	var site, ours []string
	for _, g := range gpus {
		if name := "nvidia.com/gpu=" + g.UUID; cache.GetDevice(name) != nil {
			site = append(site, name)
		} else {
			ours = append(ours, g.UUID)
		}
	}
	if len(ours) > 0 {
		if err := in.generate(spec, ours); err != nil {
			return err
		}
	}
	names := slices.Concat(site, in.cfg.Devices)
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if d := cache.GetDevice(name); d != nil {
			if err := errors.Join(unfit(d.GetSpec().ContainerEdits), unfit(d.ContainerEdits)); err != nil {
				return fmt.Errorf("CDI device %s of %s: %w", name, d.GetSpec().GetPath(), err)
			}
		}
	}
	if missing, err := cache.InjectDevices(spec, names...); err != nil {
		if len(missing) == 0 {
			return err
		}
		return fmt.Errorf("CDI device %s is in no file of %s: %w", strings.Join(missing, ", "),
			strings.Join(in.cfg.SpecDirs, " or "), errors.Join(err, cacheErrors(cache)))
	}
	return nil
}

func cacheErrors(cache *cdi.Cache) error {
	var errs []error
	for _, list := range cache.GetErrors() {
		errs = append(errs, list...)
	}
	return errors.Join(errs...)
}

// unfit says what of a site's edits is not done here. The rest is done as it stands:
// who writes the files is root.
func unfit(e cdispecs.ContainerEdits) error {
	for _, v := range e.Env {
		if strings.ContainsRune(v, 0) {
			return fmt.Errorf("env: %q has a zero byte", v)
		}
	}
	for _, d := range e.DeviceNodes {
		if !clean(d.Path) || !strings.HasPrefix(d.Path, "/dev/") {
			return fmt.Errorf("deviceNodes: %q is no path below /dev", d.Path)
		}
		if d.Major < 0 || d.Minor < 0 {
			return fmt.Errorf("deviceNodes: %s: a number below 0 stands for all devices", d.Path)
		}
	}
	for _, m := range e.Mounts {
		if !clean(m.ContainerPath) || m.ContainerPath == "/" {
			return fmt.Errorf("mounts: %q is no path in a container", m.ContainerPath)
		}
		if m.Type != "" && m.Type != "none" && m.Type != "bind" && m.Type != "tmpfs" {
			return fmt.Errorf("mounts: %s: type %q is not mounted for jobs", m.ContainerPath, m.Type)
		}
	}
	for _, h := range e.Hooks {
		if !clean(h.Path) || h.Timeout != nil && *h.Timeout <= 0 {
			return fmt.Errorf("hooks: %q is no whole path, or has a timeout that is not above 0", h.Path)
		}
	}
	for _, g := range e.AdditionalGIDs {
		if g >= 65536 {
			return fmt.Errorf("additionalGids: %d: a container has the ids 0 to 65535", g)
		}
	}
	if e.IntelRdt != nil || len(e.NetDevices) > 0 {
		return errors.New("intelRdt and netDevices are not done here")
	}
	return nil
}

func clean(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

package srun

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"gbatch/internal/launch"
)

// container is what the options of the pyxis plug-in say.
type container struct {
	image    string
	name     string
	mounts   []launch.Mount // sources as they were written
	workdir  string
	env      []string // variables that win over the image's
	readOnly bool
	entry    bool // the image's entrypoint is to be run
}

// containers are those options.
func containers() []option {
	return []option{
		{long: "container-image", takes: '=', set: setImage},
		{long: "container-name", takes: '=', set: setName},
		{long: "container-mounts", takes: '=', set: setMounts},
		{long: "container-workdir", takes: '=', set: func(o *options, v string) error { o.box.workdir = v; return nil }},
		{long: "container-env", takes: '=', set: func(o *options, v string) error { o.box.env = strings.Split(v, ","); return nil }},
		flag("container-readonly", 0, "", func(o *options) { o.box.readOnly = true }),
		flag("container-writable", 0, "", func(o *options) { o.box.readOnly = false }),
		flag("container-entrypoint", 0, "", func(o *options) { o.box.entry = true }),
		flag("no-container-entrypoint", 0, "", func(o *options) { o.box.entry = false }),
		harmless("no-container-mount-home", 0, 0), harmless("container-remap-root", 0, 0), harmless("no-container-remap-root", 0, 0),
		harmless("container-mount-home", 0, 0),
		instead("container-save", 0, '=', "build the image before, and push it to a registry"),
	}
}

func setImage(o *options, v string) error {
	if v == "" {
		return errors.New("want an image")
	}
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, ".") || strings.HasSuffix(v, ".sqsh") {
		return errors.New("squashed images are not read: name an image in a registry, or oci:/PATH of a layout on the nodes")
	}
	o.box.image = launch.ImageName(v)
	return nil
}

// setName takes a name, and of pyxis' words behind it the one that is what happens anyway.
func setName(o *options, v string) error {
	name, how, given := strings.Cut(v, ":")
	if given && how != "auto" {
		return fmt.Errorf("has the word %s: a container of that name is made where there is none, and joined where it runs", how)
	}
	if name == "" {
		return errors.New("want a name")
	}
	o.box.name = name
	return nil
}

// setMounts takes SOURCE[:TARGET[:FLAGS]], several with commas between.
func setMounts(o *options, v string) error {
	for part := range strings.SplitSeq(v, ",") {
		f := strings.Split(part, ":")
		if len(f) > 3 || f[0] == "" {
			return errors.New("want SOURCE:TARGET, or SOURCE:TARGET:ro")
		}
		m := launch.Mount{Source: f[0], Target: f[0]}
		if len(f) > 1 {
			m.Target = f[1]
		}
		if len(f) == 3 {
			for word := range strings.SplitSeq(f[2], "+") {
				switch word {
				case "ro":
					m.ReadOnly = true
				case "rw":
				default:
					return fmt.Errorf("has the flag %s: want ro or rw", word)
				}
			}
		}
		o.box.mounts = append(o.box.mounts, m)
	}
	return nil
}

// decide says whether tasks run in the job's container, which has all that was asked for,
// or in one of the step's own, and completes the order.
func (c *container) decide(i *launch.Info, s *launch.Start) error {
	more, err := c.more(i)
	if err != nil {
		return err
	}
	other := c.image != "" && !sameImage(c.image, i.Image)
	if !other && c.name == "" && !c.readOnly && len(more) == 0 {
		if c.workdir != "" {
			s.Dir = c.workdir
		}
		return nil
	}
	if c.entry {
		return errors.New("--container-entrypoint is not supported in a container of the step's own: call the image's entrypoint in front of the command")
	}
	for _, file := range []*string{&s.Input, &s.Output, &s.Errors} {
		if !slices.Contains([]string{launch.Stream, launch.Null, launch.Merged}, *file) {
			if !path.IsAbs(*file) {
				*file = path.Join(s.Dir, *file)
			}
			if err := seenInside(*file, i, more); err != nil {
				return err
			}
		}
	}
	in := &launch.Container{Name: c.name, Mounts: more, ReadOnly: c.readOnly}
	if other {
		in.Image = c.image
	} else if c.image != "" {
		in.Image = i.Image
	}
	s.In, s.Over, s.Dir = in, c.env, c.workdir
	return nil
}

// shownImage is the image of a step's own container, for people.
func shownImage(in *launch.Container) string {
	if in == nil {
		return ""
	}
	return launch.WithoutLogin(in.Image)
}

// more are the mounts that the job has not, by their sources in its container.
func (c *container) more(i *launch.Info) (list []launch.Mount, err error) {
	for _, m := range c.mounts {
		if strings.HasPrefix(m.Source, ".") {
			wd, err := os.Getwd()
			if err != nil {
				return nil, err
			}
			m.Source = path.Join(wd, m.Source)
		}
		if !path.IsAbs(m.Source) || !path.IsAbs(m.Target) {
			return nil, fmt.Errorf("--container-mounts: %s:%s: want absolute paths", m.Source, m.Target)
		}
		m.Source, m.Target = inside(i, path.Clean(m.Source)), path.Clean(m.Target)
		there := m.Source == m.Target && slices.Contains(i.Mounts, m.Target)
		if !there || m.ReadOnly && !slices.Contains(i.ReadOnly, m.Target) {
			list = append(list, m)
		}
	}
	return list, nil
}

// inside is where in the job's container is what a mount names: a path there, or of the
// storage that the job mounts, by the longest name.
func inside(i *launch.Info, source string) string {
	best, at := "", source
	for k, host := range i.Sources {
		if host = path.Clean(host); k < len(i.Mounts) && len(host) > len(best) && (source == host || strings.HasPrefix(source, host+"/")) {
			best, at = host, path.Join(i.Mounts[k], source[len(host):])
		}
	}
	return at
}

// seenInside refuses a file of each task's own that would be lost with the step's
// container: it is where a mount of the job's is, or nowhere.
func seenInside(file string, i *launch.Info, more []launch.Mount) error {
	below := func(at string) bool { return file == at || strings.HasPrefix(file, strings.TrimSuffix(at, "/")+"/") }
	hidden := slices.ContainsFunc(more, func(m launch.Mount) bool { return below(m.Target) && m.Source != m.Target })
	if !slices.ContainsFunc(i.Mounts, below) || hidden {
		return fmt.Errorf("%s: tasks in a container of their own have files of their own only where the job mounts storage: name a path there", file)
	}
	return nil
}

// sameImage compares names as people write them.
func sameImage(a, b string) bool {
	clean := func(s string) string { return strings.TrimSuffix(launch.ImageName(s), ":latest") }
	return clean(a) == clean(b) || strings.HasSuffix(clean(b), "/"+clean(a))
}

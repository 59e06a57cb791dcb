package importer

import (
	"cmp"
	"errors"
	"maps"
	"strconv"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/job/sizes"
	"gbatch/internal/job/words"
)

// Container are flags about the container in docker's words.
type Container struct {
	Entrypoint string   `group:"container" placeholder:"PROGRAM" help:"In place of the image's ENTRYPOINT."`
	ShmSize    string   `group:"container" placeholder:"SIZE" help:"Size of /dev/shm, as 8g; it is part of the memory."`
	User       string   `group:"container" short:"u" placeholder:"USER[:GROUP]" help:"Who the program runs as in the container."`
	Publish    []string `group:"container" sep:"none" placeholder:"[[IP:]PORT:]PORT" help:"A port of the container at its node: -p 8080:80. May be repeated."`
	Network    string   `group:"container" aliases:"net" placeholder:"NAME" help:"bridge, or host where the site allows it."`
	Label      []string `group:"container" short:"l" sep:"none" placeholder:"NAME[=VALUE]" help:"A label. May be repeated."`
	Runtime    string   `group:"container" placeholder:"NAME" help:"Another program that runs the container, on nodes that have it."`
	CapAdd     []string `group:"container" placeholder:"CAPABILITY" help:"A further capability, where the site allows it. May be repeated."`
	Privileged bool     `group:"container" help:"All capabilities and devices, where the site allows it."`

	Rm bool `hidden:"" help:"Always so: a job's container is gone with it."`
}

func (a *applied) docker(o Container) {
	docker, g := &a.sub.Spec.Request.Docker, a.sub.Spec.Gbatch
	if o.Entrypoint != "" {
		words, err := words.Split(o.Entrypoint)
		if a.check("--entrypoint", o.Entrypoint, err) {
			g.Entrypoint = words
		}
	}
	if o.ShmSize != "" {
		mib, err := shmSize(o.ShmSize)
		if a.check("--shm-size", o.ShmSize, err) {
			g.ShmSizeMB = mib
		}
	}
	for _, text := range o.Publish {
		m, err := port(text)
		if a.check("--publish", text, err) {
			docker.PortMappings = append(docker.PortMappings, m)
		}
	}
	labels := maps.Clone(g.Labels)
	for _, text := range o.Label {
		if labels == nil {
			labels = map[string]string{}
		}
		name, value, _ := strings.Cut(text, "=")
		labels[name] = value
	}
	g.Labels = labels
	for _, c := range o.CapAdd {
		g.Capabilities = append(g.Capabilities, job.Capability(strings.TrimPrefix(strings.ToUpper(c), "CAP_")))
	}
	docker.User = cmp.Or(o.User, docker.User)
	g.Network, g.Runtime = cmp.Or(job.Network(o.Network), g.Network), cmp.Or(o.Runtime, g.Runtime)
	g.Privileged = g.Privileged || o.Privileged
}

// shmSize wants a unit: a number alone is bytes to docker and MiB to us.
func shmSize(text string) (int, error) {
	if strings.Trim(text, "0123456789") == "" {
		return 0, errors.New("has no unit: write it as 512m or 8g")
	}
	mib, err := sizes.Parse(text)
	return int(mib), err
}

// port reads PORT, HOST:PORT and IP:HOST:PORT, each with /tcp behind it or not.
func port(text string) (m job.PortMapping, err error) {
	bare, protocol, _ := strings.Cut(text, "/")
	if protocol != "" && protocol != "tcp" {
		return m, errors.New("is not of TCP, and other ports cannot be mapped")
	}
	if i := strings.LastIndexByte(bare, ':'); i >= 0 {
		outside := bare[:i]
		bare = bare[i+1:]
		if j := strings.LastIndexByte(outside, ':'); j >= 0 {
			m.HostIP, outside = strings.Trim(outside[:j], "[]"), outside[j+1:]
		}
		if outside != "" {
			if m.HostPort, err = strconv.Atoi(outside); err != nil || m.HostPort < 1 {
				return m, errors.New("want the ports' numbers, as 8080:80")
			}
		}
	}
	if m.ContainerPort, err = strconv.Atoi(bare); err != nil || m.ContainerPort < 1 {
		return m, errors.New("want the ports' numbers, as 8080:80")
	}
	return m, nil
}

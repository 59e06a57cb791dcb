package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"gbatch/internal/noded/config"
	"gbatch/internal/reach"
	"gbatch/oci/image"
)

// dialer connects for pulls: to the internet and to the registries that the
// configuration names, by the guard that inputs of jobs have too.
func dialer(c *config.Config) func(context.Context, string, string) (net.Conn, error) {
	g := reach.Guard{Hosts: reachable(&c.Images)}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := g.Dial(ctx, network, addr)
		if _, ok := errors.AsType[*reach.Error](err); ok {
			return nil, fmt.Errorf("%w: %w", image.ErrForbidden, err)
		}
		return conn, err
	}
}

// reachable are the hosts inside the site that pulls may reach.
func reachable(c *config.Images) []string {
	hosts := append(append([]string{}, c.Hosts...), c.Insecure...)
	for _, mirrors := range c.Mirrors {
		for _, m := range mirrors {
			host, _, _ := strings.Cut(m, "/")
			if _, _, err := net.SplitHostPort(host); err != nil {
				host = net.JoinHostPort(strings.Trim(host, "[]"), "443") // and no other service there
			}
			hosts = append(hosts, host)
		}
	}
	return hosts
}

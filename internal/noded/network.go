package noded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/oci"
	"gbatch/oci/netns"
)

// network is what jobs can have of the network here.
type network struct {
	own      *netns.Network // nil: jobs cannot have one of their own
	why      string         // so
	settings config.NetworkSettings
	noHost   bool
	swept    bool // it is known which ranks have one
}

// openNetwork makes the machine ready for jobs' own networks, if it shall be
// and can.
func (a *Agent) openNetwork() error {
	n := &network{noHost: !*a.cfg.Network.AllowHost}
	n.settings = a.cfg.NetworkSettings(func(string, string, ...any) {}) // checked before
	a.network = n
	if a.cfg.Network.Mode == config.NetworkHost {
		n.why = "this node is configured so"
		return nil
	}
	err := n.usable(&a.cfg)
	if err == nil {
		n.own, err = netns.Open(n.settings.Netns)
	}
	switch {
	case err == nil:
		return nil
	case a.cfg.Network.Mode == config.NetworkBridge || n.noHost:
		return fmt.Errorf("give jobs networks of their own: %w", err)
	}
	n.why = "gnoded check on this node says why"
	a.log.Warn("jobs use the node's network: they cannot have their own", "error", err)
	return nil
}

// usable says what keeps jobs from having networks of their own.
func (n *network) usable(c *config.Config) error {
	if err := netns.Probe(); err != nil {
		return err
	}
	chains, err := netns.Conflicts(c.Name)
	if err != nil {
		return err
	}
	// Whether its owner has made an exception for us cannot be told from here;
	// mode bridge says that he has.
	if c.Network.Mode == config.NetworkAuto && len(chains) > 0 {
		return fmt.Errorf("the firewall drops what is forwarded, in %s", strings.Join(chains, ", "))
	}
	return nil
}

// closeNetwork leaves the rules that keep running jobs apart, and nothing else.
func (a *Agent) closeNetwork() error {
	if a.network == nil || a.network.own == nil {
		return nil
	}
	a.network.own.Close()
	if !a.network.swept || a.Running() > 0 {
		return nil
	}
	return netns.Remove(a.cfg.Name)
}

// sweepNetwork takes away networks that belong to no rank that runs, and opens
// the ports of those that do.
func (a *Agent) sweepNetwork() error {
	keep := map[string]*rank{}
	for id, r := range a.ranks {
		if r.status.Exit == nil {
			keep[id.String()] = r
		}
	}
	if a.network.own == nil {
		if len(keep) > 0 {
			return nil // some may still have one, from before the configuration changed
		}
		return netns.Remove(a.cfg.Name)
	}
	gone, err := a.network.own.Sweep(func(owner string) bool { return keep[owner] != nil })
	if len(gone) > 0 {
		a.log.Warn("removed networks without a rank", "owners", gone)
	}
	for owner, r := range keep {
		err = errors.Join(err, a.network.own.Publish(owner, hostPorts(r.status.Ports)))
	}
	a.network.swept = err == nil
	return err
}

// networkEvery is how often the node's network is looked at: a firewall that is
// loaded anew takes away what keeps jobs apart.
const networkEvery = 20 * time.Second

func (a *Agent) networkLoop(ctx context.Context) {
	if a.network.own == nil {
		return
	}
	for client.Sleep(ctx, networkEvery) == nil {
		repaired, err := a.network.own.Ensure()
		a.health.networkError(err)
		if err != nil {
			a.log.Error("repair the jobs' network", "error", err)
		} else if repaired {
			a.log.Warn("something removed the jobs' firewall rules or ended forwarding; they are back")
		}
	}
}

// rankNetwork is a rank's own network until its shim holds it.
type rankNetwork struct {
	at        *netns.Attached
	listeners []*net.TCPListener
	files     []*os.File
}

// joinNetwork makes the rank's network and takes its ports.
func (r *rank) joinNetwork(context.Context) error {
	spec, n := &r.order.Spec, r.a.network
	want := spec.Network()
	switch {
	case want == job.NetworkBridge && n.own == nil:
		return reason.Errorf(job.BadSpec, "jobs cannot have a network of their own on %s: %s", r.a.cfg.Name, n.why)
	case want == job.NetworkHost && n.noHost:
		return reason.Errorf(job.BadSpec, "%s does not let jobs use its own network, which this one needs", r.a.cfg.Name)
	case want == job.NetworkHost, n.own == nil:
		_, err := r.openUser(false)
		return err
	}
	ns, err := r.openUser(true)
	if err != nil {
		return err
	}
	at, err := n.own.AttachTo(r.id.String(), ns)
	if err != nil {
		if ns != nil {
			ns.Close()
		}
		return err
	}
	r.net = &rankNetwork{at: at}
	ports, err := r.takePorts(spec.Request.Docker.PortMappings)
	if err != nil {
		return err
	}
	if err := n.own.Publish(r.id.String(), hostPorts(ports)); err != nil {
		return err
	}
	r.change(newsProgress, func(s *node.RankStatus) { s.Ports = ports })
	return nil
}

// takePorts listens on the node for each mapping and says which ports it got.
func (r *rank) takePorts(want []job.PortMapping) ([]job.PortMapping, error) {
	ports := slices.Clone(want)
	for i := range ports {
		m := &ports[i]
		ip := r.a.network.settings.HostIP
		if m.HostIP != "" {
			ip = netip.MustParseAddr(m.HostIP) // checked when the document was read
		} else if ip.IsValid() {
			m.HostIP = ip.String()
		}
		l, err := netns.Listen(ip, uint16(m.HostPort), r.a.network.settings.Ports)
		if err != nil {
			return nil, r.a.portProblem(err)
		}
		r.net.listeners = append(r.net.listeners, l)
		m.HostPort = l.Addr().(*net.TCPAddr).Port
		f, err := l.File()
		if err != nil {
			return nil, fmt.Errorf("hand over port %d: %w", m.HostPort, err)
		}
		r.net.files = append(r.net.files, f)
	}
	return ports, nil
}

// leaveNetwork closes what only a shim has to hold. It comes when there is one,
// and when there will be none.
func (r *rank) leaveNetwork() error {
	if r.user != nil {
		r.user.Close()
		r.user = nil
	}
	if r.net == nil {
		return nil
	}
	for _, l := range r.net.listeners {
		l.Close()
	}
	for _, f := range r.net.files {
		f.Close()
	}
	r.net.at.Namespace.Close()
	r.net = nil
	return nil
}

// detachNetwork removes what the host has of an ended rank's network. The
// kernel takes its time for it, and does so by itself too.
func (r *rank) detachNetwork() error {
	if r.a.network.own == nil {
		return nil
	}
	return r.a.network.own.Detach(r.id.String())
}

// shimNetwork is the network for the shim's part; nil is the node's.
func (r *rank) shimNetwork() *oci.ShimNetwork {
	if r.net == nil {
		return nil
	}
	_, relay := r.a.network.own.ResolvConf()
	s := &oci.ShimNetwork{Addr: r.net.at.Addr, Relay: relay}
	for _, m := range r.order.Spec.Request.Docker.PortMappings {
		s.Ports = append(s.Ports, uint16(m.ContainerPort))
	}
	return s
}

func (r *rank) handover() oci.Handover {
	h := oci.Handover{User: r.user, Env: r.secretEnv()}
	if r.net != nil {
		h.Namespace, h.Listeners = r.net.at.Namespace, r.net.files
	}
	return h
}

// hostname is the node's where the rank shares its network, as programs look
// for their own address by it.
func (r *rank) hostname() string {
	switch {
	case r.net == nil:
		return r.a.host.Name
	case r.id.Task > 0:
		return fmt.Sprintf("job-%d-%d", r.id.Job, r.id.Task)
	}
	return fmt.Sprintf("job-%d", r.id.Job)
}

func hostPorts(list []job.PortMapping) []uint16 {
	var ports []uint16
	for _, m := range list {
		ports = append(ports, uint16(m.HostPort))
	}
	return ports
}

// portProblem says who has a port, by job where it is one of ours.
func (a *Agent) portProblem(err error) error {
	var busy *netns.PortInUseError
	var none *netns.NoAddressError
	switch {
	case errors.As(err, &none):
		return reason.Errorf(job.BadSpec, "hostIp %s is not an address of node %s", none.Addr, a.cfg.Name)
	case !errors.As(err, &busy):
		return err
	case busy.Port == 0:
		return reason.Errorf(job.PortInUse, "%v on node %s", err, a.cfg.Name)
	}
	text := fmt.Sprintf("port %d of node %s is in use", busy.Port, a.cfg.Name)
	if n, ok := a.jobAt(busy); ok {
		return reason.Errorf(job.PortInUse, "%s by job %d", text, n)
	}
	if h := busy.Holder; h != nil {
		return reason.Errorf(job.PortInUse, "%s by %s (process %d)", text, h.Command, h.PID)
	}
	return reason.Errorf(job.PortInUse, "%s", text)
}

// jobAt finds the job that has a port: by what was mapped here, or, in the
// node's own network, by the cgroup of the process that listens.
func (a *Agent) jobAt(busy *netns.PortInUseError) (job.Number, bool) {
	a.mu.Lock()
	for _, r := range a.ranks {
		if r.status.Exit == nil && slices.Contains(hostPorts(r.status.Ports), busy.Port) {
			a.mu.Unlock()
			return r.id.Job, true
		}
	}
	a.mu.Unlock()
	if busy.Holder == nil {
		return 0, false
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", busy.Holder.PID))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) {
		_, at, _ := strings.Cut(strings.TrimSpace(line), "/")
		if _, below, ok := strings.Cut("/"+at, filepath.Join("/gbatch", a.cfg.Name)+"/"); ok {
			name, _, _ := strings.Cut(below, "/")
			if id, err := job.ParseRankID(name); err == nil {
				return id.Job, true
			}
		}
	}
	return 0, false
}

// statusPorts are the rank's ports as the node gave them.
func (r *rank) statusPorts() []job.PortMapping {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return r.status.Ports
}

package rank

import (
	"os"
	"slices"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/rights"
	"gbatch/internal/noded/storage"
	"gbatch/oci/userns"
	"gbatch/oci/users"
)

// user is who a rank's user is on this node, as found when it began.
type user struct {
	userns.Owner
	ids   userns.Map // of its container; zero: the node's
	space *os.File   // the user namespace, until the shim has it
}

func (n *Node) owner(o *order) (userns.Owner, error) {
	return n.Accounts.Owner(o.User, o.UID, o.ProjectGID, o.IDs)
}

// find decides whose ids the container has. Nobody is root on the node but who
// asked for that and may.
func (u *user) find(n *Node, o *order) (err error) {
	if u.Owner, err = n.owner(o); err != nil {
		return err
	}
	if err := n.allows(&o.Spec); err != nil {
		return err
	}
	if !o.Spec.Privileged() && n.NoMaps == nil {
		u.ids = userns.MapOf(u.Owner)
	}
	return nil
}

// allows looks at what the node itself must allow: the controller goes by what
// it was told last.
func (n *Node) allows(s *job.Spec) error {
	if s.Privileged() && !n.Config.AllowPrivileged {
		return reason.Errorf(job.Server, "node %s does not allow privileged jobs (allowPrivileged in gnoded.yaml)", n.Config.Name)
	}
	if name := s.Runtime(); name != "" {
		r, ok := n.Runtimes[name]
		switch {
		case !ok:
			return reason.Errorf(job.Server, "node %s has no runtime %s (runtimes in gnoded.yaml)", n.Config.Name, name)
		case r.Kind.Sandboxed() && s.Request.Resources.GPUs != 0:
			return reason.Errorf(job.Server, "containers of the runtime %s of node %s can have no GPUs", name, n.Config.Name)
		}
	}
	for _, c := range s.Capabilities() {
		if n.NoMaps != nil || !slices.Contains(n.Config.AllowCapabilities, c) {
			return reason.Errorf(job.Server, "node %s does not allow the capability %s (allowCapabilities in gnoded.yaml)", n.Config.Name, c)
		}
	}
	return nil
}

func (u *user) close() {
	u.space.Close()
	u.space = nil
}

// groupsBeside are the groups that the job names and, in a container with ids
// of its own, those of its project and of its user.
func (u *user) groupsBeside(named []string) []string {
	list := append([]string{}, named...)
	for _, g := range u.Groups {
		if inside, ok := u.ids.InsideGID(g); ok && inside != 0 && !u.ids.IsZero() {
			list = append(list, strconv.FormatUint(uint64(inside), 10))
		}
	}
	return list
}

// group is a group of the node by the number that it has in the container.
func (u *user) group(gid int) int {
	if inside, ok := u.ids.InsideGID(uint32(gid)); ok && gid > 0 {
		return int(inside)
	}
	return gid
}

// runAsUser makes the program run as its user where the container has the
// node's ids: without root, and as nobody that an image or a job could choose.
func (r *recipe) runAsUser(spec *specs.Spec) error {
	if !r.user.ids.IsZero() || r.order.Spec.Privileged() {
		return nil
	}
	if docker := &r.order.Spec.Request.Docker; docker.User != "" || len(docker.GroupAdd) > 0 {
		return reason.Errorf(job.BadSpec, "jobs run as their own user on node %s, which cannot give containers ids of their own: leave \"user\" and \"groupAdd\" out", r.node.Config.Name)
	}
	users.Apply(spec, users.User{UID: r.user.UID, GID: r.user.GID, Groups: r.user.Groups, Home: "/"})
	return nil
}

// tenant is whose storage the rank's is, also of a rank that an earlier daemon
// began.
func (r *Rank) tenant() (storage.Tenant, error) {
	o, err := r.node.owner(&r.order)
	who := storage.Tenant{User: r.order.User, Project: r.order.Project, GID: r.order.ProjectGID, UID: int(o.UID), OwnGID: int(o.GID), Rights: rights.Of(o)}
	if r.order.Spec.Privileged() {
		who.Rights = rights.Daemon() // which the job has itself
	}
	return who, err
}

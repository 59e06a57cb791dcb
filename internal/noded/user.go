package noded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/job"
	"gbatch/internal/noded/account"
	"gbatch/internal/noded/reason"
	"gbatch/oci"
	"gbatch/oci/userns"
)

// openAccounts finds out who jobs' users are here, and whether root of a
// container can be one of them.
func (a *Agent) openAccounts() error {
	var err error
	if a.accounts, err = account.Open(filepath.Join(a.cfg.StateDir, "ids.json"), a.cfg.IDsFrom); err != nil {
		return err
	}
	if a.noMaps = oci.ProbeUsers(a.cfg.Images.Dir, a.cfg.StateDir); a.noMaps != nil {
		a.log.Warn("jobs run without root, as their users: containers cannot have ids of their own here", "error", a.noMaps)
	}
	return nil
}

// owner is who the rank's user is on this node.
func (r *rank) owner() (userns.Owner, error) {
	return r.a.accounts.Owner(r.order.User, r.order.UID, r.order.ProjectGID)
}

// findUser decides whose ids the container has. Nobody is root on the node but
// who asked for that and may.
func (r *rank) findUser(context.Context) error {
	o, err := r.owner()
	if err != nil {
		return err
	}
	if !r.order.Spec.Privileged() && r.a.noMaps == nil {
		r.ids = userns.MapOf(o)
	}
	return nil
}

// openUser makes the user namespace, and if own is set a network namespace that
// belongs to it. The latter is nil where the container has the node's ids.
func (r *rank) openUser(own bool) (net *os.File, err error) {
	if r.ids.IsZero() {
		return nil, nil
	}
	ns, err := userns.New(r.ids, own)
	if err != nil {
		return nil, err
	}
	r.user = ns.User
	return ns.Net, nil
}

// groups are the container's: those that the job names, its project's and its
// user's further ones.
func (r *rank) groups() []string {
	list := r.order.Spec.Request.Docker.GroupAdd
	if r.ids.IsZero() {
		return list
	}
	o, err := r.owner()
	if err != nil {
		return list // findUser had it, and it is asked again soon
	}
	list = append([]string{}, list...)
	for _, g := range o.Groups {
		if inside, ok := r.ids.InsideGID(g); ok && inside != 0 {
			list = append(list, strconv.FormatUint(uint64(inside), 10))
		}
	}
	return list
}

// projectGID is the project's group by the number that it has in the container.
func (r *rank) projectGID() int {
	if gid, ok := r.ids.InsideGID(uint32(r.order.ProjectGID)); ok && r.order.ProjectGID > 0 {
		return int(gid)
	}
	return r.order.ProjectGID
}

// runAsUser makes the program run as its user where the container has the
// node's ids: without root, and as nobody that an image or a job could choose.
func (r *rank) runAsUser(spec *specs.Spec) error {
	if !r.ids.IsZero() || r.order.Spec.Privileged() {
		return nil
	}
	if docker := &r.order.Spec.Request.Docker; docker.User != "" || len(docker.GroupAdd) > 0 {
		return reason.Errorf(job.BadSpec, "jobs run as their own user on node %s, which cannot give containers ids of their own: leave \"user\" and \"groupAdd\" out", r.a.cfg.Name)
	}
	o, err := r.owner()
	if err != nil {
		return err
	}
	oci.ApplyUser(spec, oci.User{UID: o.UID, GID: o.GID, Groups: o.Groups, Home: "/"})
	return nil
}

// giveToRoot makes files in a directory the container's root's, who may change
// them.
func (r *rank) giveToRoot(dir string) error {
	uid, gid, ok := r.ids.Host(0, 0)
	if !ok {
		return errors.New("the container has no root")
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Chown(filepath.Join(dir, e.Name()), uid, gid))
	}
	return err
}

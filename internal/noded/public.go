package noded

import (
	"slices"

	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/oci/lease"
)

// placesOf are the directories of the node that users know by other names or not
// at all.
func placesOf(c *config.Config) *reason.Places {
	list := []reason.Place{
		{Path: c.StateDir, Name: "the node's state directory"}, {Path: c.Images.Dir, Name: "the node's image store"},
		{Path: c.Data.Dir, Name: "the node's directory of inputs"}, {Path: c.SSHDir, Name: ".ssh", Same: true},
		{Path: "/run/gbatch", Name: "the node's runtime directory"},
	}
	for _, s := range c.Storage {
		list = append(list, reason.Place{Path: s.Path, Name: s.Name, Same: true})
	}
	return reason.NewPlaces(list)
}

// publicStatus is what others are told of a rank. The node's log has the whole.
func (a *Agent) publicStatus(s node.RankStatus) node.RankStatus {
	s.Progress = a.places.Public(s.Progress)
	if s.Exit != nil {
		e := *s.Exit
		e.Message = a.places.Public(e.Message)
		s.Exit = &e
	}
	s.OnClock(lease.WallMS())
	if s.Resize != nil {
		r := *s.Resize
		r.Error = a.places.Public(r.Error)
		s.Resize = &r
	}
	return s
}

// publicPrepulled is what others are told of images that were pulled ahead.
func (a *Agent) publicPrepulled(list []node.Prepulled) []node.Prepulled {
	list = slices.Clone(list)
	for i := range list {
		list[i].Error = a.places.Public(list[i].Error)
	}
	return list
}

// publicFaults is what the node is to be drained for.
func (a *Agent) publicFaults() []node.Fault {
	list := slices.Clone(a.faults.List())
	for i := range list {
		list[i].Text = a.places.Public(list[i].Text)
	}
	return list
}

// publicReboot is what is said of an order to reboot.
func (a *Agent) publicReboot() *node.Reboot {
	r := a.health.reboots.Word()
	if r != nil {
		r.Failed = a.places.Public(r.Failed)
	}
	return r
}

// publicReasons is why the node takes no jobs, in words for everyone.
func (a *Agent) publicReasons() []string {
	list := a.health.reasons()
	for i := range list {
		list[i] = a.places.Public(list[i])
	}
	return list
}

package oci

import (
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/rootfs"
)

// takeEnv adds the variables that were handed over to the container's.
func (s *shim) takeEnv() error {
	env, err := handed.Env()
	if err != nil || env == nil {
		return err
	}
	for _, p := range s.parts {
		if p.Spec.Process.Env, err = draft.MergeEnv(p.Spec.Process.Env, env); err != nil {
			return err
		}
		draft.PutIn(p.Spec.Process.Args, env)
		draft.PutIn(p.Spec.Process.Env, env)
	}
	return nil
}

// giveOwn gives what lies at each of ShimConfig.Own to the container's user. Only
// the daemon has written there.
func (s *shim) giveOwn() error {
	u := s.spec.Process.User
	uid, gid, _ := s.received.IDs.Host(u.UID, u.GID)
	if uid == 0 && gid == 0 {
		return nil
	}
	return rootfs.Give(s.cfg.Own, uid, gid)
}

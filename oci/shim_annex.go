package oci

import (
	"errors"
	"net"
	"os"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/annex"
	"gbatch/oci/failure"
	"gbatch/oci/message"
	"gbatch/oci/wire"
)

// serveAnnex begins a container beside the program, with the file that came with the request.
func serveAnnex(s *shim, conn *net.UnixConn, req wire.Request, files []*os.File) error {
	defer message.CloseAll(files)
	out := wire.Reply{Seq: req.Seq}
	err := beginAnnex(s, req.Annex, files)
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		out.Kind, out.Error = f.Kind, f.Message
	} else if err != nil {
		out.Error = err.Error()
	}
	return s.tell(conn, out)
}

func beginAnnex(s *shim, q *annex.Request, files []*os.File) error {
	of, err := within(s, nil)
	switch {
	case err != nil:
		return err
	case q == nil || len(files) != 1:
		return errors.New("no container was asked for, with one open file")
	case s.cfg.Keep != nil:
		return cannot("a container in which tasks of an array run one after the other begins no others: leave out \"reuse\"")
	case s.cfg.Runtime != nil:
		return cannot("a container of another runtime begins no others: give each image a job of its own")
	}
	if err := q.Check(); err != nil {
		return err
	}
	pid, err := of.running()
	if err != nil {
		return err
	}
	trees, err := annex.Open(pid, rightsOf(of), q.Inside)
	if err != nil {
		return err
	}
	defer annex.Close(trees)
	if !of.onThread(func() {
		err = of.annexes.Begin(q, annexOf(of), files[0], trees)
		complain(of.now.bundle(of)) // hooks at the end find the program's own again
	}) {
		return errEnded
	}
	return err
}

func cannot(why string) error {
	return &failure.Failure{Kind: failure.RuntimeFailed, Message: why}
}

// rightsOf are those of the user whom the program runs as, on the host.
func rightsOf(s *shim) (who annex.Who) {
	s.mu.Lock()
	u := s.spec.Process.User
	s.mu.Unlock()
	who.UID, who.GID, _ = s.received.IDs.Host(u.UID, u.GID)
	for _, g := range u.AdditionalGids {
		if _, gid, ok := s.received.IDs.Host(u.UID, g); ok {
			who.Groups = append(who.Groups, gid)
		}
	}
	return who
}

func annexOf(s *shim) annex.Of {
	return annex.Of{
		ID: s.cfg.ID, Spec: s.spec, Hooked: s.now.hooked, Root: s.now.root.Unmounted(), State: seenByAll(stageState),
		Config:   func(of *specs.Spec, rootfs string) (*configs.Config, error) { return configOf(s, of, rootfs) },
		Bundle:   func(hooked []byte) error { return (&part{hooked: hooked}).bundle(s) },
		OnThread: s.onThread, Complain: complain,
	}
}

package rank

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
	"gbatch/oci/message"
)

// Inside takes tasks in a container of a step's own, as its first process: from the rank's
// own program, which hands srun's connections over. Image are the variables that the
// container's image sets. It ends when nobody hands any over any more.
func Inside(info *launch.Info, image []string) error {
	f := os.NewFile(3, "rank")
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("%T is no connection to a rank", c)
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCHLD, unix.SIGPIPE)
	s, err := newServer(info)
	if err != nil {
		return err
	}
	s.inside, s.image = true, image
	go func() { // ends with the process
		for sig := range signals {
			if sig == unix.SIGCHLD {
				s.procs.reap()
			}
		}
	}()
	if err := message.Send(conn, launch.ContainerReply{Ready: true}); err != nil {
		return err
	}
	s.takeOver(conn)
	os.Exit(0) // with all that still runs: who would be told has gone
	return nil
}

// takeOver serves connections that are handed over, until there come no more.
func (s *Server) takeOver(conn *net.UnixConn) {
	in := message.NewReader(conn)
	var telling sync.Mutex
	var read []byte
	var waiting []*os.File // what comes in one piece may have the file of a later line
	for {
		line, files, err := in.Next()
		if err != nil {
			return
		}
		var h launch.HandOver
		waiting = append(waiting, files...)
		if json.Unmarshal(line, &h) != nil || h.Last && len(waiting) == 0 {
			return
		}
		if read = append(read, h.Read...); !h.Last {
			continue
		}
		raw, err := net.FileConn(waiting[0])
		waiting[0].Close()
		waiting = waiting[1:]
		if err != nil {
			return
		}
		c := launch.Resume(raw, read)
		read = nil
		go func() { // ends with the connection
			s.talk(c)
			telling.Lock()
			defer telling.Unlock()
			_ = message.Send(conn, launch.ContainerReply{Over: h.ID})
		}()
	}
}

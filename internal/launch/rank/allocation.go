package rank

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/launch"
)

// holdGrace is how long an allocation stays whose holder has gone without a word:
// daemons are restarted in that time.
const holdGrace = 2 * time.Minute

// hold serves one holder.
func (s *Server) hold(conn *launch.Conn) error {
	s.mu.Lock()
	s.holders++
	s.mu.Unlock()
	if err := conn.Send(launch.KindGrant, 0, nil); err != nil {
		return err
	}
	for {
		f, err := conn.Next()
		if err != nil {
			s.left()
			return nil
		}
		if f.Kind == launch.KindDone {
			var d launch.Done
			if err := f.Read(&d); err != nil {
				return err
			}
			s.release(d.Code)
		}
	}
}

// left takes in that a holder has gone.
func (s *Server) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders--; s.holders > 0 {
		return
	}
	time.AfterFunc(holdGrace, func() {
		s.mu.Lock()
		none := s.holders == 0
		s.mu.Unlock()
		if none {
			fmt.Fprintln(os.Stderr, "gbatch-rank: salloc has gone: the allocation ends")
			s.release(1)
		}
	})
}

// release ends the allocation: what runs in it is told to end, and the job ends
// with the code when it has.
func (s *Server) release(code int) {
	s.mu.Lock()
	if !s.ending {
		s.code = code & 0xff
	}
	s.mu.Unlock()
	if s.steps != nil {
		s.steps.cancelAll()
	}
	s.count(0, true)
}

// Hold keeps the allocation for as long as its input is open, and gives it back by
// the line "end CODE".
func Hold(info *launch.Info) error {
	conn, err := info.Dial(0, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Send(launch.KindHold, 0, nil); err != nil {
		return err
	}
	if _, err := conn.Next(); err != nil {
		return err
	}
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "SLURM_") {
			fmt.Print(kv, "\x00")
		}
	}
	fmt.Println(launch.Held)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		text, ok := strings.CutPrefix(in.Text(), "end ")
		code, err := strconv.Atoi(text)
		if !ok || err != nil {
			return fmt.Errorf("%q is nothing that an allocation is told", in.Text())
		}
		if err := conn.Send(launch.KindDone, 0, launch.Done{Code: code}); err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, conn) // until it has ended
		return nil
	}
	return nil
}

package pmix

import (
	"fmt"
	"strings"
	"time"

	"gbatch/internal/launch/pmix/wire"
)

// take takes one request. It tells whether the connection goes on.
func (s *Server) take(p *peer, f wire.Frame) bool {
	r := wire.NewReader(p.format, f.Body)
	command := r.Command()
	if r.Err() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.open >= maxOpen {
		return false
	}
	switch command {
	case wire.JobData:
		p.reply(f.Tag, s.jobFacts(p))
	case wire.Commit:
		p.status(f.Tag, s.commit(p, r))
	case wire.Fence:
		s.fence(p, f.Tag, r)
	case wire.Get:
		s.get(p, f.Tag, r)
	case wire.Finalize:
		p.done = true
		p.status(f.Tag, wire.OK)
	case wire.Abort:
		s.aborted(p, f.Tag, r.Abort())
	case wire.Log:
		p.status(f.Tag, s.log(p, r))
	case wire.Register: // events of which none is told: a process that dies ends the step
		p.status(f.Tag, wire.OK)
	case wire.Deregister:
	default:
		p.status(f.Tag, wire.NotSupported)
	}
	return true
}

func (s *Server) aborted(p *peer, tag uint32, a wire.AbortRequest) {
	code := int(a.Status)
	text := fmt.Sprintf("called MPI_Abort with code %d", code)
	if said := printable(a.Text); said != "" && said != "N/A" { // Open MPI says that
		text += ": " + said
	}
	s.abort(p.task, &code, text)
	p.done = true // that it goes is no news
	p.status(tag, wire.OK)
}

// printable is what of a text may go into a line.
func printable(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.TrimSpace(s)
}

// log writes texts where they are to go.
func (s *Server) log(p *peer, r *wire.Reader) wire.Status {
	l := r.Log(p.version)
	if r.Err() != nil {
		return why(r.Err())
	}
	went := wire.NotSupported
	for _, i := range l.Data {
		text, ok := i.Value.Data.(string)
		if ok && (i.Key == "pmix.log.stderr" || i.Key == "pmix.log.stdout") {
			s.later(func() { s.c.Print(p.task, i.Key == "pmix.log.stderr", text) })
			went = wire.OK
		}
	}
	return went
}

// duration is what a directive says in seconds.
func duration(i wire.Info) time.Duration {
	const most = 1 << 20
	n := i.Value.Number()
	if n > most {
		return 0
	}
	return time.Duration(n) * time.Second
}

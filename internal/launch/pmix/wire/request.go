package wire

import (
	"errors"
	"fmt"
)

// Command is what a client asks for.
type Command uint8

// The commands that a server of a launcher has to know. All others may be refused.
const (
	JobData    Command = 0
	Abort      Command = 1
	Commit     Command = 2
	Fence      Command = 3
	Get        Command = 4
	Finalize   Command = 5
	Register   Command = 13 // for events
	Deregister Command = 14 // not answered
	Log        Command = 16
)

// Scope says for whom values are that a process has put.
type Scope uint8

// The scopes. One that is for all is in both.
const (
	ForNode  Scope = 1
	ForOther Scope = 2 // nodes
)

// Command reads what is asked for, with which each request begins.
func (r *Reader) Command() Command { return Command(r.Number(CommandNo)) }

// AbortRequest asks for the end of all processes.
type AbortRequest struct {
	Status Status
	Text   string
}

// Abort reads one.
func (r *Reader) Abort() AbortRequest {
	return AbortRequest{Status: Status(int32(r.Number(StatusCode))), Text: r.Text()}
}

// CommitRequest gives others what a process has put.
type CommitRequest struct{ Node, Other []KV }

// Commit reads one.
func (r *Reader) Commit() (c CommitRequest) {
	for r.More() {
		scope := Scope(r.Number(ScopeCode))
		list := r.buffer()
		switch scope {
		case ForNode:
			c.Node = append(c.Node, list...)
		case ForOther:
			c.Other = append(c.Other, list...)
		default:
			r.fail(fmt.Errorf("scope %d is none", scope))
		}
	}
	return c
}

// buffer reads values that are packed in one.
func (r *Reader) buffer() []KV {
	if r.whole(wholes[Int32]) != 1 {
		r.fail(errors.New("there is to be one buffer"))
	}
	if kind := r.take(1); kind != nil && kind[0] != Plain && kind[0] != 0 {
		r.fail(fmt.Errorf("buffers of type %d are not supported", kind[0]))
	}
	in := &Reader{Format: r.Format, rest: r.take(r.whole(wholes[Size])), count: r.count}
	list := in.KVs()
	r.count = in.count
	if in.err != nil {
		r.fail(in.err)
	}
	return list
}

// KVs reads values up to the end.
func (r *Reader) KVs() (list []KV) {
	for r.More() {
		list = append(list, r.KV())
	}
	return list
}

// FenceRequest asks to wait until all of some processes have asked for it.
type FenceRequest struct {
	Procs []Proc
	Infos []Info
}

// Fence reads one.
func (r *Reader) Fence() (f FenceRequest) {
	n := r.Number(Size)
	for _, v := range r.List(ProcID) {
		f.Procs = append(f.Procs, v.Data.(Proc))
	}
	if n != uint64(len(f.Procs)) {
		r.fail(fmt.Errorf("%d processes are said to be %d", len(f.Procs), n))
	}
	f.Infos = r.Infos()
	return f
}

// GetRequest asks for what a process has put.
type GetRequest struct {
	Proc  Proc
	Infos []Info
	Key   string // empty: all
}

// Get reads one. Clients before 4.0 do not say which key they want.
func (r *Reader) Get() GetRequest {
	g := GetRequest{Proc: Proc{r.Text(), uint32(r.Number(RankNo))}, Infos: r.Infos()}
	if r.More() {
		g.Key = r.Text()
	}
	return g
}

// LogRequest asks for texts to be written somewhere.
type LogRequest struct{ Data []Info }

// Log reads one. A time is before it since 3.0.
func (r *Reader) Log(v Version) LogRequest {
	if v.Major >= 3 {
		r.Number(Time)
	}
	return LogRequest{Data: r.Infos()}
}

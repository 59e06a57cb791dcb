package srun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"gbatch/internal/launch"
)

// output writes what tasks write: whole lines, unless srun was told not to wait
// for them, so that those of several tasks do not mix.
type output struct {
	out, errs sink
	raw       bool // as it comes
	width     int  // of the number in front of lines; 0: there is none
	files     []*os.File
	held      map[[2]int][]byte // the begin of a line, by task and kind
}

// sink is one place to write to.
type sink struct {
	to   io.Writer
	only int // the task whose output is wanted; -1: all
}

func (r *run) openOutput() (*output, error) {
	o := r.o
	w := &output{held: map[[2]int][]byte{}, raw: o.unbuffer && !o.label || o.pty}
	if o.label {
		w.width = len(strconv.Itoa(r.layout.Tasks - 1))
	}
	var err error
	if w.out, err = w.open(r, o.out, os.Stdout); err != nil {
		return nil, err
	}
	switch {
	case o.errs != "" && o.errs != o.out:
		w.errs, err = w.open(r, o.errs, os.Stderr)
	case o.errs == "" && w.out.to == os.Stdout:
		w.errs = sink{os.Stderr, w.out.only}
	default:
		w.errs = w.out
	}
	return w, err
}

func (w *output) open(r *run, mode string, usual *os.File) (sink, error) {
	switch {
	case mode == "" || mode == "all" || launch.PerTask(mode):
		return sink{usual, -1}, nil
	case mode == "none":
		return sink{io.Discard, -1}, nil
	case isNumber(mode):
		n, err := strconv.Atoi(mode)
		return sink{usual, n}, err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if r.o.appends {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	name := launch.Pattern{Info: r.info, Step: r.layout.Step}.Expand(mode)
	f, err := os.OpenFile(name, flags, 0o666)
	if err != nil {
		return sink{}, fmt.Errorf("Could not open stdout file: %w", err)
	}
	w.files = append(w.files, f)
	return sink{f, -1}, nil
}

// maxLine is how much of a line is held back until its end comes.
const maxLine = 64 << 10

// write takes what a task has written.
func (w *output) write(kind launch.Kind, task int, data []byte) {
	to, k := w.out, 0
	if kind == launch.KindErrors {
		to, k = w.errs, 1
	}
	if to.only >= 0 && to.only != task {
		return
	}
	if w.raw {
		_, _ = to.to.Write(data)
		return
	}
	key := [2]int{task, k}
	data = append(w.held[key], data...)
	end := bytes.LastIndexByte(data, '\n') + 1
	if len(data)-end > maxLine {
		end = len(data)
	}
	w.put(to.to, task, data[:end])
	if w.held[key] = append([]byte(nil), data[end:]...); end == len(data) {
		delete(w.held, key)
	}
}

func (w *output) put(to io.Writer, task int, data []byte) {
	if len(data) == 0 {
		return
	}
	if w.width == 0 {
		_, _ = to.Write(data)
		return
	}
	var b bytes.Buffer
	for line := range bytes.Lines(data) {
		fmt.Fprintf(&b, "%*d: %s", w.width, task, line)
	}
	if data[len(data)-1] != '\n' {
		b.WriteByte('\n')
	}
	_, _ = to.Write(b.Bytes())
}

// close writes what is left of lines without an end.
func (w *output) close() {
	for key, data := range w.held {
		to := w.out
		if key[1] == 1 {
			to = w.errs
		}
		w.put(to.to, key[0], data)
	}
	for _, f := range w.files {
		f.Close()
	}
}

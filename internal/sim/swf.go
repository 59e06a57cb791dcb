package sim

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gbatch/sched"
)

// The columns of the Standard Workload Format that are used, from 0.
const (
	swfJob, swfSubmit, swfRun   = 0, 1, 3
	swfUsed, swfAsked, swfLimit = 4, 7, 8
	swfUser, swfColumns         = 11, 18
)

// readSWF reads a log in the Standard Workload Format of the Parallel Workloads
// Archive. Processors become cores of one pool. A job without a requested time,
// or with one below its run time, has its run time as the limit: the log says
// that it was not ended. Jobs that never ran or asked for nothing are left out.
func readSWF(r io.Reader) (workload, error) {
	w := workload{}
	known := shapes{}
	neverRan, tooLarge := 0, 0
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), 1<<20)
	line := 0
	for in.Scan() {
		line++
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		if head, is := strings.CutPrefix(text, ";"); is {
			if err := w.swfHeader(head); err != nil {
				return w, lineError(line, "%w", err)
			}
			continue
		}
		f, err := swfFields(text)
		if err != nil {
			if !in.Scan() && in.Err() != nil { // the line was cut off
				err = fmt.Errorf("read: %w", in.Err())
			}
			return w, lineError(line, "%w", err)
		}
		procs := f[swfAsked]
		if procs <= 0 {
			procs = f[swfUsed]
		}
		if f[swfRun] < 0 || procs <= 0 || f[swfSubmit] < 0 {
			neverRan++
			continue
		}
		if w.Procs > 0 && procs > int64(w.Procs) {
			tooLarge++
			continue
		}
		user := fmt.Sprintf("u%d", f[swfUser])
		w.Jobs = append(w.Jobs, Job{
			Name: strconv.FormatInt(f[swfJob], 10), User: user, Project: "trace",
			Submit: sched.Time(f[swfSubmit]) * sched.Second, Run: sched.Time(f[swfRun]) * sched.Second,
			Limit: sched.Time(max(f[swfLimit], f[swfRun], 1)) * sched.Second,
			Shape: known.of(sched.Shape{MilliCPU: procs * 1000}, ""),
		})
	}
	if err := in.Err(); err != nil {
		return w, lineError(line+1, "read: %w", err)
	}
	if neverRan > 0 {
		w.note("%d jobs left out: they have no run time, processors or submit time", neverRan)
	}
	if tooLarge > 0 {
		w.note("%d jobs left out: they ask for more than the %d processors that there are", tooLarge, w.Procs)
	}
	w.inOrder()
	return w, nil
}

func (w *workload) swfHeader(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return nil
	}
	value = strings.TrimSpace(value)
	switch strings.TrimSpace(name) {
	case "MaxProcs":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1<<30 {
			return fmt.Errorf("MaxProcs is %q: want a number of processors", value)
		}
		w.Procs = n
	case "UnixStartTime":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 && n < 1<<40 {
			w.Epoch = n
		}
	}
	return nil
}

func swfFields(text string) ([swfColumns]int64, error) {
	var out [swfColumns]int64
	f := strings.Fields(text)
	if len(f) != swfColumns {
		return out, fmt.Errorf("has %d fields: the format has %d", len(f), swfColumns)
	}
	for _, i := range [...]int{swfJob, swfSubmit, swfRun, swfUsed, swfAsked, swfLimit, swfUser} {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			x, ferr := strconv.ParseFloat(f[i], 64)
			if ferr != nil || math.IsNaN(x) {
				return out, fmt.Errorf("field %d is %q: want a number", i+1, f[i])
			}
			if math.Abs(x) > 1<<40 {
				return out, fmt.Errorf("field %d is %q: too large", i+1, f[i])
			}
			n = int64(math.Round(x))
		}
		if n > 1<<40 || n < -1<<40 {
			return out, fmt.Errorf("field %d is %q: too large", i+1, f[i])
		}
		out[i] = n
	}
	return out, nil
}

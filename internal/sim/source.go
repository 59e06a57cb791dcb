package sim

import (
	"errors"
	"fmt"
	"io"
)

// Source is where a workload comes from and what machine it is to run on.
type Source struct {
	Format string    // swf, openb, philly or sacct
	Trace  io.Reader // the log
	Order  io.Reader // openb: the pods in the order in which they come; nil: drawn by Seed
	List   io.Reader // openb's node list; nil: see Nodes and Procs
	Span   Span      // philly: of the log; zero: PhillySpan

	Procs   int // processors of one pool; 0: what the log says
	Nodes   int // so many nodes
	PerNode int // with so many GPUs each

	Load float64 // openb: requested GPUs as a multiple of those there are
	Seed uint64
}

// Read reads the workload and makes the nodes it runs on.
func (s Source) Read() (workload, []Node, error) {
	nodes, err := s.machine()
	if err != nil {
		return workload{}, nil, err
	}
	switch s.Format {
	case "swf":
		return s.swf(nodes)
	case "philly":
		if len(nodes) == 0 {
			return workload{}, nil, errors.New("a philly trace names no nodes: give --nodes and --gpus-per-node, as 80 and 8")
		}
		span := s.Span
		if span.From.IsZero() {
			span.From = phillySpan.From
		}
		if span.Until.IsZero() {
			span.Until = phillySpan.Until
		}
		w, err := readPhilly(s.Trace, span, s.PerNode)
		if err == nil && s.Order != nil {
			if w, err = w.phillyOrder(s.Order, s.PerNode); err != nil {
				err = fmt.Errorf("order file: %w", err)
			}
		}
		return w, nodes, err
	case "openb":
		return s.openb(nodes)
	case "sacct":
		return s.sacct(nodes)
	}
	return workload{}, nil, fmt.Errorf("trace format is %q: want swf, openb, philly or sacct", s.Format)
}

// machine is the nodes that the caller asks for; none if it leaves them to the log.
func (s Source) machine() ([]Node, error) {
	asked := 0
	for _, b := range [...]bool{s.List != nil, s.Nodes > 0, s.Procs > 0} {
		if b {
			asked++
		}
	}
	switch {
	case asked > 1:
		return nil, errors.New("give either a node list, a number of nodes, or a number of processors")
	case s.Nodes < 0 || s.Nodes > 100_000 || s.PerNode < 0 || s.PerNode > 128 || s.Procs < 0:
		return nil, fmt.Errorf("%d nodes with %d GPUs each, %d processors: want at most 100000 nodes and 128 GPUs each", s.Nodes, s.PerNode, s.Procs)
	case s.Nodes > 0 && s.PerNode == 0:
		return nil, errors.New("a number of nodes needs a number of GPUs for each")
	case s.List != nil:
		return readOpenbNodes(s.List)
	case s.Nodes > 0:
		return gpuNodes(s.Nodes, s.PerNode, "GPU"), nil
	case s.Procs > 0:
		return pool(s.Procs), nil
	}
	return nil, nil
}

func (s Source) swf(nodes []Node) (workload, []Node, error) {
	w, err := readSWF(s.Trace)
	if err != nil {
		return w, nil, err
	}
	switch {
	case s.Nodes > 0: // a processor is a GPU
		known := shapes{}
		for i := range w.Jobs {
			w.Jobs[i].Shape = known.of(gangOf(w.Jobs[i].Shape.MilliCPU/1000, s.PerNode), "")
		}
	case len(nodes) == 0 && w.Procs == 0:
		return w, nil, errors.New("the log does not say how many processors there are (MaxProcs): give --procs")
	case len(nodes) == 0:
		nodes = pool(w.Procs)
	}
	return w, nodes, nil
}

func (s Source) openb(nodes []Node) (workload, []Node, error) {
	if len(nodes) == 0 {
		return workload{}, nil, errors.New("an openb pod list names no nodes: give --node-list, or --nodes and --gpus-per-node")
	}
	w, err := readOpenbPods(s.Trace)
	if err != nil {
		return w, nil, err
	}
	w.Mix = mixOf(w.Jobs)
	if s.Order != nil {
		w, err = w.reorder(s.Order)
		if err != nil {
			err = fmt.Errorf("order file: %w", err)
		}
		return w, nodes, err
	}
	w, err = w.inflate(nodes, s.Load, s.Seed)
	return w, nodes, err
}

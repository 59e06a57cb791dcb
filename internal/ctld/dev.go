package ctld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/ctld/site"
	"gbatch/oci/atomicfile"
)

// Dev is a controller and one node on this machine, in one directory.
type Dev struct {
	Dir          string // holds everything; made if missing
	Listen       string // TCP address on loopback; empty: as configured
	Gnoded       string // program
	SimulateGPUs string // for gnoded
	Log          *slog.Logger
	Reload       <-chan os.Signal // read gctld.yaml again
}

var controllerFile = template.Must(template.New("").Parse(`# Configuration of this development controller. gctld dev wrote it once; it is
# yours to change. "gctld check-config FILE" checks it.
dir: {{.Dir}}/ctld
socket: {{.Dir}}/gctld.sock
listen: {{or .Listen "127.0.0.1:7077"}}
nodes:
  suspectAfter: 30 seconds
  timeout: 2 minutes
reserveMiB: 256
# What names in job files of other systems stand for.
results: file:///project/results
instanceTypes:
{{- range $model := .Models}}{{range $n := $.Sizes}}
  GPU.{{$model}}_{{$n}}x: {gpus: {{$n}}, gpuModel: [{{$model}}], cpus: 1, cpuMemoryGb: 2}
{{- end}}{{end}}
imageAliases:
  default: python:3.12
{{- range $v := .Pythons}}
  "python:3.{{$v}}": python:3.{{$v}}
{{- end}}
  default+nvcc: nvidia/cuda:12.6.3-devel-ubuntu24.04
`))

var nodeFile = template.Must(template.New("").Parse(`# Configuration of this development node. gctld dev wrote it once; it is yours
# to change. "gnoded check-config FILE" checks it.
controller: unix://{{.Dir}}/gctld.sock
stateDir: {{.Dir}}/node
clusterId: 1
images:
  hosts: [127.0.0.1]   # a registry on this machine; elsewhere none is reached on loopback
sshDir: {{.Dir}}/storage/ssh/{project}/{user}
storage:
  - name: /project
    path: {{.Dir}}/storage/project/{project}
    create: true
  - name: /project_scratch
    path: {{.Dir}}/storage/scratch/{project}
    create: true
`))

// Models, Sizes and Pythons are for the tables of the controller's file.
func (d *Dev) Models() []string { return []string{"A100", "H100", "H200", "B200"} }
func (d *Dev) Sizes() []int     { return []int{1, 2, 4, 8} }
func (d *Dev) Pythons() []int   { return []int{9, 10, 11, 12, 13} }

// Run starts both and returns when ctx is done and both have stopped. Ready is
// called once the controller answers.
func (d *Dev) Run(ctx context.Context, ready func(addresses []string)) error {
	for _, root := range []string{"project", "scratch", "ssh"} { // a node makes what is below its roots, not the roots
		if err := os.MkdirAll(filepath.Join(d.Dir, "storage", root), 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	ctldFile, nodedFile := filepath.Join(d.Dir, "gctld.yaml"), filepath.Join(d.Dir, "gnoded.yaml")
	if err := errors.Join(d.write(ctldFile, controllerFile), d.write(nodedFile, nodeFile)); err != nil {
		return err
	}
	read := func() (site.Config, error) {
		cfg, err := site.Read(ctldFile)
		if d.Listen != "" {
			cfg.Listen = d.Listen
		}
		return cfg, err
	}
	s, err := Open(read, d.Log)
	if err != nil {
		return err
	}
	ready(s.Addresses())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { // the controller
		defer cancel()
		return s.Run(ctx)
	})
	g.Go(func() error { return d.node(ctx, nodedFile) }) // the node, until ctx is done
	g.Go(func() error {                                  // the rules, until ctx is done
		s.ReloadOn(ctx, d.Reload)
		return nil
	})
	return errors.Join(g.Wait(), s.Close())
}

// write makes a configuration file that survives a power cut, unless there is one.
func (d *Dev) write(path string, t *template.Template) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := atomicfile.WriteReadable(path, b.Bytes()); err != nil { // without it the next start would be of another site
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// node runs gnoded and starts it again, later each time, when it ends by itself.
func (d *Dev) node(ctx context.Context, config string) error {
	wait := time.Second
	for {
		began := time.Now()
		err := d.nodeOnce(ctx, config)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		d.Log.Error("gnoded ended; starting it again", "error", err, "in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// nodeOnce runs gnoded until it ends, or until ctx is done and it has stopped.
// If this process dies the kernel stops gnoded; its containers go on and are
// found again by the next one.
func (d *Dev) nodeOnce(ctx context.Context, config string) error {
	runtime.LockOSThread() // the kernel watches the thread that starts the child
	defer runtime.UnlockOSThread()
	args := []string{"run", "--config", config}
	if d.SimulateGPUs != "" {
		args = append(args, "--simulate-gpus", d.SimulateGPUs)
	}
	cmd := exec.Command(d.Gnoded, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true} // Ctrl-C is for us to pass on
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", d.Gnoded, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	return cmd.Wait()
}

package slurm

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
)

// batchScripts prints the scripts of jobs, as sacct --batch-script does.
func batchScripts(a *cli.App, rows []row) error {
	for i := range rows {
		r, text := &rows[i], "NONE"
		if l := r.launch(); l != nil && l.Script != "" {
			text = l.Script
		}
		if _, err := fmt.Fprintf(a.Out, "Batch Script for %s\n%s\n%s\n", r.ID, strings.Repeat("-", 80), text); err != nil {
			return err
		}
	}
	return nil
}

// write writes a job's script into a file: scontrol write batch_script 12 [FILE], which
// is slurm-12.sh if none is named, and standard output if it is -.
func (c *control) write(ctx context.Context, args []string) error {
	if len(args) < 2 || len(args) > 3 || !strings.EqualFold(args[0], "batch_script") {
		return exit.Usagef("scontrol write wants batch_script, a job and perhaps a file here; the site's settings are in gctld.yaml")
	}
	d, err := c.app.Client.Job(ctx, args[1], client.JobOptions{})
	if err != nil {
		return err
	}
	if d.Spec == nil || d.Spec.Gbatch == nil || d.Spec.Gbatch.Launch == nil || d.Spec.Gbatch.Launch.Script == "" {
		return fmt.Errorf("job %s has no batch script that you may see", args[1])
	}
	text, file := d.Spec.Gbatch.Launch.Script, "slurm-"+args[1]+".sh"
	if len(args) == 3 {
		file = args[2]
	}
	if file == "-" {
		_, err := fmt.Fprint(c.app.Out, text)
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.app.Out, "batch script for job %s written to %s\n", args[1], file)
	return err
}

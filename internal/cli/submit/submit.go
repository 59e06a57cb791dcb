// Package submit is gsubmit: it reads a job of any known format or of flags,
// tells all that is wrong with it at once, hands it to the controller, and then
// follows it if it was asked to. What the formats mean is the importer's.
package submit

import (
	"context"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exec"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/follow"
	"gbatch/internal/cli/secret"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
)

// flags are those of all commands that submit: what is done with the job.
type flags struct {
	Project        string `short:"A" help:"Project that is billed, instead of the file's."`
	Hold           bool   `short:"H" help:"Queue the job on hold."`
	Dependency     string `short:"d" xor:"dep" sep:"none" placeholder:"WHAT" help:"Wait for other jobs, instead of for what the file says: afterok:12:13,after:14+5 (all), afterok:12?afterany:13 (one of them), singleton."`
	DryRun         bool   `xor:"what" help:"Check everything, show the effective job and when it would start; submit nothing."`
	Convert        bool   `xor:"what,dep" help:"Print the job in the native format; submit nothing."`
	Wait           bool   `xor:"then" help:"Wait for the job's end and exit with its code (128+signal; 125 if it was not the program that failed)."`
	Follow         bool   `short:"f" xor:"then" help:"Like --wait, and show the job's state and then its log."`
	Interactive    bool   `short:"i" xor:"then" help:"Start at once or fail, and give the program your terminal. Enter ~ . leaves it; gexec --attach comes back."`
	IdempotencyKey string `placeholder:"KEY" help:"Submitting again with the same key gives the same job."`

	Secret []string `sep:"none" placeholder:"NAME[@FILE]" help:"Value of a secret: NAME takes it from the environment or asks, NAME@- reads standard input. May be repeated."`
}

// Submit is gsubmit and its flags.
type Submit struct {
	File   string `arg:"" optional:"" default:"-" help:"Job file of any known format; \"-\" or nothing reads standard input."`
	Format string `placeholder:"NAME" help:"The file's format, when it shall not be detected (gpulab-v2, ...)."`
	flags
	importer.Overrides // win over the file; with a command behind -- they are the whole job
}

// AfterDashes takes what stands behind --.
func (o *Submit) AfterDashes(args []string) { o.Command = args }

// Run submits a job file, or a command in an image.
func (o *Submit) Run(ctx context.Context, a *cli.App) error {
	return o.submit(ctx, a, &source{file: o.File, format: importer.Format(o.Format), overrides: o.Overrides})
}

// submit checks a job, hands it to the controller and does with it what the
// flags say.
func (o *flags) submit(ctx context.Context, a *cli.App, src *source) error {
	if err := o.check(src); err != nil {
		return err
	}
	src.warn(a)
	secrets, err := o.secrets(a, src)
	if err != nil {
		return err
	}
	name, doc, sub, err := src.read(a, secrets)
	if err != nil {
		return err
	}
	if o.Convert {
		return convert(a, sub)
	}
	if doc, err = withSecrets(doc, &sub, secrets); err != nil {
		return &exit.Error{Code: exit.Usage, Err: cli.FileError(name, err)}
	}
	req := &api.SubmitRequest{Job: doc, Project: o.Project, Hold: o.Hold, DryRun: o.DryRun, Interactive: o.Interactive, Dependency: o.Dependency}
	resp, err := a.Client.Submit(ctx, req, o.IdempotencyKey)
	if err != nil {
		return cli.FileError(name, err)
	}
	resp.Notes = mergeNotes(sub.Notes, resp.Notes)
	if o.DryRun {
		return printDryRun(a, resp)
	}
	if err := o.printSubmitted(a, resp, sub.Spec.Name); err != nil {
		return err
	}
	id := strconv.FormatUint(uint64(resp.Number), 10)
	a.Client.Retry = client.Retry{} // what follows has its own patience
	switch {
	case o.Interactive:
		return exec.Interactive(ctx, a, id)
	case o.Follow:
		return follow.Job(ctx, a, id)
	case o.Wait:
		return follow.Wait(ctx, a, id)
	}
	return nil
}

// secrets reads the values of secrets. Standard input may be the job's file, or its
// program's.
func (o *flags) secrets(a *cli.App, src *source) (map[string]string, error) {
	from := secret.Source{Env: a.Env, In: a.In, Ask: a.AskHidden()}
	if o.Interactive || src.file == "-" && len(src.overrides.Command) == 0 {
		from.In, from.Ask = nil, nil
	}
	return secret.Read(o.Secret, from)
}

func (o *flags) check(src *source) error {
	if err := src.exposed(); err != nil {
		return err
	}
	switch {
	case !o.Interactive:
		return nil
	case src.file == "-" && !o.DryRun && len(src.overrides.Command) == 0:
		return exit.Usagef("--interactive gives standard input to the job: name the job file")
	case o.Hold:
		return exit.Usagef("--interactive starts at once or fails: it cannot be combined with --hold")
	case o.Convert:
		return exit.Usagef("--interactive is not part of the document: write \"gbatch\": {\"terminal\": true} into it")
	}
	return nil
}

// withSecrets adds values to a submission and checks that none is missing. It
// gives the document to send.
func withSecrets(doc []byte, sub *job.Submission, values map[string]string) ([]byte, error) {
	sub.SetSecrets(values)
	if err := sub.Spec.CheckSecrets(sub.Secrets); err != nil || len(values) == 0 {
		return doc, err
	}
	return sub.Document()
}

// Package submit is gsubmit: it reads a job of any known format or of flags,
// tells all that is wrong with it at once, hands it to the controller, and then
// follows it if it was asked to. What the formats mean is the importer's.
package submit

import (
	"context"
	"encoding/json"
	"fmt"

	"gbatch/internal/cli"
	"gbatch/internal/cli/attach"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/follow"
	"gbatch/internal/cli/secret"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
)

// flags are those of all commands that submit: what is done with the job.
type flags struct {
	Project        string `short:"A" aliases:"account" help:"Project that is billed, instead of the file's."`
	Hold           bool   `short:"H" help:"Queue the job on hold."`
	Dependency     string `short:"d" xor:"dep" sep:"none" placeholder:"WHAT" help:"Wait for other jobs, instead of for what the file says: afterok:12:13,after:14+5 (all), afterok:12?afterany:13 (one of them), singleton."`
	DryRun         bool   `xor:"what" help:"Check everything, show the effective job and when it would start; submit nothing."`
	Convert        bool   `xor:"what,dep" help:"Print the job in the native format, several one in a line, for --ndjson; submit nothing."`
	Wait           bool   `short:"W" xor:"then" help:"Wait for the job's end and exit with its code (128+signal; 125 if it was not the program that failed)."`
	Follow         bool   `short:"f" xor:"then" help:"Like --wait, and show the job's state and then its log."`
	Interactive    bool   `short:"i" xor:"then" help:"Start at once or fail, and give the program your terminal. Enter ~ . leaves it; gexec --attach comes back."`
	IdempotencyKey string `placeholder:"KEY" help:"Submitting again with the same key gives the same job."`

	WorkdirUpload string   `placeholder:"DIR" help:"Bring a directory along: the job starts in a copy of its own, which it may write to (.gitignore, .dockerignore and .gbatchignore say what is left out)."`
	FilesFrom     []string `sep:"none" placeholder:"DIR" help:"Let the job's file also name what lies here and goes along (dstack's files and repos), beside what lies where the file does. May be repeated."`

	Secret []string `sep:"none" placeholder:"NAME[@FILE]" help:"Value of a secret: NAME takes it from the environment or asks, NAME@- reads standard input. May be repeated."`
}

// Submit is gsubmit and its flags.
type Submit struct {
	Files  []string `arg:"" optional:"" name:"file" help:"Job files of any known format; \"-\" or nothing reads standard input."`
	Format string   `placeholder:"NAME" help:"The files' format, when it shall not be detected (gpulab-v2, ...)."`
	With   []string `sep:"none" placeholder:"FILE" help:"A file beside a Kubernetes job, with its config maps and secrets. May be repeated."`
	Wrap   string   `placeholder:"COMMAND" help:"Submit a batch script of this shell command, as sbatch does."`
	Again  string   `placeholder:"JOB" help:"Submit what a job was submitted as once more, with the very directory that it brought along. Values of its secrets are not kept: give them again."`
	NDJSON bool     `name:"ndjson" model:"" help:"Each line of the files is a job of its own, as JSON of any known format. They are submitted as they are read, and a line that is refused keeps no other one out."`
	flags
	importer.Overrides // win over the file; with a command behind -- they are the whole job
	dashes             bool
}

// AfterDashes takes what stands behind --.
func (o *Submit) AfterDashes(args []string) { o.Command, o.dashes = args, true }

// Words takes arguments of which none is a flag.
func (o *Submit) Words(files []string) bool {
	o.Files = files
	return true
}

// Run submits job files, or a command in an image.
func (o *Submit) Run(ctx context.Context, a *cli.App) error {
	if o.Wrap != "" && len(o.Files)+len(o.Command) > 0 {
		return exit.Usagef("--wrap is the whole job: give it without a file and without a command behind --")
	}
	if o.Again != "" && (o.Wrap != "" || len(o.Files)+len(o.Command) > 0) {
		return exit.Usagef("--again is the whole job: give it without a file and without a command")
	}
	files := o.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	alone := len(o.Files) == 0 && o.Wrap == "" && o.Again == "" && (o.dashes || len(o.Command) > 0 || o.Image != "" && a.Term.In) // a person types no job file
	var all []*source
	for _, file := range files {
		all = append(all, &source{file: file, wrap: o.Wrap, again: o.Again, format: importer.Format(o.Format), with: o.With, overrides: o.Overrides, alone: alone})
	}
	if o.NDJSON {
		return o.submitLines(ctx, a, all)
	}
	return o.submit(ctx, a, all...)
}

// ready is a job that was checked here.
type ready struct {
	name string // of its file, for problems
	doc  json.RawMessage
	sub  job.Submission
}

// submit checks jobs, hands them to the controller and does with them what the
// flags say. None is submitted if one of them is not accepted here.
func (o *flags) submit(ctx context.Context, a *cli.App, all ...*source) error {
	if err := o.check(all); err != nil {
		return err
	}
	all[0].warn(a)
	secrets, err := o.secrets(a, all[0])
	if err != nil {
		return err
	}
	all = split(a, all)
	if err := o.check(all); err != nil { // a file may have several
		return err
	}
	var jobs []ready
	for _, src := range all {
		j, readErr := src.ready(ctx, a, secrets)
		if jobs = append(jobs, j); readErr != nil {
			err = both(err, readErr)
		}
	}
	switch {
	case err != nil && len(all) > 1:
		return both(err, fmt.Errorf("nothing was submitted of the %d jobs", len(all)))
	case err != nil:
		return err
	case o.Convert:
		for i := range jobs {
			if err := jobs[i].bring(ctx, a, o, all[i].file); err != nil {
				return err
			}
			if err := convert(a, jobs[i].sub, len(jobs) > 1); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range jobs {
		if err := jobs[i].complete(ctx, a, o, completing{all[i].file, secrets}); err != nil {
			return err
		}
	}
	numbers, err := o.send(ctx, a, jobs)
	return o.then(ctx, a, numbers, err)
}

// then does with jobs that were submitted what the flags say.
func (o *flags) then(ctx context.Context, a *cli.App, numbers []string, err error) error {
	a.Client.Retry = client.Retry{} // what follows has its own patience
	switch {
	case len(numbers) == 0:
	case o.Interactive:
		return attach.Interactive(ctx, a, numbers[0])
	case o.Follow:
		return follow.Job(ctx, a, numbers[0])
	case o.Wait:
		for _, id := range numbers {
			if end := follow.Wait(ctx, a, id); err == nil {
				err = end
			}
		}
	}
	return err
}

// both joins the problems of two files.
func both(a, b error) error {
	if a == nil {
		return b
	}
	return &exit.Error{Code: exit.Code(a), Err: fmt.Errorf("%w\n%w", a, b)}
}

// secrets reads the values of secrets. Standard input may be the job's file, or its
// program's.
func (o *flags) secrets(a *cli.App, src *source) (map[string]string, error) {
	from := secret.Source{Env: a.Env, In: a.In, Ask: a.AskHidden()}
	if o.Interactive || src.stdin() {
		from.In, from.Ask = nil, nil
	}
	return secret.Read(o.Secret, from)
}

func (o *flags) check(all []*source) error {
	src := all[0]
	if err := src.exposed(); err != nil {
		return err
	}
	switch {
	case len(all) > 1 && (o.Interactive || o.Follow):
		return exit.Usagef("--interactive and --follow are for one job: give one file (arguments of a script come behind --)")
	case len(all) > 1 && len(src.overrides.Command) > 0:
		return exit.Usagef("there are several files and arguments behind --: give one script")
	case !o.Interactive:
		return nil
	case src.stdin() && !o.DryRun:
		return exit.Usagef("--interactive gives standard input to the job: name the job file")
	case o.Hold:
		return exit.Usagef("--interactive starts at once or fails: it cannot be combined with --hold")
	case o.Convert:
		return exit.Usagef("--interactive is not part of the document: write \"gbatch\": {\"terminal\": true} into it")
	}
	return nil
}

// completing is what a job is completed with.
type completing struct {
	file    string
	secrets map[string]string
}

// complete adds the values of secrets and what the job brings along.
func (j *ready) complete(ctx context.Context, a *cli.App, o *flags, with completing) error {
	if err := j.addSecrets(with.secrets); err != nil {
		return err
	}
	return j.bring(ctx, a, o, with.file)
}

// addSecrets adds the values of secrets and checks that none is missing.
func (j *ready) addSecrets(values map[string]string) (err error) {
	j.sub.SetSecrets(values)
	if err = j.sub.Spec.CheckSecrets(j.sub.Secrets); err == nil && len(values) > 0 {
		j.doc, err = j.sub.Document()
	}
	if err != nil {
		return &exit.Error{Code: exit.Usage, Err: cli.FileError(j.name, err)}
	}
	return nil
}

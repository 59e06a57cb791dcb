package submit

import (
	"context"
	"errors"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job/importer/nvct"
)

// NVCT is gsubmit nvct create: it has the flags of nvcf-cli task create. Those that take several
// values repeat, so that a value may have commas in it.
type NVCT struct {
	InputFile string `placeholder:"FILE" help:"A task.json; \"-\" is standard input."`
	nvct.Flags
	Secrets       []string `sep:"none" placeholder:"NAME[@FILE]" help:"As --secret."`
	ContainerArgs words    `placeholder:"ARGS" help:"Arguments of the image's entrypoint, split as a shell does it."`
	flags
}

// Run submits a task of NVIDIA Cloud Tasks.
func (c *NVCT) Run(ctx context.Context, a *cli.App) error {
	c.Secret = append(c.Secret, c.Secrets...)
	c.Flags.ContainerArgs = string(c.ContainerArgs)
	return c.submit(ctx, a, &source{file: c.InputFile, nvct: &c.Flags})
}

// words is a text that may begin with a dash, as "--epochs 10".
type words string

// Decode takes the next argument whatever it looks like.
func (w *words) Decode(ctx *kong.DecodeContext) error {
	text, ok := ctx.Scan.Pop().Value.(string)
	if !ok {
		return errors.New("expected a text")
	}
	*w = words(text)
	return nil
}

// readNVCT is ready for a task that flags describe, with or without a file.
func (s *source) readNVCT(a *cli.App) (j ready, err error) {
	j.name = "gsubmit"
	var data []byte
	if s.file != "" {
		if j.name, data, err = readJobFile(a, s.file); err != nil {
			return j, err
		}
		if len(data) == 0 {
			return j, exit.Usagef("%s is empty", j.name)
		}
	}
	if j.sub, err = nvct.ParseFlags(data, *s.nvct); err == nil {
		j.doc, err = j.sub.Document()
	}
	return j, usage(j.name, err)
}

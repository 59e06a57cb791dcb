package submit

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/nvct"
)

// NVCT is gsubmit nvct create: it has the flags of nvcf-cli task create. Those that take several
// values repeat, so that a value may have commas in it.
type NVCT struct {
	InputFile string `placeholder:"FILE" help:"A task.json; \"-\" is standard input."`

	Name             string   `help:"The task's name."`
	Description      string   `help:"What it is for."`
	Gpu              string   `placeholder:"NAME" help:"GPU, as H100."`
	InstanceType     string   `placeholder:"TYPE" help:"One of the site's instance types, as GPU.H100_1x."`
	Backend          string   `help:"Only nodes with the feature backend=BACKEND."`
	Clusters         []string `sep:"none" placeholder:"NAME" help:"Only nodes with a feature cluster=NAME. May be repeated, as those below."`
	Image            string   `help:"Container image."`
	ContainerArgs    words    `placeholder:"ARGS" help:"Arguments of the image's entrypoint, split as a shell does it."`
	ContainerEnv     []string `sep:"none" placeholder:"KEY=VALUE" help:"Variables, instead of the file's."`
	HelmChart        string   `hidden:""`
	MaxRuntime       string   `placeholder:"PT4H" help:"Time limit, ISO 8601."`
	MaxQueued        string   `placeholder:"PT72H" help:"Fail after that long in the queue."`
	TerminationGrace string   `placeholder:"PT1H" help:"Time to end when told to."`
	ResultStrategy   string   `placeholder:"NONE|UPLOAD" help:"What becomes of /var/task/results."`
	ResultsLocation  string   `placeholder:"URI" help:"Where to: s3://BUCKET/PREFIX/ or file:///PATH in the site's storage."`
	Models           []string `sep:"none" placeholder:"NAME:VERSION:URI" help:"Put into /config/models/NAME."`
	Resources        []string `sep:"none" placeholder:"NAME:VERSION:URI" help:"Put into /config/resources/NAME."`
	Secrets          []string `sep:"none" placeholder:"NAME[@FILE]" help:"As --secret."`
	Tags             []string `sep:"none" placeholder:"TAG" help:"Labels, instead of the file's."`

	LogsTelemetryId    string `hidden:""`
	MetricsTelemetryId string `hidden:""`
	TracesTelemetryId  string `hidden:""`

	Flags
}

// Run submits a task of NVIDIA Cloud Tasks.
func (c *NVCT) Run(ctx context.Context, a *cli.App) error {
	c.Secret = append(c.Secret, c.Secrets...)
	return c.submit(ctx, a, &source{file: c.InputFile, nvct: &nvct.Flags{
		Name: c.Name, Description: c.Description,
		GPU: c.Gpu, InstanceType: c.InstanceType, Backend: c.Backend, Clusters: c.Clusters,
		Image: c.Image, ContainerArgs: string(c.ContainerArgs), ContainerEnv: c.ContainerEnv, HelmChart: c.HelmChart,
		MaxRuntime: c.MaxRuntime, MaxQueued: c.MaxQueued, TerminationGrace: c.TerminationGrace,
		ResultStrategy: c.ResultStrategy, ResultsLocation: c.ResultsLocation,
		Models: c.Models, Resources: c.Resources, Tags: c.Tags,
		LogsTelemetryID: c.LogsTelemetryId, MetricsTelemetryID: c.MetricsTelemetryId, TracesTelemetryID: c.TracesTelemetryId,
	}})
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

// readNVCT is read for a task that flags describe, with or without a file.
func (s *source) readNVCT(a *cli.App) (name string, doc json.RawMessage, sub job.Submission, err error) {
	name = "gsubmit"
	var data []byte
	if s.file != "" {
		if name, data, err = readJobFile(a, s.file); err != nil {
			return name, nil, sub, err
		}
		if len(data) == 0 {
			return name, nil, sub, exit.Usagef("%s is empty", name)
		}
	}
	if sub, err = nvct.ParseFlags(data, *s.nvct); err == nil {
		doc, err = sub.Document()
	}
	if err != nil {
		return name, nil, sub, &exit.Error{Code: exit.Usage, Err: cli.FileError(name, err)}
	}
	return name, doc, sub, nil
}

// Package hostiletest holds job files that attack whoever reads or runs them,
// each with what must come of it: a refusal by the reader, a refusal by the
// controller, or a job whose meaning is harmless and stated. The tests of the
// importers, of the controller and of the whole use the same files.
package hostiletest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/slurm"
	"gbatch/internal/job/words"
)

//go:embed corpus/*.txt
var corpus embed.FS

// Case is one attack.
type Case struct {
	Name   string // FILE/NAME
	Attack string // what it is after
	Line   []string
	Text   []byte // of the job file; with Line, of the script that sbatch is given
	Want   Outcome
}

// Outcome is what must come of a case. All empty: it is taken, and Facts hold.
type Outcome struct {
	Refused    string   // what the reader says
	Controller string   // what the controller says of a job that the reader takes
	Facts      []string // PATH VALUE of the native document, the value as JSON or "absent"
}

// now is when the corpus is submitted.
const now job.Instant = 1772443800000 // 2026-03-02 10:30 CET

// Read reads a case as gsubmit, or with a command line as sbatch, does. The
// author's environment has one variable, whose value no message may show.
func (c Case) Read() (job.Submission, error) {
	env := func(name string) (string, bool) { return Private, name == "PRIVATE" }
	zone := time.FixedZone("CET", 3600)
	if c.Line == nil {
		return importer.Parse(c.Text, importer.Options{Env: env, Now: now, Zone: zone})
	}
	split := slurm.Split(c.Line, nil, nil)
	return slurm.Parse(c.Text, slurm.Options{Line: split.Options, Args: split.Args, DefaultImage: "a", Env: env, Now: now, Zone: zone})
}

// Private is the value of the variable PRIVATE, and the password in the corpus.
const Private = "hunter2-of-the-author"

// Cases reads the corpus.
func Cases(t testing.TB) []Case {
	t.Helper()
	files, err := corpus.ReadDir("corpus")
	if err != nil {
		t.Fatal(err)
	}
	var all []Case
	for _, f := range files {
		text, err := corpus.ReadFile("corpus/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for section := range strings.SplitSeq("\n"+string(text), "\n=== ") {
			if section = strings.TrimLeft(section, "\n"); section == "" {
				continue
			}
			c, err := parse(section)
			if err != nil {
				t.Fatalf("%s: %v", f.Name(), err)
			}
			c.Name = strings.TrimSuffix(f.Name(), path.Ext(f.Name())) + "/" + c.Name
			all = append(all, c)
		}
	}
	return all
}

// parse reads
//
//	NAME
//	# WHAT IT IS AFTER
//	the file, a template
//	--- refused | controller | accepted
//	what is said, or facts
//
// A first line of the file that begins with "$ sbatch" is a command line.
func parse(section string) (c Case, err error) {
	head, rest, _ := strings.Cut(section, "\n")
	c.Name = head
	attack, rest, _ := strings.Cut(rest, "\n")
	if c.Attack = strings.TrimPrefix(attack, "# "); c.Attack == attack {
		return c, fmt.Errorf("%s: does not say what it is after", head)
	}
	text, want, ok := strings.Cut("\n"+rest, "\n--- ")
	if !ok {
		return c, fmt.Errorf("%s: does not say what must come of it", head)
	}
	outcome, said, _ := strings.Cut(want, "\n")
	said = strings.TrimRight(said, "\n")
	switch outcome {
	case "refused":
		c.Want.Refused = said
	case "controller":
		c.Want.Controller = said
	case "accepted":
		c.Want.Facts = strings.Split(said, "\n")
	default:
		return c, fmt.Errorf("%s: unknown outcome %q", head, outcome)
	}
	if text, err = expand(strings.TrimPrefix(text, "\n")); err != nil {
		return c, fmt.Errorf("%s: %w", head, err)
	}
	if line, script, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(line, "$ sbatch ") {
		if c.Line, err = words.Split(strings.TrimPrefix(line, "$ sbatch ")); err != nil {
			return c, fmt.Errorf("%s: %w", head, err)
		}
		text = script
	}
	c.Text = []byte(text)
	return c, nil
}

// expand executes the template that a file is. What would be long or is alike
// in many files stands in double brackets ⟦ ⟧.
func expand(text string) (string, error) {
	within := func(form string) func(string) string {
		return func(s string) string { return strings.Replace(form, "@", s, 1) }
	}
	t, err := template.New("").Delims("⟦", "⟧").Funcs(template.FuncMap{
		"repeat": func(n int, s string) string { return strings.Repeat(s, n) },
		"each": func(n int, form string) string { // with its number
			var b bytes.Buffer
			for i := range n {
				b.WriteString(strings.ReplaceAll(form, "%", fmt.Sprint(i)))
			}
			return b.String()
		},
		"v2":         within(`{"name":"x","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"a"}},@}`),
		"docker":     within(`{"name":"x","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"a",@}}}`),
		"image":      within(`{"name":"x","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":@}}}`),
		"resources":  within(`{"name":"x","request":{"resources":{@},"docker":{"image":"a"}}}`),
		"scheduling": within(`{"name":"x","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"a"},"scheduling":{@}}}`),
		"gbatch":     within(`{"name":"x","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"a"}},"gbatch":{@}}`),
		"v1":         within(`{"jobDefinition":{"name":"x","dockerImage":"a",@}}`),
		"nvct":       within(`{"name":"x","gpuSpecification":{"gpu":"H100","instanceType":"H100_1x"},"containerImage":"a",@}`),
		"ccluster":   within(`{"name":"x","image_url":"a","hardware_instance_id":"small",@}`),
		"tao":        within(`{"backend_type":"local-docker","image":"a","command":"true",@}`),
		"pod":        within(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"},"spec":{"template":{"spec":{"containers":[{"image":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}],@}}}}`),
		"container":  within(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"},"spec":{"template":{"spec":{"containers":[{"image":"a",@}]}}}}`),
		"k8s":        within(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"},"spec":{"template":{"spec":{"containers":[{"image":"a"}]}},@}}`),
		"dstack":     within("type: task\nimage: a\n@\n"),
		"sbatch":     within("#!/bin/sh\n#SBATCH --container-image=a\n#SBATCH @\ntrue\n"),
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, nil)
	return b.String(), err
}

// At is what stands at a path of a document, as gbatch.outputs[0].uri: JSON, or
// "absent".
func At(t testing.TB, doc []byte, path string) string {
	t.Helper()
	var at any
	if err := json.Unmarshal(doc, &at); err != nil {
		t.Fatal(err)
	}
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch x := at.(type) {
		case map[string]any:
			at = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(x) {
				return "absent"
			}
			at = x[i]
		default:
			return "absent"
		}
	}
	if at == nil {
		return "absent"
	}
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

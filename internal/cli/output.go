package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// Schema is the version of all JSON output. It grows when a field changes its
// meaning or goes; fields are added without.
const Schema = 1

// Output is the form that the user chose. A command embeds those of JSONFlag,
// IDsFlag and ISOFlag that it has a use for.
type Output struct {
	JSON, IDs bool
	YAML      bool // the same as JSON, in that form
	ISO       bool // times as timestamps
}

// JSONFlag is the flag of commands that can print JSON.
type JSONFlag struct {
	JSON bool `name:"json" group:"output" xor:"form" help:"Print JSON with a \"schema\" number, for programs."`
	YAML bool `name:"yaml" group:"output" xor:"form" help:"Print the same as YAML."`
}

// IDsFlag is the flag of commands whose result is jobs.
type IDsFlag struct {
	IDs bool `name:"ids" group:"output" xor:"form" help:"Print the job numbers alone, one per line, for pipes."`
}

// ISOFlag is the flag of commands that print times.
type ISOFlag struct {
	ISO bool `name:"iso" group:"output" help:"Print times as 2026-03-01T09:00:00 instead of \"5m ago\"."`
}

func (f *JSONFlag) setJSON(o *Output) { o.JSON, o.YAML = f.JSON || f.YAML, f.YAML }
func (f *IDsFlag) setIDs(o *Output)   { o.IDs = f.IDs }
func (f *ISOFlag) setISO(o *Output)   { o.ISO = f.ISO }

// outputOf collects the output flags that a command has.
func outputOf(cmd any) (o Output) {
	if f, ok := cmd.(interface{ setJSON(*Output) }); ok {
		f.setJSON(&o)
	}
	if f, ok := cmd.(interface{ setIDs(*Output) }); ok {
		f.setIDs(&o)
	}
	if f, ok := cmd.(interface{ setISO(*Output) }); ok {
		f.setISO(&o)
	}
	return o
}

// WriteJSON writes v, a struct, with the schema's number as its first member.
func (a *App) WriteJSON(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	after := ","
	if string(data) == "{}" {
		after = "\n"
	}
	head, rest := fmt.Sprintf("{\n  \"schema\": %d%s", Schema, after), EscapeJSON(string(data[1:]))
	if a.Output.YAML {
		return a.writeYAML(head+rest, "")
	}
	for _, text := range []string{head, rest, "\n"} { // one after the other: lists are long
		if _, err := io.WriteString(a.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// writeYAML writes a JSON text, which is YAML, as people write that.
func (a *App) writeYAML(text, before string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	plainYAML(&doc)
	var b bytes.Buffer
	b.WriteString(before)
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err := a.Out.Write(b.Bytes())
	return err
}

// plainYAML takes away that the nodes were written as JSON. What needs quotes
// keeps them.
func plainYAML(n *yaml.Node) {
	if len(n.Content) > 0 {
		n.Style = 0
	} else if n.Kind == yaml.ScalarNode {
		n.Style &^= yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		plainYAML(c)
	}
}

// Answered says that nothing is left to be done with an answer of the
// controller: it is an error, or it was written as JSON.
func (a *App) Answered(v any, err error) (done bool, _ error) {
	if err == nil && a.Output.JSON {
		return true, a.WriteJSON(v)
	}
	return err != nil, err
}

// WriteLine writes v as JSON on one line. It has the schema's number itself.
func (a *App) WriteLine(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	text := EscapeJSON(string(data)) + "\n"
	if a.Output.YAML {
		return a.writeYAML(text, "---\n")
	}
	_, err = io.WriteString(a.Out, text)
	return err
}

// EscapeJSON writes the control characters that JSON allows in strings but
// terminals act on (DEL and U+0080 to U+009F) as \u00XX. They occur nowhere
// else in a JSON text.
func EscapeJSON(s string) string {
	if strings.IndexByte(s, 0x7f) < 0 && strings.IndexByte(s, 0xc2) < 0 { // by which all of them begin; lists are long
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isHighControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isHighControl(r rune) bool { return r >= 0x7f && r <= 0x9f }

// FileError puts the file's name in front of each problem of a job.
func FileError(name string, err error) error {
	var lines []string
	if ps, ok := errors.AsType[job.Problems](err); ok {
		for _, p := range ps {
			lines = append(lines, p.String())
		}
	} else if e, ok := errors.AsType[*api.Error](err); ok && e.Code == api.CodeInvalidJob {
		for _, p := range e.Problems {
			lines = append(lines, job.Problem{Path: p.Path, Message: p.Message, Hint: p.Hint}.String())
		}
	}
	if len(lines) == 0 {
		return err
	}
	return &problems{text: name + ": " + strings.Join(lines, "\n"+name+": "), err: err}
}

// problems lists problems, one per line, each ready to print.
type problems struct {
	text string
	err  error
}

func (e *problems) Error() string { return e.text }
func (e *problems) Unwrap() error { return e.err }

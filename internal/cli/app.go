package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"gbatch/internal/client"
)

// Schema is the version of all JSON output. It grows when a field changes its
// meaning or goes; fields are added without.
const Schema = 1

// App is one run of a command.
type App struct {
	Out, Err io.Writer
	In       io.Reader
	Client   *client.Client
	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error
	Term     Terminal
	Measure  func() Terminal // again, for what goes on: a window may change its size; nil: never
	Output   Output
}

// Terminal says what the standard streams are.
type Terminal struct {
	In, Out, Err bool // a person is there
	Width        int  // columns of Out; 0: not limited
	Height       int  // lines of Out; 0: not limited
	Color        bool // Out takes colours
}

// Output is the form that the user chose. A command embeds those of JSONFlag,
// IDsFlag and ISOFlag that it has a use for.
type Output struct {
	JSON, IDs bool
	ISO       bool // times as timestamps
}

// JSONFlag is the flag of commands that can print JSON.
type JSONFlag struct {
	JSON bool `name:"json" group:"output" xor:"form" help:"Print JSON with a \"schema\" number, for programs."`
}

// IDsFlag is the flag of commands whose result is jobs.
type IDsFlag struct {
	IDs bool `name:"ids" group:"output" xor:"form" help:"Print the job numbers alone, one per line, for pipes."`
}

// ISOFlag is the flag of commands that print times.
type ISOFlag struct {
	ISO bool `name:"iso" group:"output" help:"Print times as 2026-03-01T09:00:00 instead of \"5m ago\"."`
}

func (f *JSONFlag) setJSON(o *Output) { o.JSON = f.JSON }
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

// DetectTerminal looks at the process's standard streams and at NO_COLOR.
func DetectTerminal() Terminal {
	t := Terminal{
		In:  term.IsTerminal(int(os.Stdin.Fd())),
		Out: term.IsTerminal(int(os.Stdout.Fd())),
		Err: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if t.Out {
		if width, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			t.Width, t.Height = max(width, 0), max(height, 0)
		}
		t.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return t
}

// writeJSON writes v, a struct, with the schema's number as its first member.
func (a *App) writeJSON(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	head := fmt.Sprintf("{\n  \"schema\": %d", Schema)
	if rest := data[1:]; string(rest) != "}" {
		head += ","
	} else {
		head += "\n"
	}
	w := bufio.NewWriter(a.Out)
	w.WriteString(head)
	w.WriteString(escapeJSON(string(data[1:])))
	w.WriteByte('\n')
	return w.Flush()
}

// escapeJSON writes the control characters that JSON allows in strings but
// terminals act on (DEL and U+0080 to U+009F) as \u00XX. They occur nowhere
// else in a JSON text.
func escapeJSON(s string) string {
	if !strings.ContainsFunc(s, isHighControl) {
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

// say writes one line for the user to Err. The text may come from anywhere.
func (a *App) say(format string, args ...any) {
	fmt.Fprintln(a.Err, cleanLines(fmt.Sprintf(format, args...)))
}

// ask puts a question to the user at the terminal; anything but yes is no.
func (a *App) ask(question string) (bool, error) {
	fmt.Fprint(a.Err, clean(question)+" [y/N] ")
	line, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// Package records prints lists as sacct, sacctmgr, sshare and sstat do: in columns of a
// width, or for programs between bars. What the fields say is their command's.
package records

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/table"
)

// Field is a field of the lists that sacct, sacctmgr, sshare and sstat
// print: with a width, or for programs between bars.
type Field[T any] struct {
	Name  string
	Title string // where it is another
	Width int    // negative: aligned to the left
	Cell  func(v *table.View, x *T) string
}

// List is how such a list is printed.
type List[T any] struct {
	All    []Field[T]
	Format string // names with commas between; NAME%WIDTH has another width
	Bar    string // between the fields of programs

	NoHeader       bool
	barAtEnd, bars bool
}

// Options are those of the commands that say how.
func (k *List[T]) Options() []getopt.Option {
	return []getopt.Option{
		getopt.Bool(&k.NoHeader, "-n", "--noheader"), getopt.Bool(&k.barAtEnd, "-p", "--parsable"), getopt.Bool(&k.bars, "-P", "--parsable2"),
		getopt.String(&k.Bar, "--delimiter"), getopt.String(&k.Format, "-o", "--format", "--fields"),
	}
}

// Chosen are the fields that the format names.
func (k *List[T]) Chosen() (fields []Field[T], err error) {
	for w := range strings.SplitSeq(k.Format, ",") {
		name, width, given := strings.Cut(strings.TrimSpace(w), "%")
		if name == "" {
			continue
		}
		if strings.EqualFold(name, "all") {
			fields = append(fields, k.All...)
			continue
		}
		i := slices.IndexFunc(k.All, func(f Field[T]) bool {
			return strings.EqualFold(f.Name, name) || strings.EqualFold(f.Title, name)
		})
		if i < 0 { // the beginning of a name is enough
			i = slices.IndexFunc(k.All, func(f Field[T]) bool { return strings.HasPrefix(strings.ToLower(f.Name), strings.ToLower(name)) })
		}
		if i < 0 {
			return nil, exit.Usagef("Invalid field requested: %q; there are %s", name, strings.Join(k.names(), ", "))
		}
		f := k.All[i]
		if given {
			if f.Width, err = strconv.Atoi(width); err != nil || f.Width == 0 || f.Width > table.MaxWidth || f.Width < -table.MaxWidth {
				return nil, exit.Usagef("field %q: want a width between 1 and %d", w, table.MaxWidth)
			}
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func (k *List[T]) names() []string {
	var out []string
	for _, f := range k.All {
		out = append(out, f.Name)
	}
	return out
}

// PrintNames prints the names of all fields, as sacct -e does.
func (k *List[T]) PrintNames(w io.Writer) {
	for four := range slices.Chunk(k.names(), 4) {
		for _, name := range four {
			fmt.Fprintf(w, "%-19s ", name)
		}
		fmt.Fprintln(w)
	}
}

// Write prints rows.
func (k *List[T]) Write(w io.Writer, v *table.View, rows []T) error {
	fields, err := k.Chosen()
	if err != nil {
		return err
	}
	var out strings.Builder
	line := func(cell func(f *Field[T]) string) {
		for i := range fields {
			text := human.Clean(cell(&fields[i]))
			switch {
			case !k.bars && !k.barAtEnd:
				fmt.Fprintf(&out, "%*s ", fields[i].Width, cutTo(text, max(fields[i].Width, -fields[i].Width)))
			case k.barAtEnd || i < len(fields)-1:
				out.WriteString(text + k.Bar)
			default:
				out.WriteString(text)
			}
		}
		out.WriteByte('\n')
	}
	if !k.NoHeader {
		line(func(f *Field[T]) string { return cmp.Or(f.Title, f.Name) })
		if !k.bars && !k.barAtEnd {
			line(func(f *Field[T]) string { return strings.Repeat("-", max(f.Width, -f.Width)) })
		}
	}
	for i := range rows {
		line(func(f *Field[T]) string { return f.Cell(v, &rows[i]) })
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// cutTo cuts a text to a width, with a + where something is missing.
func cutTo(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "+"
	}
	return text
}

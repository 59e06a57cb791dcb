package slurm

import (
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

// recordField is a field of the lists that sacct, sacctmgr, sshare and sstat
// print: with a width, or for programs between bars.
type recordField[T any] struct {
	name  string
	title string // where it is another
	width int    // negative: aligned to the left
	cell  func(v *table.View, x *T) string
}

// records is how such a list is printed.
type records[T any] struct {
	all    []recordField[T]
	format string // names with commas between; NAME%WIDTH has another width
	bar    string // between the fields of programs

	noHeader, barAtEnd, bars bool
}

func (k *records[T]) options() []getopt.Option {
	return []getopt.Option{
		getopt.Bool(&k.noHeader, "-n", "--noheader"), getopt.Bool(&k.barAtEnd, "-p", "--parsable"), getopt.Bool(&k.bars, "-P", "--parsable2"),
		getopt.String(&k.bar, "--delimiter"), getopt.String(&k.format, "-o", "--format"),
	}
}

// chosen are the fields that the format names.
func (k *records[T]) chosen() (fields []recordField[T], err error) {
	for w := range strings.SplitSeq(k.format, ",") {
		name, width, given := strings.Cut(strings.TrimSpace(w), "%")
		if name == "" {
			continue
		}
		if strings.EqualFold(name, "all") {
			fields = append(fields, k.all...)
			continue
		}
		i := slices.IndexFunc(k.all, func(f recordField[T]) bool {
			return strings.EqualFold(f.name, name) || strings.EqualFold(f.title, name)
		})
		if i < 0 { // the beginning of a name is enough
			i = slices.IndexFunc(k.all, func(f recordField[T]) bool { return strings.HasPrefix(strings.ToLower(f.name), strings.ToLower(name)) })
		}
		if i < 0 {
			return nil, exit.Usagef("Invalid field requested: %q; there are %s", name, strings.Join(k.names(), ", "))
		}
		f := k.all[i]
		if given {
			if f.width, err = strconv.Atoi(width); err != nil || f.width == 0 || f.width > table.MaxWidth || f.width < -table.MaxWidth {
				return nil, exit.Usagef("field %q: want a width between 1 and %d", w, table.MaxWidth)
			}
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func (k *records[T]) names() []string {
	var out []string
	for _, f := range k.all {
		out = append(out, f.name)
	}
	return out
}

// list prints the names of all fields, as sacct -e does.
func (k *records[T]) list(w io.Writer) {
	for four := range slices.Chunk(k.names(), 4) {
		for _, name := range four {
			fmt.Fprintf(w, "%-19s ", name)
		}
		fmt.Fprintln(w)
	}
}

// write prints rows.
func (k *records[T]) write(w io.Writer, v *table.View, rows []T) error {
	fields, err := k.chosen()
	if err != nil {
		return err
	}
	var out strings.Builder
	line := func(cell func(f *recordField[T]) string) {
		for i := range fields {
			text := human.Clean(cell(&fields[i]))
			switch {
			case !k.bars && !k.barAtEnd:
				fmt.Fprintf(&out, "%*s ", fields[i].width, cutTo(text, max(fields[i].width, -fields[i].width)))
			case k.barAtEnd || i < len(fields)-1:
				out.WriteString(text + k.bar)
			default:
				out.WriteString(text)
			}
		}
		out.WriteByte('\n')
	}
	if !k.noHeader {
		line(func(f *recordField[T]) string { return pick(f.title == "", f.name, f.title) })
		if !k.bars && !k.barAtEnd {
			line(func(f *recordField[T]) string { return strings.Repeat("-", max(f.width, -f.width)) })
		}
	}
	for i := range rows {
		line(func(f *recordField[T]) string { return f.cell(v, &rows[i]) })
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

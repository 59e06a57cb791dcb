package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxEntries bounds what is looked at in a directory and those below it to find
// its files.
const maxEntries = 10 * maxObjects

// Walk lists the plain files whose names match a pattern, in the order of their
// names. Links, pipes and devices are not among them.
func (d Dir) Walk(ctx context.Context, pattern string) ([]string, error) {
	w := &walk{dir: d, pattern: pattern, mostFiles: maxObjects, mostEntries: maxEntries}
	err := w.into(ctx, ".")
	return w.files, err
}

type walk struct {
	dir     Dir
	pattern string
	files   []string
	seen    int

	mostFiles, mostEntries int
}

func (w *walk) into(ctx context.Context, dir string) error {
	entries, err := w.entries(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if len(name) > maxName {
			return fail(Invalid, "file %.100q has a name that is longer than %d characters", name, maxName)
		}
		switch {
		case e.IsDir():
			if err := w.into(ctx, name); err != nil {
				return err
			}
		case e.Type().IsRegular() && (w.pattern == "" || match(w.pattern, name)):
			if len(w.files) >= w.mostFiles {
				return fail(TooLarge, "has more than %d files", w.mostFiles)
			}
			w.files = append(w.files, name)
		}
	}
	return nil
}

// entries reads one directory in the order of names.
func (w *walk) entries(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	before := w.seen
	err := w.dir.reach(dir, func() error {
		all, w.seen = nil, before
		f, err := w.dir.Root.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			some, err := f.ReadDir(1000)
			all, w.seen = append(all, some...), w.seen+len(some)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			case w.seen > w.mostEntries:
				return fail(TooLarge, "has more than %d files and directories", w.mostEntries)
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, known := errors.AsType[*Error](err); err != nil && !known {
		err = fileError(dir, err)
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

// match says whether a name fits a pattern: part by part as path.Match does,
// and a part ** stands for any number of directories. A pattern of one part
// fits the name's last.
func match(pattern, name string) bool {
	if !strings.Contains(pattern, "/") && pattern != "**" {
		name = path.Base(name)
	}
	return matchParts(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

// matchParts takes time in the product of both lengths: row[j] says whether the
// pattern so far fits the first j parts of the name.
func matchParts(pattern, name []string) bool {
	row := make([]bool, len(name)+1)
	row[0] = true
	for _, p := range pattern {
		next := make([]bool, len(name)+1)
		if p == "**" {
			seen := false
			for j := range row {
				seen = seen || row[j]
				next[j] = seen
			}
		} else {
			for j, part := range name {
				if row[j] {
					next[j+1], _ = path.Match(p, part)
				}
			}
		}
		row = next
	}
	return row[len(name)]
}

package cli

import (
	"io"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli/manpage"
)

// writeMan prints a command's man page.
func writeMan(w io.Writer, p Program, m *kong.Application) error {
	page := manpage.Program{
		Name: p.Name, Section: 1, Version: Version, About: p.About, Examples: p.Examples, Codes: p.codes(),
		Environ: []manpage.Item{
			{Name: "GBATCH_CONTROLLER", Text: "The controller's address."},
			{Name: "GBATCH_TOKEN, GBATCH_TOKEN_FILE", Text: "Your token, or the file that holds it."},
			{Name: "GBATCH_AUTH", Text: "token or munge."},
			{Name: "NO_COLOR", Text: "No colours on a terminal."},
		},
		Files: []manpage.Item{{Name: "/etc/gbatch/client.yaml, ~/.config/gbatch/client.yaml", Text: "Where the controller is."}},
	}
	for _, c := range Suite {
		if c != p.Name {
			page.SeeAlso = append(page.SeeAlso, c+"(1)")
		}
	}
	page.SeeAlso = append(page.SeeAlso, "gbatch-job(5)", "client.yaml(5)")
	return manpage.Write(w, page, m)
}

package main

import (
	"gbatch/internal/cli/manpage"
	"gbatch/internal/ctld"
)

const about = "The controller of gbatch."

// page is what the man page says beside the commands.
var page = manpage.Program{
	Name: "gctld", Section: 8, Version: ctld.Version, About: about,
	Examples: []string{
		"gctld init --listen 0.0.0.0:7077           # write the configuration, make the keys",
		"gctld check-config /etc/gbatch/gctld.yaml  # what is wrong with it, all at once",
		"gctld backup /var/backups/gbatch.tar       # of the controller that runs here",
		"gctld dev                                  # a controller and a node, to try things out",
	},
	Codes: "0 done, or stopped as it was told; 1 failed, with the reason on standard error and in the log.\n" +
		"HUP has it read the rules again, TERM and INT stop it. It may be killed at any moment.",
	Files: []manpage.Item{
		{Name: "/etc/gbatch/gctld.yaml", Text: "The configuration."},
		{Name: "/var/lib/gbatch/ctld", Text: "The store, keys and certificates."},
		{Name: "/run/gbatch/gctld.sock", Text: "Where the commands on this machine reach it."},
	},
	SeeAlso: []string{"gctld.yaml(5)", "gnoded(8)", "gadm(1)"},
}

package main

import (
	"gbatch/internal/cli/manpage"
	"gbatch/internal/noded"
)

const about = "The node daemon of gbatch."

// page is what the man page says beside the commands.
var page = manpage.Program{
	Name: "gnoded", Section: 8, Version: noded.Version, About: about,
	Examples: []string{
		"gnoded join 'https://head.example.org:7077#sha256=...' --token-file join.token",
		"gnoded check                                # what this machine lacks to be a node",
		"gnoded check-config /etc/gbatch/gnoded.yaml # what is wrong with it, all at once",
	},
	Codes: "0 done, or stopped as it was told; 1 failed, with the reason on standard error and in the log.\n" +
		"TERM and INT stop it; containers go on, and the next one takes them over. Signal this process\n" +
		"alone, never its group.",
	Files: []manpage.Item{
		{Name: "/etc/gbatch/gnoded.yaml", Text: "The configuration."},
		{Name: "/var/lib/gnoded", Text: "Images, logs, what containers write, the node's key."},
		{Name: "/run/gbatch", Text: "Locks, and when the controller was last heard: it must stay while containers run."},
	},
	SeeAlso: []string{"gnoded.yaml(5)", "gctld(8)", "gadm(1)"},
}

package adm

import (
	"fmt"
	"strings"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
)

// completionScripts make a shell ask the commands. The list of commands goes
// in where they have %s.
var completionScripts = map[string]string{
	"bash": `_gbatch() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _gbatch %s
`,
	"zsh": `#compdef %[1]s
_gbatch() {
    local -a found
    local line
    for line in "${(@f)$("${words[1]}" --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && found+=("${${line%%%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#found )); then _describe value found; else _files; fi
}
compdef _gbatch %[1]s
`,
	"fish": `function __gbatch
    set -l words (commandline -opc) (commandline -ct)
    $words[1] --complete $words[2..-1] 2>/dev/null
end
for c in %s
    complete -c $c -a '(__gbatch)'
end
`,
}

// Completion is gadm completion.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints what makes a shell complete the words of all commands.
func (o *Completion) Run(a *cli.App) error {
	script, ok := completionScripts[o.Shell]
	if !ok {
		return exit.Usagef("shell %q is not known: use bash, zsh or fish", o.Shell)
	}
	_, err := fmt.Fprintf(a.Out, script, strings.Join(cli.Suite, " "))
	return err
}

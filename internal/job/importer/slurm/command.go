package slurm

import "strings"

// Command is the command line of sbatch, taken apart.
type Command struct {
	Own     map[string]string // options of sbatch itself that were given
	Options []string          // those about the job
	Script  string            // empty: none was named
	Args    []string          // of the script
}

// Split takes apart the arguments of sbatch. Own has the options that are
// the caller's, with whether they have a value, as "--wrap": true; those of one
// letter that mean the same are named in short.
func Split(args []string, own map[string]bool, short map[string]string) Command {
	c, known := Command{Own: map[string]string{}}, allOptions()
	for i := 0; i < len(args); i++ {
		w := args[i]
		if w == "--" {
			i++
			if i < len(args) {
				c.Script, c.Args = args[i], args[i+1:]
			}
			return c
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			c.Script, c.Args = w, args[i+1:]
			return c
		}
		name, value, given := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "--") && len(w) > 2 {
			name, value, given = w[:2], w[2:], true
		}
		if long, ok := short[name]; ok {
			name = long
		}
		name = whole(name, own, known)
		takes, mine := own[name]
		if opt, ok := known.find(name); !mine && ok {
			takes = opt.needsValue()
		}
		switch {
		case takes && !given && i+1 < len(args):
			i++
			value = args[i]
			if !mine {
				c.Options = append(c.Options, w, value)
			}
		case !mine:
			c.Options = append(c.Options, w)
		}
		if mine {
			c.Own[name] = value
		}
	}
	return c
}

// PartsRefused says what to write in the place of a job of several parts.
const PartsRefused = `":" begins a part that asks for other nodes, and all nodes of a job ask for the same here: submit a job for each part, and let one depend on the other`

// whole is the name that one is cut short of, if it is of one option only.
func whole(name string, own map[string]bool, known options) string {
	if _, mine := own[name]; mine || !strings.HasPrefix(name, "--") {
		return name
	}
	if _, ok := known.find(name); ok {
		return name
	}
	found := map[string]bool{}
	for _, o := range known.short(name) {
		found[o.long] = true
	}
	for long := range own {
		if strings.HasPrefix(long, name) {
			found[long] = true
		}
	}
	if len(found) != 1 {
		return name
	}
	for long := range found {
		name = long
	}
	return name
}

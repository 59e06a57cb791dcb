package slurm

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/slurm/records"
	"gbatch/internal/cli/table"
)

type shareField = records.Field[api.Share]

func share(name string, width int, of func(s *api.Share) string) shareField {
	return shareField{Name: name, Width: width, Cell: func(_ *table.View, s *api.Share) string { return of(s) }}
}

func fraction(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }

// sshareFields are sshare's. Usage is billed seconds of a GPU.
var sshareFields = []shareField{
	share("Account", -20, func(s *api.Share) string { return strings.Repeat(" ", max(s.Depth, 0)) + s.Project }),
	share("Cluster", 10, func(*api.Share) string { return clusterName }),
	share("User", 10, func(s *api.Share) string { return s.User }),
	share("RawShares", 10, func(s *api.Share) string { return pick(s.Project == rootAccount, "", itoa(s.Shares)) }),
	share("NormShares", 11, func(s *api.Share) string { return fraction(s.NormShares) }),
	share("RawUsage", 11, func(s *api.Share) string { return itoa(int64(s.UsageHours * 3600)) }),
	share("NormUsage", 11, func(s *api.Share) string { return pick(s.Project == rootAccount, "", fraction(s.NormUsage)) }),
	share("EffectvUsage", 13, func(s *api.Share) string { return fraction(s.NormUsage) }),
	share("FairShare", 10, func(s *api.Share) string { return pick(s.User == "", "", fraction(s.FairShare)) }),
	share("LevelFS", 10, func(s *api.Share) string {
		switch {
		case s.Project == rootAccount:
			return ""
		case s.LevelFS < 0:
			return "inf"
		}
		return fraction(s.LevelFS)
	}),
	share("GrpTRESMins", 30, func(s *api.Share) string {
		if s.Budget == nil || s.User != "" {
			return ""
		}
		return "gres/gpu=" + itoa(int64(s.Budget.Hours*60))
	}),
	share("TRESRunMins", 30, func(*api.Share) string { return "" }),
}

// rootAccount is Slurm's name for what is above all accounts.
const rootAccount = "root"

// sshare shows the shares and what was used of them.
func sshare(ctx context.Context, a *cli.App, args []string) error {
	var users, accounts []string
	var named clusters
	k := records.List[api.Share]{All: sshareFields, Bar: "|"}
	all, only, wide, fieldsOnly := false, false, false, false
	options := slices.DeleteFunc(k.Options(), func(o getopt.Option) bool { return o.Is("-n") })
	rest, err := getopt.Parse(args, append(options, getopt.Bool(&k.NoHeader, "-n", "-h", "--noheader"),
		getopt.Bool(&all, "-a", "--all"), getopt.List(&users, "-u", "--users", "--uid"), getopt.List(&accounts, "-A", "--accounts"), getopt.Bool(&only, "-U", "--Users"), getopt.Bool(&wide, "-l", "--long"),
		getopt.Bool(&fieldsOnly, "-e", "--helpformat"), named.option(), getopt.Ignored("-v", "--verbose"), getopt.Instead("shares are the same in all of them", "-m", "--partition")))
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return exit.Usagef("%q is no option", rest[0])
	case fieldsOnly:
		k.PrintNames(a.Out)
		return nil
	case k.Format != "":
	case wide:
		k.Format = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,TRESRunMins"
	default:
		k.Format = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
	}
	if err := named.check(); err != nil {
		return err
	}
	if _, err := k.Chosen(); err != nil {
		return err
	}
	if users, err = a.Users(ctx, users, len(users) == 0 && !all); err != nil {
		return err
	}
	l, err := a.Client.Shares(ctx)
	if err != nil {
		return err
	}
	return k.Write(a.Out, &table.View{Now: a.Now()}, shareRows(l.Shares, users, accounts, only))
}

// shareRows are the lines of some users and accounts, under one for all.
func shareRows(list []api.Share, users, accounts []string, only bool) []api.Share {
	total, least := 0.0, 1
	for _, s := range list {
		if s.User == "" {
			least = min(least, s.Depth)
		}
	}
	var out []api.Share
	for _, s := range list {
		if s.User == "" && s.Parent == "" {
			total += s.UsageHours
		}
		s.Depth += 1 - least
		if only {
			s.Depth = 0
		}
		shown := s.User == "" && !only || s.User != "" && (len(users) == 0 || slices.Contains(users, s.User))
		if shown && (len(accounts) == 0 || slices.Contains(accounts, s.Project)) {
			out = append(out, s)
		}
	}
	if !only && len(accounts) == 0 {
		out = append([]api.Share{{Project: rootAccount, UsageHours: total, NormUsage: 1}}, out...)
	}
	return out
}

// Package reserved shows advance reservations, to whoever asks: when they are or come next,
// when again, of what and for whom.
package reserved

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
)

// List writes them as a table, or as the API has them.
func List(ctx context.Context, a *cli.App, noHeader bool) error {
	l, err := a.Client.Reservations(ctx)
	if done, err := a.Answered(l, err); done {
		return err
	}
	t := table.New("NAME", "UUID", "FROM", "UNTIL", "AGAIN", "NODES", "FOR", "REASON").NoHeader(noHeader)
	for _, r := range l.Reservations {
		t.Row(
			r.Name, r.UUID, r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339), Again(r.Every), What(r), whose(r), r.Reason,
		)
	}
	return t.Fit(a.Term.Width).Write(a.Out)
}

// What is the nodes, and how many GPUs of them where it is not all.
func What(r api.Reservation) string {
	out := human.Hosts(r.Nodes)
	switch n := len(r.GPUs); n {
	case 0:
		return out
	case 1:
		return out + " (1 GPU)"
	default:
		return fmt.Sprintf("%s (%d GPUs)", out, n)
	}
}

func whose(r api.Reservation) string {
	if r.Maintenance {
		return "nobody (maintenance)"
	}
	var who []string
	for _, p := range r.Projects {
		who = append(who, "project "+p)
	}
	for _, u := range r.Users {
		who = append(who, "user "+u)
	}
	if r.Others {
		who = append(who, "others")
	}
	who = append(who, "jobs that name it")
	return strings.Join(who, ", ")
}

// Weekdays are the days of a week, as a time table counts them.
var Weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Again is when a reservation comes again, in words where there are some.
func Again(e *api.Recurrence) string {
	if e == nil {
		return "-"
	}
	text := e.Schedule
	var minute, hour int
	var rest string
	if n, _ := fmt.Sscanf(e.Schedule, "%d %d * * %s", &minute, &hour, &rest); n == 3 {
		if word, ok := map[string]string{"*": "day", "1-5": "weekday", "0,6": "weekend"}[rest]; ok {
			text = fmt.Sprintf("each %s %02d:%02d", word, hour, minute)
		} else if days := weekdays(rest); days != "" {
			text = fmt.Sprintf("each %s %02d:%02d", days, hour, minute)
		}
	}
	if e.Zone != "" && e.Zone != "UTC" {
		text += " " + e.Zone
	}
	if !e.Until.IsZero() {
		zone, err := time.LoadLocation(e.Zone)
		if err != nil {
			zone = e.Until.Location()
		}
		text += ", last " + e.Until.Add(-time.Second).In(zone).Format(time.DateOnly)
	}
	return text
}

// weekdays are the names of days that a time table numbers, as 1,4; empty: it has other things.
func weekdays(numbers string) string {
	var names []string
	for n := range strings.SplitSeq(numbers, ",") {
		if len(n) != 1 || n[0] < '0' || n[0] > '6' {
			return ""
		}
		names = append(names, Weekdays[n[0]-'0'])
	}
	return strings.Join(names, ",")
}

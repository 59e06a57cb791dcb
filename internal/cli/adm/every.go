package adm

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/reserved"
	"gbatch/internal/units"
)

// zone is by whose clock the reservation is made: the caller's, or a named one.
func (o *Reserve) zone(a *cli.App) (*time.Location, error) {
	if o.Every == "" {
		if o.Zone != "" || o.Last != "" {
			return nil, exit.Usagef("--zone and --last are for reservations that come again: give --every too")
		}
		return time.Local, nil
	}
	if o.Zone == "" {
		o.Zone = zoneName(a)
	}
	if o.Zone == "" {
		return nil, exit.Usagef("this machine does not say which time zone it is in: give --zone, as Europe/Brussels or UTC")
	}
	zone, err := time.LoadLocation(o.Zone)
	if err != nil {
		return nil, exit.Usagef("--zone: there is no time zone %q: give it as Europe/Brussels or UTC", o.Zone)
	}
	return zone, nil
}

// zoneName is the name of the caller's time zone; empty if it cannot be known.
func zoneName(a *cli.App) string {
	if name := time.Local.String(); name != "Local" {
		return name
	}
	if name, ok := a.Env("TZ"); ok && name != "" {
		return strings.TrimPrefix(name, ":")
	}
	target, _ := os.Readlink("/etc/localtime")
	if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
		return name
	}
	name, _ := os.ReadFile("/etc/timezone")
	return strings.TrimSpace(string(name))
}

// every is when it comes again; nil: it does not. By a word it does at the time of day
// of its start, to the minute.
func (o *Reserve) every(start *time.Time, zone *time.Location) (*api.Recurrence, error) {
	if o.Every == "" {
		return nil, nil
	}
	r := &api.Recurrence{Schedule: o.Every, Zone: o.Zone}
	if len(strings.Fields(o.Every)) != 5 {
		*start = start.Truncate(time.Minute)
		at := start.In(zone)
		days, err := days(o.Every, at)
		if err != nil {
			return nil, err
		}
		r.Schedule = fmt.Sprintf("%d %s", at.Minute(), days)
	}
	if o.Last != "" {
		last, err := units.ParseComing(o.Last, *start, zone)
		if err != nil {
			return nil, exit.Usagef("--last: %w", err)
		}
		r.Until = time.Date(last.Year(), last.Month(), last.Day()+1, 0, 0, 0, 0, zone)
	}
	return r, nil
}

// days is the hours and days of a table, by a word for them.
func days(word string, at time.Time) (string, error) {
	hour := at.Hour()
	switch strings.ToLower(word) {
	case "hour", "hourly":
		return "* * * *", nil
	case "day", "daily":
		return fmt.Sprintf("%d * * *", hour), nil
	case "weekday", "weekdays":
		return fmt.Sprintf("%d * * 1-5", hour), nil
	case "weekend", "weekends":
		return fmt.Sprintf("%d * * 0,6", hour), nil
	case "week", "weekly":
		return fmt.Sprintf("%d * * %d", hour, at.Weekday()), nil
	case "month", "monthly":
		return fmt.Sprintf("%d %d * *", hour, at.Day()), nil
	}
	var numbers []string
	for name := range strings.SplitSeq(strings.ToLower(word), ",") {
		i := slices.IndexFunc(reserved.Weekdays, func(day string) bool { return len(name) >= 3 && strings.HasPrefix(name, day) })
		if i < 0 {
			return "", exit.Usagef("--every %s: give hour, day, weekday, weekend, week, month, days as mon,thu, or a table as '0 18 * * 1-5'", word)
		}
		numbers = append(numbers, fmt.Sprint(i))
	}
	return fmt.Sprintf("%d * * %s", hour, strings.Join(numbers, ",")), nil
}
